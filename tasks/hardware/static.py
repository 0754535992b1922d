"""The static stage: what can be said of a device from its profile, without having one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.hardware.kernels import KernelTable, NodeKind
from tasks.hardware.matrix import Cell
from tasks.hardware.profiles import Profile

_MIB = 2**20
# Types every device moves and counts with, whether or not it has arithmetic units for them.
_EVERYWHERE = frozenset({"int32", "int64", "bool", "uint8", "int8", "int16"})


@dataclass(frozen=True)
class Graph:
    """What the static stage must know of a model.

    Attributes:
        opsets: Version of each operator domain.
        nodes: Its nodes by kind.
        weight_bytes: Bytes of all weights.
        activation_bytes: Most bytes alive between operators, for one row.
    """

    opsets: Mapping[str, int]
    nodes: tuple[NodeKind, ...]
    weight_bytes: int
    activation_bytes: int


@dataclass(frozen=True)
class Need:
    """Memory a package needs.

    Attributes:
        declared_mb: What its manifest declares.
        computed_mb: Weights, and activations of a full batch.
    """

    declared_mb: int
    computed_mb: int

    @property
    def mb(self) -> int:
        """The larger of both."""
        return max(self.declared_mb, self.computed_mb)


@dataclass(frozen=True)
class Placement:
    """Where the nodes of a graph would run.

    Attributes:
        counts: Nodes by provider.
        unsupported: Operators no provider runs, with their types.
        moved: Operators that leave the device for the host processor.
    """

    counts: Mapping[str, int]
    unsupported: tuple[str, ...]
    moved: tuple[str, ...]


def need(graph: Graph, declared_mb: int, max_batch_size: int) -> Need:
    """Return the memory a model needs with a full batch."""
    size = graph.weight_bytes + graph.activation_bytes * max_batch_size
    return Need(declared_mb, -(-size // _MIB))


def place(graph: Graph, profile: Profile, kernels: KernelTable) -> Placement:
    """Say where each node would run on a device."""
    counts: Counter[str] = Counter()
    unsupported, moved = [], []
    for node in graph.nodes:
        opset = graph.opsets.get(node.domain, 1)
        provider = kernels.place(_able(profile, node), node, opset)
        if not provider:
            unsupported.append(f"{node.name}-{opset} ({', '.join(sorted(node.types)) or 'any'})")
            continue
        counts[provider] += node.count
        if provider != profile.providers[0]:
            moved.append(node.name)
    return Placement(dict(counts), tuple(sorted(unsupported)), tuple(sorted(set(moved))))


def predict(
    graph: Graph, profile: Profile, kernels: KernelTable, needed: Need
) -> tuple[tuple[Cell, ...], Placement]:
    """Return the static cells of a device, and where its nodes would run."""
    placement = place(graph, profile, kernels)
    fits = needed.mb <= profile.usable_mb
    memory = (
        f"{needed.mb:,} MB needed (declared {needed.declared_mb:,}, computed "
        f"{needed.computed_mb:,}), {profile.usable_mb:,} MB usable of {profile.memory_mb:,}"
    )
    last = profile.toolchain["last_cuda"]
    toolchain = "supported by the present CUDA" if profile.compute_capability else "needs none"
    if last:
        toolchain = f"last supported by CUDA {last}: needs a stack of its own"
    cells = (
        Cell(profile.name, "operators", "predicted", not placement.unsupported, _words(placement)),
        Cell(profile.name, "memory", "predicted", fits, memory),
        Cell(profile.name, "toolchain", "predicted", not last, toolchain),
    )
    return cells, placement


def _able(profile: Profile, node: NodeKind) -> Sequence[str]:
    """Return the providers to ask: the device's own only if it computes with the node's types."""
    if node.types <= profile.types | _EVERYWHERE:
        return profile.providers
    return profile.providers[1:]


def _words(placement: Placement) -> str:
    if placement.unsupported:
        return f"no kernel for {', '.join(placement.unsupported[:5])}"
    parts = [f"{count} on {name}" for name, count in sorted(placement.counts.items())]
    return ", ".join(parts) or "no operators"
