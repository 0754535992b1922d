"""The manifest of a feature bundle, its root, and its version.

The root is the identity of a bundle: it covers the schema, every cell, the definition, the
contracts and the batches. What may differ between two makers of the same content (the Parquet
bytes, time, host) lies beside the root.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from contracts.base import canonical, clock, digest
from contracts.base.digest import Digest
from contracts.base.errors import BundleInvalid, DigestMismatch, InputError
from contracts.features.cells import TYPES
from contracts.reading import Problem, Reader

Role = Literal["key", "event_time", "feature", "label"]

MANIFEST = "manifest.json"
_LIMIT = 64 * 2**20
_MOST = 100_000
_ROLES = ("key", "event_time", "feature", "label")
_SINGLE: tuple[Role, ...] = ("event_time", "label")
_VERSION = re.compile(r"[0-9]{8}-[0-9a-f]{12}")
_PART = re.compile(r"part-[0-9]{5}\.parquet")
_NOTHING = Digest(f"sha256:{'0' * 64}")


@dataclass(frozen=True)
class BundleColumn:
    """One column of a bundle.

    Attributes:
        name: Its name.
        type: Canonical type.
        role: What it is for.
        kind: ``numeric`` or ``categorical`` for features, else empty.
        cells: Digest of each block.
    """

    name: str
    type: str
    role: Role
    kind: str
    cells: tuple[Digest, ...]


@dataclass(frozen=True)
class BundleInput:
    """What a bundle was computed from.

    Attributes:
        name: The input's name in the definition.
        contract: Identity of its contract.
        schema_hash: Canonical schema of its data, as the contract promises and the data has it.
        batches: Name and digest of each batch, sorted by name.
    """

    name: str
    contract: str
    schema_hash: Digest
    batches: tuple[tuple[str, Digest], ...]


@dataclass(frozen=True)
class BundlePart:
    """One file of a bundle's data."""

    path: str
    size: int
    sha256: Digest


@dataclass(frozen=True)
class BundleManifest:
    """All that a bundle says about itself.

    Attributes:
        definition: Name of the feature definition.
        definition_digest: Its identity.
        inputs: What it was computed from.
        columns: In the order of the table.
        rows: Rows of the table.
        excluded_rows: Rows left out because they have no label.
        block_rows: Rows a block.
        block_bounds: Event time of the first and last row of each block.
        as_of: Logical time of the data.
        parts: Files of the data; not part of the root, because writers differ in bytes.
    """

    definition: str
    definition_digest: Digest
    inputs: tuple[BundleInput, ...]
    columns: tuple[BundleColumn, ...]
    rows: int
    excluded_rows: int
    block_rows: int
    block_bounds: tuple[tuple[str, str], ...]
    as_of: datetime
    parts: tuple[BundlePart, ...]

    @property
    def values(self) -> Digest:
        """Identity of the table alone, whatever it was computed from."""
        content = self.content()
        names = ("columns", "rows", "block_rows")
        return digest.of_json({name: content[name] for name in names})

    @property
    def root(self) -> Digest:
        """Identity of the bundle."""
        return digest.of_json(self.content())

    @property
    def version(self) -> str:
        """The feature version, ``YYYYMMDD-<12 hex of the root>``."""
        return f"{self.as_of.astimezone(UTC):%Y%m%d}-{digest.short(self.root)}"

    @property
    def features(self) -> tuple[BundleColumn, ...]:
        """The feature columns, in order."""
        return tuple(column for column in self.columns if column.role == "feature")

    @property
    def label(self) -> str:
        """Name of the label column."""
        return next(column.name for column in self.columns if column.role == "label")

    @property
    def spine(self) -> BundleInput:
        """The input whose rows are the rows of the bundle; the definition is named after it."""
        source = self.definition.rpartition("/")[0]
        return next(item for item in self.inputs if item.contract.partition("@")[0] == source)

    def content(self) -> dict[str, Any]:
        """Return what the root covers, as plain data."""
        return {
            "definition": self.definition,
            "definition_digest": self.definition_digest,
            "inputs": [
                {**vars(item), "batches": [list(batch) for batch in item.batches]}
                for item in self.inputs
            ],
            "columns": [{**vars(item), "cells": list(item.cells)} for item in self.columns],
            "rows": self.rows,
            "excluded_rows": self.excluded_rows,
            "block_rows": self.block_rows,
            "block_bounds": [list(bounds) for bounds in self.block_bounds],
        }

    def dumps(self) -> bytes:
        """Return the manifest file."""
        return canonical.dumps(
            {
                "format_version": 0,
                "version": self.version,
                "root": self.root,
                "as_of": clock.to_text(self.as_of),
                "content": self.content(),
                "parts": [dict(vars(part)) for part in self.parts],
            }
        )


def archive_name(version: str) -> str:
    """Return the name of a version's archive, ``feature_bundle_<date>_<hash>.tar.gz``."""
    return f"feature_bundle_{check_version(version).replace('-', '_')}.tar.gz"


def is_version(text: str) -> bool:
    """Return whether text has the form of a feature version."""
    return bool(_VERSION.fullmatch(text))


