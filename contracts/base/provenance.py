"""Where and with what something was made. It lies beside an artifact, never inside its digest."""

from __future__ import annotations

import importlib.metadata
import platform
import socket
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from contracts.base import clock

_LIBRARIES = ("duckdb", "mlflow", "numpy", "onnx", "onnxruntime", "prefect", "pyarrow", "torch")


@dataclass(frozen=True)
class Provenance:
    """The circumstances of a piece of work.

    Attributes:
        commit: Git commit of the code; ``unknown`` outside a checkout.
        dirty: Whether the checkout had uncommitted changes.
        host: Name of the machine.
        cluster: Name of the cluster or ``local``.
        python: Version of the interpreter.
        libraries: Versions of the libraries that can change a result.
        made_at: Wall time, RFC 3339.
    """

    commit: str
    dirty: bool
    host: str
    cluster: str
    python: str
    libraries: dict[str, str]
    made_at: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return dict(vars(self))


def collect(root: Path, now: datetime, *, cluster: str = "local") -> Provenance:
    """Gather the circumstances of this process.

    Args:
        root: Folder of the code, for its commit.
        now: Wall time.
        cluster: Name of the cluster.
    """
    commit, dirty = commit_of(root)
    return Provenance(
        commit=commit,
        dirty=dirty,
        host=socket.gethostname(),
        cluster=cluster,
        python=platform.python_version(),
        libraries=_versions(),
        made_at=clock.to_text(now),
    )


def commit_of(root: Path) -> tuple[str, bool]:
    """Return the commit a folder is at, and whether it has uncommitted changes."""
    commit = _git(root, "rev-parse", "HEAD")
    if not commit:
        return "unknown", False
    return commit, bool(_git(root, "status", "--porcelain", "--untracked-files=no"))


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],  # noqa: S607 - git is found on the path
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
