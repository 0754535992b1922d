"""Says whether a built package answers as its float model does, and how fast."""
