"""Strict reading of plain data that reports every problem at once, not only the first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from contracts.base.errors import ManifestInvalid

_LONGEST_TEXT = 20_000
_MOST_ITEMS = 10_000


class Fields:
    """Reads one object field by field; problems collect in a list shared with its parts."""

    def __init__(self, data: Any, path: str, problems: list[str]) -> None:
        """Start reading ``data``, which is named ``path`` in messages."""
        self.path = path
        self.problems = problems
        self._seen: set[str] = set()
        if isinstance(data, Mapping):
            self._data: Mapping[str, Any] = data
        else:
            self._data = {}
            problems.append(f"{path}: expected an object, got {_kind(data)}")

    def text(
        self,
        name: str,
        default: str | None = None,
        *,
        pattern: re.Pattern[str] | None = None,
        shape: str = "",
        choices: tuple[str, ...] = (),
    ) -> str:
        """Read text; ``shape`` says in words what ``pattern`` demands."""
        value = self._take(name, default)
        if value is None or value == default:
            return value or ""
        if not isinstance(value, str):
            return str(self._wrong(name, "text", value, ""))
        if len(value) > _LONGEST_TEXT:
            return str(self._wrong(name, f"at most {_LONGEST_TEXT} characters", len(value), ""))
        if pattern is not None and not pattern.fullmatch(value):
            return str(self._wrong(name, shape or pattern.pattern, value, ""))
        if choices and value not in choices:
            return str(self._wrong(name, f"one of {', '.join(choices)}", value, choices[0]))
        return value

    def integer(
        self, name: str, default: int | None = None, *, minimum: int = 0, maximum: int = 2**53 - 1
    ) -> int:
        """Read a whole number within bounds."""
        value = self._take(name, default)
        if value is None:
            return minimum
        if not isinstance(value, int) or isinstance(value, bool):
            return int(self._wrong(name, "a whole number", value, minimum))
        if not minimum <= value <= maximum:
            return int(self._wrong(name, f"{minimum} to {maximum}", value, minimum))
        return value

    def number(self, name: str, *, required: bool = False) -> float | None:
        """Read a finite number; absent means None."""
        value = self._take(name, None if required else ...)
        if value is None or value is ...:
            return None
        number = to_float(value)
        if number is None:
            self._wrong(name, "a finite number", value, None)
        return number

    def boolean(self, name: str, default: bool = False) -> bool:
        """Read true or false."""
        value = self._take(name, default)
        return (
            value if isinstance(value, bool) else bool(self._wrong(name, "true or false", value, 0))
        )

    def texts(self, name: str, *, required: bool = False) -> tuple[str, ...]:
        """Read a list of distinct, non-empty texts."""
        found = []
        for index, value in self._items(name, required):
            if not isinstance(value, str) or not value or value in found:
                self._wrong(f"{name}[{index}]", "distinct non-empty text", value, None)
            else:
                found.append(value)
        return tuple(found)

    def integers(self, name: str, *, required: bool = False, minimum: int = 0) -> tuple[int, ...]:
        """Read a list of whole numbers."""
        found = []
        for index, value in self._items(name, required):
            if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
                self._wrong(f"{name}[{index}]", f"a whole number from {minimum}", value, None)
            else:
                found.append(value)
        return tuple(found)

    def records(self, name: str, *, required: bool = False) -> Iterator[Fields]:
        """Read a list of objects."""
        for index, value in self._items(name, required):
            yield Fields(value, f"{self.path}.{name}[{index}]", self.problems)

    def record(self, name: str) -> Fields | None:
        """Read an object; absent or null means None."""
        value = self._take(name, ...)
        if value is None or value is ...:
            return None
        return Fields(value, f"{self.path}.{name}", self.problems)

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._data.get(name) is not None

    def raw(self, name: str) -> Any:
        """Take a value as it is; the caller judges it."""
        return self._take(name, ...)

    def close(self) -> None:
        """Refuse the fields that nobody read."""
        for name in sorted(set(map(str, self._data)) - self._seen):
            self.problems.append(f"{self.path}.{name}: unknown field")

    def _take(self, name: str, default: Any) -> Any:
        self._seen.add(name)
        value = self._data.get(name)
        if value is not None:
            return value
        if default is None:
            self.problems.append(f"{self.path}.{name}: missing")
        return default

    def _items(self, name: str, required: bool) -> Iterator[tuple[int, Any]]:
        value = self._take(name, None if required else ...)
        if value is None or value is ...:
            return
        if not isinstance(value, list | tuple) or len(value) > _MOST_ITEMS:
            self._wrong(name, f"a list of at most {_MOST_ITEMS}", value, None)
            return
        if required and not value:
            self._wrong(name, "at least one entry", value, None)
        yield from enumerate(value)

    def _wrong(self, name: str, expected: str, found: Any, instead: Any) -> Any:
        self.problems.append(f"{self.path}.{name}: expected {expected}, got {_show(found)}")
        return instead


def to_float(value: Any) -> float | None:
    """Return a number as a finite double, or None if it is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def refuse(problems: list[str], what: str) -> None:
    """Raise one error that names every problem, if there are any.

    Raises:
        ManifestInvalid: If the list is not empty.
    """
    if not problems:
        return
    count = f"{len(problems)} problems: " if len(problems) > 1 else ""
    raise ManifestInvalid(
        f"{count}{'; '.join(problems)}",
        location=what,
        remedy="model_packages/SPEC.md describes every field.",
    )


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
