"""The one reader of the environment: ``CAISSON_*`` becomes typed settings, checked at start.

Plain dataclasses, because reading commands must not pay for the import of a settings library.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import failpoint
from contracts.base.errors import InputError

PREFIX = "CAISSON_"
ROOT = Path(__file__).resolve().parent.parent
LOG_LEVELS = ("debug", "info", "warning", "error")
_LONGEST_LINGER_S = 86_400


@dataclass(frozen=True)
class Settings:
    """What an installation can be told through the environment.

    Attributes:
        home: Where everything that is made is kept.
        sources: Where the batches of data sources arrive.
        linger: Seconds that the local Prefect server stays after its last command.
        target: Name of the target to deploy to.
        log_level: How much is logged to stderr.
        failpoints: Points at which the process ends as if killed; for tests.
        root: The checkout whose code runs.
    """

    home: Path
    sources: Path
    linger: float
    target: str
    log_level: str
    failpoints: str
    root: Path = ROOT


@dataclass(frozen=True)
class Variable:
    """One variable of the environment.

    Attributes:
        name: Its full name.
        default: What holds if it is not set, in words.
        help: What it decides, one sentence.
    """

    name: str
    default: str
    help: str


VARIABLES = (
    Variable("CAISSON_HOME", ".caisson in the checkout", "Folder for everything that is made."),
    Variable("CAISSON_SOURCES", "sources in the home folder", "Folder where batches arrive."),
    Variable("CAISSON_LINGER", "120", "Seconds the Prefect server stays after the last command."),
    Variable("CAISSON_TARGET", "local", "Target that deploy, rollback and status mean."),
    Variable("CAISSON_LOG_LEVEL", "warning", f"One of {', '.join(LOG_LEVELS)}."),
    Variable("CAISSON_FAILPOINTS", "none", "Points at which to end as if killed; for tests."),
)


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings.

    Args:
        environment: Where to read from; the process's own environment if not given.

    Raises:
        InputError: If any variable is unknown or malformed; it names all that are.
    """
    found = os.environ if environment is None else environment
    given = {name: value for name, value in found.items() if name.startswith(PREFIX)}
    problems = _unknown(given)

    def read(name: str, default: str, parse: Callable[[str], Any]) -> Any:
        text = given.get(PREFIX + name, "").strip() or default
        try:
            return parse(text)
        except InputError as err:
            problems.append(f"{PREFIX}{name}: {err}")
            return None

    home = read("HOME", str(ROOT / ".caisson"), _folder)
    settings = Settings(
        home=home,
        sources=read("SOURCES", str(home / "sources") if home else "/", _folder),
        linger=read("LINGER", "120", _seconds),
        target=read("TARGET", "local", _name),
        log_level=read("LOG_LEVEL", "warning", _level),
        failpoints=read("FAILPOINTS", "", _failpoints),
    )
    if problems:
        raise InputError("; ".join(problems), location="environment")
    return settings


def _unknown(given: Mapping[str, str]) -> list[str]:
    known = [variable.name for variable in VARIABLES]
    problems = []
    for name in sorted(set(given) - set(known)):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0)
        problems.append(f"{name}: unknown variable; did you mean {near[0]}?")
    return problems


def _folder(text: str) -> Path:
    try:
        path = Path(text).expanduser()
        strange = path.exists() and not path.is_dir()
    except (OSError, RuntimeError) as err:  # a name too long or a link in a circle; no such user
        raise InputError(f"cannot be a folder: {err}"[:300], expected="an absolute path") from err
    if not path.is_absolute():
        raise InputError("not an absolute path", found=repr(text))
    if strange:
        raise InputError("not a folder", found=str(path))
    return path


def _seconds(text: str) -> float:
    expected = f"seconds from 0 to {_LONGEST_LINGER_S}"
    try:
        value = float(text)
    except ValueError as err:
        raise InputError("not a number", expected=expected, found=repr(text)) from err
    if not 0 <= value <= _LONGEST_LINGER_S:
        raise InputError("out of range", expected=expected, found=text)
    return value


def _name(text: str) -> str:
    if not text.replace("-", "").isalnum() or not text.isascii() or text != text.lower():
        expected = "lower-case letters, digits and hyphens"
        raise InputError("not a name", expected=expected, found=repr(text))
    return text


def _level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise InputError("unknown level", expected=", ".join(LOG_LEVELS), found=repr(text))
    return text.lower()


def _failpoints(text: str) -> str:
    """Check the form; arming is left to the wiring."""
    failpoint.configure(text)
    failpoint.configure("")
    return text
