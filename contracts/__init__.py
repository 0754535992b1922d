"""What data promises: contracts, their enforcement, batches, objects and feature bundles."""
