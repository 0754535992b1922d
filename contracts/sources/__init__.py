"""Where batches come from: one interface, one file a kind of source."""
