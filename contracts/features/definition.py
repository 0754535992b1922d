"""A feature definition: which columns of which sources become which features, and when.

A definition is data. Transforms come from a closed list, so nothing of a file is ever run as code.
The moment of prediction is the event time; columns known only later are named in ``known_later``
and, like the label's own column, may not be read by anything but the label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from contracts.base.digest import Digest

Kind = Literal["numeric", "categorical"]
Join = Literal["spine", "asof", "lookup"]

# Number of columns each transform reads; all but ``value`` make numbers.
TRANSFORMS = {"value": 1, "minute_of_day": 1, "weekday": 3, "difference": 2}
MOMENTS = {"value": 1, "hour_and_minute": 2}


@dataclass(frozen=True, order=True)
class Reference:
    """A column of an input, written ``input.column``."""

    input: str
    column: str

    def __str__(self) -> str:
        """Return it as written in a definition."""
        return f"{self.input}.{self.column}"


@dataclass(frozen=True)
class Input:
    """One source a definition reads, and how its rows find the spine's.

    Attributes:
        name: Its name within the definition.
        contract: Identity of the contract its batches fulfil, ``owner/source@1.0.0``.
        join: ``spine`` has one row a prediction; ``asof`` gives the newest row at or before the
            moment of prediction; ``lookup`` gives the row with an equal key.
        match: Own columns, and the spine's columns they must equal.
        time: Own column that orders an ``asof`` join.
        maximum_age_minutes: Older rows of an ``asof`` join count as missing.
    """

    name: str
    contract: str
    join: Join
    match: tuple[tuple[str, Reference], ...] = ()
    time: str = ""
    maximum_age_minutes: int = 0

    @property
    def source(self) -> str:
        """Name of the source, without the contract's version."""
        return self.contract.partition("@")[0]


@dataclass(frozen=True)
class KeyColumn:
    """A column that tells rows apart and is never a feature."""

    name: str
    column: Reference


@dataclass(frozen=True)
class Moment:
    """How the moment of prediction is computed."""

    name: str
    transform: str
    columns: tuple[Reference, ...]


@dataclass(frozen=True)
class Feature:
    """One input of a model.

    Attributes:
        name: Its name, in the bundle and at the model.
        kind: ``numeric`` becomes a 32-bit float, ``categorical`` text.
        transform: One of the closed list.
        columns: What it reads.
        description: For people.
    """

    name: str
    kind: Kind
    transform: str
    columns: tuple[Reference, ...]
    description: str = ""


@dataclass(frozen=True)
class Label:
    """What a model learns: whether a column is above a threshold; null means no label."""

    name: str
    column: Reference
    above: float


@dataclass(frozen=True)
class FeatureDefinition:
    """What a bundle holds and how it is computed.

    Attributes:
        name: ``owner/source/name``.
        title: For people.
        inputs: The sources; exactly one is the spine.
        event_time: The moment of prediction.
        key: Columns that tell rows apart beside the event time.
        features: In the order of the bundle's columns.
        label: What is learned.
        known_later: Columns known only after the moment of prediction.
        digest: Identity of the whole definition.
    """

    name: str
    title: str
    inputs: tuple[Input, ...]
    event_time: Moment
    key: tuple[KeyColumn, ...]
    features: tuple[Feature, ...]
    label: Label
    known_later: frozenset[Reference]
    digest: Digest

    @property
    def spine(self) -> Input:
        """The input with one row a prediction."""
        return next(item for item in self.inputs if item.join == "spine")

    @property
    def joined(self) -> tuple[Input, ...]:
        """The other inputs."""
        return tuple(item for item in self.inputs if item.join != "spine")

    def columns_of(self, source: Input) -> tuple[str, ...]:
        """Return the columns that are read from an input, sorted."""
        read = {item.column for item in self._references() if item.input == source.name}
        own = {column for column, _ in source.match}
        return tuple(sorted(read | own | ({source.time} if source.time else set())))

    def readers(self) -> Iterator[tuple[str, Sequence[Reference]]]:
        """Yield all that is computed at the moment of prediction, and what it reads."""
        for feature in self.features:
            yield f"feature {feature.name}", feature.columns
        yield from self.anchors()

    def anchors(self) -> Iterator[tuple[str, Sequence[Reference]]]:
        """Yield what fixes a row beside its features, and what it reads: the spine only."""
        for column in self.key:
            yield f"key {column.name}", (column.column,)
        yield f"event time {self.event_time.name}", self.event_time.columns
        for source in self.joined:
            yield f"input {source.name}", [reference for _, reference in source.match]

    def _references(self) -> Iterator[Reference]:
        for _, references in self.readers():
            yield from references
        yield self.label.column
