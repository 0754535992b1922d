"""Turns a joined table into what a bundle holds: the Parquet part and the manifest."""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from contracts.base import clock, digest
from contracts.features import cells
from contracts.features.bundle import BundleColumn, BundleInput, BundleManifest, BundlePart, Role
from contracts.features.definition import FeatureDefinition
from contracts.features.inputs import InputData
from contracts.features.join import Joined

PART = "part-00000.parquet"


def encode(table: Any) -> bytes:
    """Return a table as Parquet; the bytes depend on the table and the writer's version only."""
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(
        table,
        stream,
        compression="zstd",
        compression_level=1,
        version="2.6",
        store_schema=False,
        row_group_size=4 * cells.BLOCK_ROWS,
        write_page_checksum=True,
    )
    return stream.getvalue()


def describe(
    definition: FeatureDefinition,
    inputs: Mapping[str, InputData],
    joined: Joined,
    part: bytes,
    *,
    as_of: datetime,
) -> BundleManifest:
    """Return the manifest of a joined table, with the digest of every cell."""
    measured = cells.measure(joined.table)
    kinds = {feature.name: feature.kind for feature in definition.features}
    columns = tuple(
        BundleColumn(
            name, measured.types[name], _role(definition, name), kinds.get(name, ""), digests
        )
        for name, digests in measured.digests.items()
    )
    return BundleManifest(
        definition=definition.name,
        definition_digest=definition.digest,
        inputs=tuple(
            BundleInput(
                name,
                item.contract,
                item.schema_hash,
                tuple((batch.name, batch.digest) for batch in item.ordered),
            )
            for name, item in sorted(inputs.items())
        ),
        columns=columns,
        rows=joined.table.num_rows,
        excluded_rows=joined.excluded_rows,
        block_rows=cells.BLOCK_ROWS,
        block_bounds=_bounds(joined.table, definition.event_time.name),
        as_of=as_of,
        parts=(BundlePart(PART, len(part), digest.of_bytes(part)),),
    )


def _role(definition: FeatureDefinition, name: str) -> Role:
    if name == definition.label.name:
        return "label"
    if name == definition.event_time.name:
        return "event_time"
    return "feature" if name in {item.name for item in definition.features} else "key"


def _bounds(table: Any, event_time: str) -> tuple[tuple[str, str], ...]:
    column = table[event_time]
    return tuple(
        (
            clock.to_text(column[start].as_py()),
            clock.to_text(column[start + count - 1].as_py()),
        )
        for start, count in cells.blocks(table.num_rows, cells.BLOCK_ROWS)
    )
