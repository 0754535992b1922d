"""Who started this process, for records that say who did something."""

from __future__ import annotations

import getpass
import os


def name() -> str:
    """Return the name of the user, or the number where it has no name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
