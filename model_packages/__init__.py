"""What a model delivers and how it runs: format, graph facts, OCI packages, runtime.

``SPEC.md`` beside this file is normative; code cites its sections.
"""
