"""Freezes features as bundles that are read back exactly, or not at all."""
