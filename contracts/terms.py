"""The nouns of a contract, as frozen values. ``spec.py`` reads and writes their file."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal, get_args

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.version import Version
from contracts.rules import Rule
from contracts.schema import Column

OnViolation = Literal["REJECT_AND_ALERT", "QUARANTINE_AND_ALERT", "WARN"]
PersonalData = Literal["none", "pseudonymous", "personal", "sensitive"]
ClockKind = Literal["event", "ingest", "broker"]

ON_VIOLATION: tuple[OnViolation, ...] = get_args(OnViolation)
PERSONAL_DATA: tuple[PersonalData, ...] = get_args(PersonalData)

DAY_MS = 86_400_000


@dataclass(frozen=True)
class ContractColumn:
    """A column as its owner describes it.

    Attributes:
        column: Name, logical type and members.
        nullable: Whether a value may be missing.
        personal_data: Class of personal data in it; anything but ``none`` is masked in samples.
        description: What it means.
        unit: Unit of its values; empty if they have none.
    """

    column: Column
    nullable: bool
    personal_data: PersonalData
    description: str
    unit: str = ""

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @property
    def type(self) -> str:
        """Logical type of the column."""
        return self.column.type

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        data: dict[str, Any] = {"name": self.name, "type": self.type}
        if self.column.children:
            data["children"] = [_member(child) for child in self.column.children]
        data |= {"nullable": self.nullable, "personal_data": self.personal_data}
        data["description"] = self.description
        return {**data, "unit": self.unit} if self.unit else data


@dataclass(frozen=True)
class Freshness:
    """How old the newest row may be.

    Attributes:
        column: The timestamp that tells a row's time.
        sla_ms: Greatest age of the newest row at the batch's logical time, in milliseconds.
        ahead_ms: How far the newest row may lie after it: zones, and clocks that run ahead.
        clock: Whose clock the column shows.
    """

    column: str
    sla_ms: int
    ahead_ms: int = 0
    clock: ClockKind = "event"


@dataclass(frozen=True)
class FusePolicy:
    """When the circuit breaker opens and when it may be tried again.

    Attributes:
        violations: Batches rejected in a row that open it.
        retry_after_ms: Time after which one batch may be tried (half-open).
    """

    violations: int = 1
    retry_after_ms: int = DAY_MS


@dataclass(frozen=True)
class Consumer:
    """Who reads the data.

    Attributes:
        name: Its name, which also names its fuse.
        contact: Whom to tell about a change.
    """

    name: str
    contact: str


@dataclass(frozen=True)
class Contract:
    """What a data source promises.

    Attributes:
        owner: Who answers for the data.
        source: Name of the data among the owner's.
        version: Version of the promise.
        description: What the data is.
        contact: Whom to ask.
        location: Where batches arrive, below the folder of sources.
        format: Format of the files of a batch.
        columns: The columns.
        schema_hash: Digest of the canonical schema; the data's own must equal it.
        key: Columns that together name a row; never null, never repeated.
        rules: Quality rules.
        freshness: How old the newest row may be; None promises nothing.
        lineage_anchor: Where the data comes from: ``kind:name@revision``.
        on_violation: What happens to a batch that breaks the promise.
        fuse: When further batches are refused unread.
        consumers: Who is known to read it.
        license: SPDX expression for the data.
        purpose: What it may be used for.
        retention_days: How long copies may be kept; 0 is without limit.
    """

    owner: str
    source: str
    version: Version
    description: str
    contact: str
    location: str
    format: Literal["parquet"]
    columns: tuple[ContractColumn, ...]
    schema_hash: Digest
    key: tuple[str, ...]
    rules: tuple[Rule, ...]
    freshness: Freshness | None
    lineage_anchor: str
    on_violation: OnViolation
    fuse: FusePolicy
    consumers: tuple[Consumer, ...]
    license: str
    purpose: str
    retention_days: int

    @property
    def name(self) -> str:
        """Owner and source, such as ``nyc/flights``."""
        return f"{self.owner}/{self.source}"

    @property
    def identity(self) -> str:
        """Name and version, such as ``nyc/flights@1.0.0``."""
        return f"{self.name}@{self.version}"

    @functools.cached_property
    def digest(self) -> Digest:
        """Digest of the whole contract; changes with every word of it."""
        return digest.of_json(self.to_dict())

    @property
    def schema(self) -> tuple[Column, ...]:
        """The canonical columns."""
        return tuple(column.column for column in self.columns)

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """The owner's rules and those that columns and key imply, in a fixed order."""
        implied = [
            Rule(f"column.{column.name}.not-null", "not_null", (column.name,))
            for column in self.columns
            if not column.nullable
        ]
        if self.key:
            implied.append(Rule("key.unique", "unique", self.key))
        if not any(rule.kind == "row_count" for rule in self.rules):
            implied.append(Rule("rows.present", "row_count", minimum=1))
        return (*implied, *self.rules)

    def personal(self) -> frozenset[str]:
        """Return the names of columns that hold personal data of any class."""
        return frozenset(item.name for item in self.columns if item.personal_data != "none")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, in the order in which owners write it."""
        data: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("owner", "source", "description", "contact", "location", "format")
        }
        data["format_version"] = 0
        data["version"] = str(self.version)
        data["license"] = self.license
        data["purpose"] = self.purpose
        data["retention_days"] = self.retention_days
        data["lineage_anchor"] = self.lineage_anchor
        data["on_violation"] = self.on_violation
        data["fuse"] = dict(vars(self.fuse))
        if self.freshness:
            data["freshness"] = dict(vars(self.freshness))
        data["consumers"] = [dict(vars(consumer)) for consumer in self.consumers]
        data["schema_hash"] = self.schema_hash
        data["key"] = list(self.key)
        data["columns"] = [column.to_dict() for column in self.columns]
        data["rules"] = [rule.to_dict() for rule in self.rules]
        return data


def _member(column: Column) -> dict[str, Any]:
    data: dict[str, Any] = {"name": column.name, "type": column.type}
    if column.children:
        data["children"] = [_member(child) for child in column.children]
    return data
