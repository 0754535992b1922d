"""Hardware: on which devices a package fits, with measured, predicted and not-run kept apart."""
