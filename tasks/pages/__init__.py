"""Pages and machine-readable summaries made from reports; below all areas, so it knows none."""
