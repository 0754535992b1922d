"""Where releases run: one interface, one file per kind of target."""
