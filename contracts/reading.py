"""Reads plain data strictly and remembers every problem, so that all are told at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from contracts.base.errors import ContractInvalid, InputError

_T = TypeVar("_T")
LONGEST_TEXT = 4096


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a document.

    Attributes:
        path: The field, such as ``columns[3].type``.
        expected: What should have been there.
        found: What was there.
        remedy: What to do.
    """

    path: str
    expected: str
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return one line for a person."""
        line = f"{self.path}: expected {self.expected}, got {self.found}"
        return f"{line}. {self.remedy}" if self.remedy else line


class ContractProblems(ContractInvalid):
    """A contract file is wrong in one or more places; all of them are in ``problems``."""

    def __init__(self, problems: Sequence[Problem], *, where: str) -> None:
        """Join the problems into one message, each on a line of its own."""
        self.problems = tuple(problems)
        count = len(self.problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{count} problem{'s' * (count != 1)}:\n{lines}", location=where)


def shown(value: Any) -> str:
    """Return a value as short text for a message."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class Reader:
    """One object of a document; getters report what is wrong and return a harmless default."""

    def __init__(self, data: Any, path: str, problems: list[Problem]) -> None:
        """Start to read an object that must be a mapping."""
        self._path = path
        self._problems = problems
        self._seen: set[str] = set()
        if not isinstance(data, Mapping):
            self.wrong("", "an object", shown(data))
            data = {}
        self._data: Mapping[str, Any] = data

    def wrong(self, name: str, expected: str, found: str, remedy: str = "") -> None:
        """Remember a problem with a field."""
        self._problems.append(Problem(self.at(name), expected, found, remedy))

    def at(self, name: str) -> str:
        """Return the full path of a field."""
        return ".".join(part for part in (self._path, name) if part) or "document"

    def has(self, name: str) -> bool:
        """Tell whether a field is there, whatever it holds."""
        return name in self._data

    def raw(self, name: str) -> Any:
        """Return a field unchecked and mark it as known."""
        self._seen.add(name)
        return self._data.get(name)

    def text(self, name: str, *, default: str | None = None) -> str:
        """Return a text field; without a default it must be there and not be empty."""
        value = self.raw(name)
        if value is None and default is not None and not self.has(name):
            return default
        if not isinstance(value, str) or (default is None and not value.strip()):
            self.wrong(name, "text", shown(value))
            return default or ""
        if len(value) > LONGEST_TEXT:
            self.wrong(name, f"at most {LONGEST_TEXT} characters", f"{len(value)} characters")
        return value

    def choice(self, name: str, choices: Sequence[str], *, default: str | None = None) -> str:
        """Return a text field that must be one of a closed set."""
        value = self.raw(name)
        if not self.has(name) and default is not None:
            return default
        if not isinstance(value, str) or value not in choices:
            self.wrong(name, f"one of {', '.join(choices)}", shown(value))
            return default or choices[0]
        return value

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """Return a field that must be true or false."""
        value = self.raw(name)
        if not self.has(name) and default is not None:
            return default
        if not isinstance(value, bool):
            self.wrong(name, "true or false", shown(value))
            return bool(default)
        return value

    def integer(self, name: str, low: int, high: int, *, default: int | None = None) -> int:
        """Return a whole number within bounds."""
        value = self.raw(name)
        if not self.has(name) and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.wrong(name, f"a whole number from {low} to {high}", shown(value))
            return low if default is None else default
        return value

    def number(self, name: str) -> float | int | None:
        """Return a finite number, or None if the field is absent."""
        value = self.raw(name)
        if not self.has(name):
            return None
        if is_number(value):
            return value
        self.wrong(name, "a finite number", shown(value))
        return None

    def texts(self, name: str, *, limit: int = 1000) -> tuple[str, ...]:
        """Return a list of different texts; an absent field is an empty list."""
        items = self.items(name, limit=limit)
        good = [item for item in items if isinstance(item, str) and 0 < len(item) <= LONGEST_TEXT]
        if len(good) != len(items):
            bad = next(item for item in items if item not in good)
            self.wrong(name, "a list of texts", f"the item {shown(bad)}")
        if len(set(good)) != len(good):
            twins = sorted({item for item in good if good.count(item) > 1})
            self.wrong(name, "each item once", f"{', '.join(twins)} twice")
        return tuple(good)

    def items(self, name: str, *, limit: int) -> list[Any]:
        """Return a list; an absent field is an empty one."""
        value = self.raw(name)
        if not self.has(name):
            return []
        if not isinstance(value, list):
            self.wrong(name, "a list", shown(value))
            return []
        if len(value) > limit:
            self.wrong(name, f"at most {limit} items", f"{len(value)} items")
            return []
        return value

    def child(self, name: str) -> Reader:
        """Return a reader of a nested object."""
        return Reader(self.raw(name), self.at(name), self._problems)

    def children(self, name: str, *, limit: int) -> list[Reader]:
        """Return a reader for each object of a list."""
        return [
            Reader(item, f"{self.at(name)}[{index}]", self._problems)
            for index, item in enumerate(self.items(name, limit=limit))
        ]

    def parsed(self, name: str, parse: Callable[[str], _T], fallback: _T) -> _T:
        """Return a text field read by a function that raises InputError."""
        value = self.raw(name)
        try:
            return parse(value)
        except InputError as err:
            self.wrong(name, err.expected or "a valid value", err.found or shown(value), err.remedy)
            return fallback

    def finish(self) -> None:
        """Report every field that nobody asked for."""
        for name in sorted(self._data.keys() - self._seen):
            known = ", ".join(sorted(self._seen))
            self.wrong(name[:100], "a known field", "an unknown one", f"Known are: {known}.")


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number, which a truth value is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (isinstance(value, int) and abs(value) < 2**53) or (
        isinstance(value, float) and math.isfinite(value)
    )
