"""Stand-in for model_packages."""
