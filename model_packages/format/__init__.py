"""The ``/model`` tree: its files, manifest, settings and golden cases. No heavy library."""
