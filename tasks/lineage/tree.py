"""A lineage tree: plain data, and how it is shown as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Node:
    """One thing in a lineage tree.

    Attributes:
        kind: answer, deployment, package, record, report, bundle, contract, batch or commit.
        name: What people call it.
        digest: What identifies it; empty if it has no digest.
        facts: What else is known, as plain data.
        missing: Why it could not be looked up again; empty if it could.
        children: What it came from (``why``) or what came of it (``impact``).
    """

    kind: str
    name: str
    digest: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    missing: str = ""
    children: tuple[Node, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "children": [child.to_dict() for child in self.children]}

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def render(node: Node, *, full: bool = False) -> str:
    """Return a tree as text, digests cut to twelve digits unless ``full``."""
    return "\n".join(_lines(node, "", "", full=full)) + "\n"


def _lines(node: Node, first: str, rest: str, *, full: bool) -> Iterator[str]:
    shown = ", ".join(f"{name}={_short(value, full)}" for name, value in _plain(node.facts))
    value = f" {_short(node.digest, full)}" if node.digest else ""
    facts = f" ({shown})" if shown else ""
    gone = f" ! {' '.join(node.missing.split())}" if node.missing else ""
    yield f"{first}{node.kind} {node.name}{value}{facts}{gone}"
    for place, child in enumerate(node.children, 1):
        last = place == len(node.children)
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _lines(child, rest + branch, rest + below, full=full)


def _plain(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, item) for name, item in facts.items() if isinstance(item, str | int | float)]


def _short(value: Any, full: bool) -> str:
    text = str(value)
    if full or not text.startswith("sha256:"):
        return text
    return text[: len("sha256:") + 12]
