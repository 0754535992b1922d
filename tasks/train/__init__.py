"""Makes a package source from a model's published files and one pinned feature version."""
