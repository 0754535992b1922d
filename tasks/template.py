"""Empty databases with all migrations done, kept beside the interpreter for the next home folder.

Migrating costs Prefect ten CPU seconds and MLflow one. The first database made on an installation
is kept, without what makes it that home's own, and later ones begin as a copy of it. Where the
installation cannot be written, every home folder pays for its own migrations.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from contracts.base import files
from contracts.base.errors import CaissonError

_LIMIT = 64 * 2**20


def path_of(library: str) -> Path:
    """Return where the template of a library's present version is, or would be."""
    name = f"{library}-{importlib.metadata.version(library)}.db"
    return Path(sys.prefix) / "share" / "caisson" / name


def restore(library: str, target: Path) -> bool:
    """Make a database from a library's template; return whether there was a good one."""
    template = path_of(library)
    try:
        with contextlib.closing(sqlite3.connect(f"{template.as_uri()}?mode=ro", uri=True)) as base:
            if base.execute("PRAGMA quick_check").fetchone() != ("ok",):
                return False
        files.write_atomic(target, files.read_bounded(template, _LIMIT), mode=0o600)
    except (sqlite3.Error, CaissonError):
        return False
    return True


def keep(library: str, source: Path, *, forget: Sequence[str]) -> bool:
    """Keep a database just migrated as its library's template; return whether that worked.

    Args:
        library: Whose database it is.
        source: The database; it may be in use.
        forget: Statements that remove what belongs to this home folder only.
    """
    template = path_of(library)
    aside = template.with_name(f".{template.name}.{os.getpid()}.part")
    try:
        template.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(source)) as base:
            base.execute("VACUUM INTO ?", (str(aside),))
        with contextlib.closing(sqlite3.connect(aside)) as copy:
            for statement in forget:
                copy.execute(statement)
            copy.commit()
        aside.replace(template)
    except (OSError, sqlite3.Error):
        with contextlib.suppress(OSError):
            aside.unlink()
        return False
    return True
