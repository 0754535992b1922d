"""Compares new data with the data a model was trained on."""
