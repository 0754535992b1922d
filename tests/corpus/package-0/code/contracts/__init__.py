"""Stand-in for contracts."""