def check_version(version: str) -> str:
    """Return a feature version that is well formed.

    Raises:
        BundleInvalid: If it is not.
    """
    if not isinstance(version, str) or not is_version(version):
        raise BundleInvalid(
            "not a feature version",
            expected="a date and twelve hexadecimal digits, such as 20131101-0123456789ab",
            found=repr(version)[:100],
        )
    return version


def parse(data: bytes, *, where: str) -> BundleManifest:
    """Read a manifest strictly.

    Raises:
        BundleInvalid: With every problem, if it is malformed.
        DigestMismatch: If root or version do not follow from the content.
    """
    raw = canonical.loads(data, limit=_LIMIT, where=where)
    problems: list[Problem] = []
    reader = Reader(raw, "", problems)
    reader.integer("format_version", 0, 0)
    root = reader.parsed("root", digest.parse, _NOTHING)
    version = reader.text("version")
    content = reader.child("content")
    manifest = BundleManifest(
        definition=content.text("definition"),
        definition_digest=content.parsed("definition_digest", digest.parse, _NOTHING),
        inputs=tuple(_input(item) for item in content.children("inputs", limit=_MOST)),
        columns=tuple(_column(item) for item in content.children("columns", limit=_MOST)),
        rows=content.integer("rows", 0, 2**53 - 1),
        excluded_rows=content.integer("excluded_rows", 0, 2**53 - 1),
        block_rows=content.integer("block_rows", 1, 2**31 - 1),
        block_bounds=tuple(_pairs(content, "block_bounds")),
        as_of=reader.parsed("as_of", clock.from_text, datetime.min.replace(tzinfo=UTC)),
        parts=tuple(_part(item) for item in reader.children("parts", limit=_MOST)),
    )
    content.finish()
    reader.finish()
    problems += _structure(manifest)
    if problems:
        lines = "\n".join(f"  {problem}" for problem in problems[:20])
        raise BundleInvalid(f"{len(problems)} problems:\n{lines}", location=where)
    for name, promised, actual in (
        ("root", root, manifest.root),
        ("version", version, manifest.version),
    ):
        if promised != actual:
            raise DigestMismatch(
                f"{name} does not follow from the content",
                expected=promised,
                found=actual,
                location=where,
                remedy="Make the snapshot again.",
            )
    return manifest


def _input(reader: Reader) -> BundleInput:
    item = BundleInput(
        name=reader.text("name"),
        contract=reader.text("contract"),
        schema_hash=reader.parsed("schema_hash", digest.parse, _NOTHING),
        batches=tuple((name, Digest(content)) for name, content in _pairs(reader, "batches")),
    )
    for _, content in item.batches:
        _digest(reader, "batches", content)
    reader.finish()
    return item


def _column(reader: Reader) -> BundleColumn:
    column = BundleColumn(
        name=reader.text("name"),
        type=reader.choice("type", TYPES),
        role=cast("Role", reader.choice("role", _ROLES)),
        kind=reader.choice("kind", ("", "numeric", "categorical")),
        cells=tuple(_digest(reader, "cells", item) for item in reader.items("cells", limit=_MOST)),
    )
    reader.finish()
    return column


def _part(reader: Reader) -> BundlePart:
    path = reader.text("path")
    if not _PART.fullmatch(path):
        reader.wrong("path", "part-00000.parquet or a later number", repr(path)[:80])
    size = reader.integer("size", 0, 2**53 - 1)
    part = BundlePart(path, size, reader.parsed("sha256", digest.parse, _NOTHING))
    reader.finish()
    return part


def _pairs(reader: Reader, field: str) -> list[tuple[str, str]]:
    found = []
    for item in reader.items(field, limit=_MOST):
        plain = isinstance(item, list) and len(item) == 2
        if not plain or not all(isinstance(part, str) for part in item):
            reader.wrong(field, "pairs of text", repr(item)[:80])
            return []
        found.append((item[0], item[1]))
    return found


def _digest(reader: Reader, field: str, item: Any) -> Digest:
    try:
        return digest.parse(item)
    except InputError as err:
        reader.wrong(field, err.expected, err.found)
        return _NOTHING


def _structure(manifest: BundleManifest) -> list[Problem]:
    problems: list[Problem] = []
    roles = [column.role for column in manifest.columns]
    problems += [
        Problem("columns", f"one {role}", str(roles.count(role)))
        for role in _SINGLE
        if roles.count(role) != 1
    ]
    names = [column.name for column in manifest.columns]
    if len(set(names)) != len(names):
        problems.append(Problem("columns", "each name once", "a name twice"))
    count = -(-manifest.rows // manifest.block_rows)
    problems += [
        Problem(column.name, f"{count} cells", str(len(column.cells)))
        for column in manifest.columns
        if len(column.cells) != count
    ]
    if len(manifest.block_bounds) != count:
        problems.append(Problem("block_bounds", f"{count} pairs", str(len(manifest.block_bounds))))
    source = manifest.definition.rpartition("/")[0]
    if [item.contract.partition("@")[0] for item in manifest.inputs].count(source) != 1:
        problems.append(Problem("inputs", f"one of {source}", "another number"))
    if len(manifest.parts) != 1:
        problems.append(Problem("parts", "one part", str(len(manifest.parts))))
    return problems
