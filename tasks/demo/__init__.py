"""Data, planted faults and the story that the demo tells."""
