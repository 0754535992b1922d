"""Compliance: may this package be released, at which level, and what says so."""
