"""The stages: what is done with contracts and model packages, one area a folder."""
