"""Measures how far a package's answers can be trusted: importance, leakage, sensitivity, alarms."""
