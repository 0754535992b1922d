"""Features: what is computed from which data, frozen as bundles that are read back whole or not."""
