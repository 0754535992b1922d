"""Measurements against the limits in infra/BENCHMARKS.md; run with ``make bench``."""
