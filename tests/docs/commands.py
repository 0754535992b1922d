"""What the ``caisson`` command knows: parses a command line without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer
from typer.main import get_command

from flows.cli.main import app


def known() -> list[str]:
    """Return every group and every command, such as ``contract lint``."""
    return sorted(" ".join(path) for path in _walk(get_command(app), ()))


def problem(words: Sequence[str]) -> str:
    """Return why a command line after ``caisson`` could not be run; empty if it could."""
    command: Any = get_command(app)
    rest, context = list(words), None
    try:
        while True:
            if rest == ["--help"]:
                return ""
            context = command.make_context(command.name or "caisson", rest, parent=context)
            if not hasattr(command, "commands"):
                return ""
            asked = [*context._protected_args, *context.args]
            _, command, rest = command.resolve_command(context, asked)
    except typer.Exit:
        return "is not whole"
    except typer.TyperException as err:
        return str(err)


def misnamed(words: Sequence[str]) -> str:
    """Return which command or option of a mention does not exist; empty if all do.

    A mention in prose names a command and perhaps an option; arguments may be left out.
    """
    command: Any = get_command(app)
    rest = list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        found = command.commands.get(rest[0])
        if found is None:
            return f"there is no command {rest[0]!r}"
        command, rest = found, rest[1:]
    options = {name for item in command.params for name in (*item.opts, *item.secondary_opts)}
    unknown = [word for word in rest if word.startswith("--") and word not in {*options, "--help"}]
    if unknown:
        return f"there is no option {unknown[0]}"
    arguments = sum(item.param_type_name == "argument" for item in command.params)
    plain = [word for word in rest if not word.startswith("-")]
    whole = not any(word.startswith("-") for word in rest)
    return f"{' '.join(plain)}: too many arguments" if whole and len(plain) > arguments else ""


def _walk(command: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    found = [path] if path else []
    for name, child in getattr(command, "commands", {}).items():
        found += _walk(child, (*path, name))
    return found
