"""The package stage: from a source tree to a sealed OCI package, all findings at once."""
