"""Loading a package in six stages, each with its own error, seconds and figures."""
