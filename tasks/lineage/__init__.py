"""Lineage: what a release was made from and where it runs, in MLflow and from our ledger."""
