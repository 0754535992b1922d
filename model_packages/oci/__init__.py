"""Packages as OCI image layouts: build, store, push, unpack, sign and verify."""
