"""The demonstration: a real model on real data through every stage, then a fault for each stage."""
