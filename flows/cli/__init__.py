"""The command line: one thin function a command, grouped by whom it serves."""
