"""Foundations that every other room stands on; standard library only."""
