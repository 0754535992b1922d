"""The kinds of targets there are; a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from contracts.base.errors import InputError
from tasks.release.targets.interface import Target
from tasks.release.targets.local import LocalTarget
from tasks.workspace import Workspace

KINDS: Mapping[str, Callable[..., Target]] = {"local": LocalTarget}


def open_target(
    workspace: Workspace,
    name: str,
    *,
    kind: str = "local",
    port: int = 0,
    while_locked: Path | None = None,
) -> Target:
    """Return a target by name, without starting it.

    Args:
        workspace: Where the folders of local targets are.
        name: Name of the target.
        kind: Kind of the target.
        port: Port for requests if it has to be started; 0 for any free one.
        while_locked: If it has to be started: it ends once nobody holds this lock file.

    Raises:
        InputError: If there is no such kind, or the name is not one.
    """
    if kind not in KINDS:
        raise InputError("unknown kind of target", expected=", ".join(KINDS), found=kind)
    if not name or "/" in name or name.startswith("."):
        raise InputError("not the name of a target", found=repr(name))
    home = workspace.targets / name
    return KINDS[kind](name, home, port=port, while_locked=while_locked)
