"""Which operators an execution provider has, for which operator sets and element types.

The table is generated data with its source and version: ``infra/hardware/kernels.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import digest, files
from contracts.base.digest import Digest
from contracts.base.errors import InputError

# A provider needs no kernel for these: the session folds them away or they carry no data.
_FOLDED = frozenset({"Constant"})


@dataclass(frozen=True)
class NodeKind:
    """Nodes of a graph that are alike.

    Attributes:
        domain: Operator domain; empty is ai.onnx.
        operator: Its name.
        types: Element types of its inputs and outputs, where known.
        count: How many there are.
    """

    domain: str
    operator: str
    types: frozenset[str]
    count: int

    @property
    def name(self) -> str:
        """Name with its domain, as the table writes it."""
        return f"{self.domain}:{self.operator}" if self.domain else self.operator


@dataclass(frozen=True)
class Row:
    """One kernel: operator sets from ``since`` to ``until``, and its element types."""

    since: int
    until: int
    types: frozenset[str]

    def covers(self, opset: int, types: frozenset[str]) -> bool:
        """Whether it runs a node of these types in a model of this operator set."""
        return self.since <= opset <= (self.until or opset) and types <= self.types


@dataclass(frozen=True)
class KernelTable:
    """All kernels of all providers.

    Attributes:
        rows: Kernels by provider and operator.
        versions: Version of each provider's table.
        digest: Identity of the table.
    """

    rows: Mapping[str, Mapping[str, Sequence[Row]]]
    versions: Mapping[str, str]
    digest: Digest

    def runs(self, provider: str, node: NodeKind, opset: int) -> bool:
        """Whether a provider has a kernel for a node."""
        if node.operator in _FOLDED:
            return True
        rows = self.rows.get(provider, {}).get(node.name, ())
        return any(row.covers(opset, node.types) for row in rows)

    def place(self, providers: Sequence[str], node: NodeKind, opset: int) -> str:
        """Return the first provider that runs a node; empty if none does."""
        return next((item for item in providers if self.runs(item, node, opset)), "")


def load(path: Path) -> KernelTable:
    """Read the table.

    Raises:
        InputError: If it is malformed.
    """
    data = files.read_json(path)
    try:
        providers = data["providers"]
        rows = {name: _operators(item["operators"]) for name, item in providers.items()}
        versions = {name: str(item["version"]) for name, item in providers.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise InputError("kernel table is malformed", location=str(path)) from err
    return KernelTable(rows, versions, digest.of_json(data))


def _operators(data: Mapping[str, Any]) -> dict[str, tuple[Row, ...]]:
    return {
        name: tuple(Row(int(a), int(b), frozenset(types.split())) for a, b, types in rows)
        for name, rows in data.items()
    }
