"""The point-in-time join: one output row per row of the spine, knowing only what was known then.

The engine is DuckDB. Of an ``asof`` input a row sees the newest observation at or before its own
moment of prediction, never a later one and none older than the definition allows. The order of the
result is total, so the same rows give the same table whatever the order of files or rows was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from contracts.base.errors import BundleInvalid, IntegrityError
from contracts.engine import duck
from contracts.engine.duck import Connection, quote_name
from contracts.features.definition import Feature, FeatureDefinition, Input, Moment, Reference

_MOMENT = "moment of prediction"
_MEMORY = "1GB"


@dataclass(frozen=True)
class Joined:
    """What a join made.

    Attributes:
        table: A pyarrow table: key columns, event time, features, label.
        input_rows: Rows of the spine.
        excluded_rows: Of these, the rows without a label, which the table leaves out.
    """

    table: Any
    input_rows: int
    excluded_rows: int


def join(
    definition: FeatureDefinition,
    inputs: Mapping[str, Sequence[Path]],
    *,
    labelled: bool = True,
) -> Joined:
    """Compute the features of a definition.

    Args:
        definition: What to compute.
        inputs: Parquet files of each input, by the input's name.
        labelled: Leave out rows without a label.

    Raises:
        BundleInvalid: If files are missing for an input, a row has no moment of prediction, or a
            looked-up key is there twice.
        SourceUnavailable: If the data cannot be read.
        IntegrityError: If a row was lost or doubled, which would be a fault of the engine.
    """
    missing = [item.name for item in definition.inputs if not inputs.get(item.name)]
    if missing:
        raise BundleInvalid(
            "inputs have no files", found=", ".join(missing), location=definition.name
        )
    paths = [path for item in definition.inputs for path in inputs[item.name]]
    with duck.opened(paths, where=definition.name, memory_limit=_MEMORY) as connection:
        total, without = _count(connection, definition, inputs)
        for source in definition.joined:
            if source.join == "lookup":
                _refuse_twins(connection, source, inputs[source.name])
        # Taken from a relation: of a cursor's result the engine would make an extra copy.
        relation = cast("Any", connection).sql(_query(definition, inputs, labelled))
        table = relation.to_arrow_table()
    excluded = without if labelled else 0
    if table.num_rows != total - excluded:
        raise IntegrityError(
            "the join lost or doubled rows",
            expected=f"{total - excluded} rows",
            found=f"{table.num_rows} rows",
            location=definition.name,
        )
    return Joined(_typed(table, definition), total, excluded)


def _count(
    connection: Connection, definition: FeatureDefinition, inputs: Mapping[str, Sequence[Path]]
) -> tuple[int, int]:
    spine = definition.spine
    moment = _moment(definition.event_time)
    label = _column(definition.label.column)
    row = connection.execute(
        f"SELECT count(*), count(*) - count({label}), count(*) - count({moment})"  # noqa: S608 - names are quoted
        f" FROM {duck.parquet(inputs[spine.name])} AS {quote_name(spine.name)}"
    ).fetchone()
    total, without, timeless = row or (0, 0, 0)
    if timeless:
        raise BundleInvalid(
            f"{timeless} rows have no moment of prediction",
            location=f"{definition.name}: {definition.event_time.name}",
            remedy="Let the contract forbid null in these columns.",
        )
    return total, without


def _refuse_twins(connection: Connection, source: Input, paths: Sequence[Path]) -> None:
    columns = ", ".join(quote_name(column) for column, _ in source.match)
    present = " AND ".join(f"{quote_name(column)} IS NOT NULL" for column, _ in source.match)
    row = connection.execute(
        f"SELECT count(*), {columns} FROM {duck.parquet(paths)} WHERE {present}"  # noqa: S608 - names are quoted
        f" GROUP BY {columns} HAVING count(*) > 1 ORDER BY {columns} LIMIT 1"
    ).fetchone()
    if row is not None:
        raise BundleInvalid(
            "a looked-up key is there more than once",
            expected="one row for each key",
            found=f"{row[0]} rows for {', '.join(map(str, row[1:]))}",
            location=source.source,
            remedy="Give each key one row, or join the source as of a time.",
        )


def _query(
    definition: FeatureDefinition, inputs: Mapping[str, Sequence[Path]], labelled: bool
) -> str:
    """Return the statement; every name in it is quoted, every value is of a closed list."""
    spine = definition.spine
    tables = [
        f"{quote_name(item.name)} AS ({_table(definition, item, inputs[item.name])})"
        for item in definition.inputs
    ]
    joins = [_join(item, quote_name(spine.name)) for item in definition.joined]
    label = _column(definition.label.column)
    outputs = [
        *((column.name, _column(column.column)) for column in definition.key),
        (definition.event_time.name, f"{quote_name(spine.name)}.{quote_name(_MOMENT)}"),
        *((feature.name, _feature(definition, feature)) for feature in definition.features),
        (definition.label.name, f"{label} > {definition.label.above!r}"),
    ]
    selected = ", ".join(f"{expression} AS {quote_name(name)}" for name, expression in outputs)
    first = [definition.event_time.name, *(column.name for column in definition.key)]
    order = [*first, *(name for name, _ in outputs if name not in first)]
    ordered = ", ".join(f"{quote_name(name)} NULLS FIRST" for name in order)
    where = f" WHERE {label} IS NOT NULL" if labelled else ""
    return (
        f"WITH {', '.join(tables)} SELECT * FROM (SELECT {selected}"  # noqa: S608 - names are quoted
        f" FROM {quote_name(spine.name)} {' '.join(joins)}{where}) ORDER BY {ordered}"
    )


def _table(definition: FeatureDefinition, source: Input, paths: Sequence[Path]) -> str:
    names = [quote_name(column) for column in definition.columns_of(source)]
    columns = ", ".join(names)
    read = f"SELECT {columns} FROM {duck.parquet(paths)}"  # noqa: S608 - names are quoted
    alias = quote_name(source.name)
    if source.join == "spine":
        moment = f"{_moment(definition.event_time)} AS {quote_name(_MOMENT)}"
        return f"SELECT *, {moment} FROM ({read}) AS {alias}"  # noqa: S608 - names are quoted
    if source.join == "lookup":
        return read
    # Two observations of one moment: the last in the order of all columns wins, always the same.
    time = quote_name(source.time)
    keys = ", ".join([*(quote_name(column) for column, _ in source.match), time])
    ranked = ", ".join(f"{name} DESC NULLS LAST" for name in names)
    return (
        f"SELECT *, epoch_us({time}) AS {quote_name(_MOMENT)} FROM ({read}) AS {alias}"  # noqa: S608 - names are quoted
        f" WHERE {time} IS NOT NULL"
        f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {ranked}) = 1"
    )


def _join(source: Input, spine: str) -> str:
    alias = quote_name(source.name)
    conditions = [
        f"{spine}.{quote_name(reference.column)} = {alias}.{quote_name(column)}"
        for column, reference in source.match
    ]
    if source.join == "lookup":
        return f"LEFT JOIN {alias} ON {' AND '.join(conditions)}"
    moment = quote_name(_MOMENT)
    conditions.append(f"{spine}.{moment} >= {alias}.{moment}")
    return f"ASOF LEFT JOIN {alias} ON {' AND '.join(conditions)}"


def _column(reference: Reference) -> str:
    return f"{quote_name(reference.input)}.{quote_name(reference.column)}"


def _moment(moment: Moment) -> str:
    first = f"epoch_us({_column(moment.columns[0])})"
    if moment.transform == "hour_and_minute":
        return f"({first} + {_column(moment.columns[1])}::BIGINT * 60000000)"
    return first


def _feature(definition: FeatureDefinition, feature: Feature) -> str:
    columns = [_known(definition, reference) for reference in feature.columns]
    if feature.kind == "categorical":
        return f"CAST({columns[0]} AS VARCHAR)"
    if feature.transform == "minute_of_day":
        value = f"({columns[0]}::BIGINT // 100 * 60 + {columns[0]}::BIGINT % 100)"
    elif feature.transform == "weekday":
        value = f"(isodow(make_date({', '.join(f'{name}::BIGINT' for name in columns)})) - 1)"
    elif feature.transform == "difference":
        value = f"({columns[0]} - {columns[1]})"
    else:
        value = columns[0]
    return f"CAST({value} AS FLOAT)"


def _known(definition: FeatureDefinition, reference: Reference) -> str:
    """Return a column, null where the joined row is older than the definition allows."""
    source = next(item for item in definition.inputs if item.name == reference.input)
    if source.join != "asof":
        return _column(reference)
    moment = quote_name(_MOMENT)
    age = f"{quote_name(definition.spine.name)}.{moment} - {quote_name(source.name)}.{moment}"
    limit = source.maximum_age_minutes * 60_000_000
    return f"CASE WHEN {age} <= {limit} THEN {_column(reference)} END"


def _typed(table: Any, definition: FeatureDefinition) -> Any:
    """Return the table in the types of a bundle: one form for one value."""
    import pyarrow
    from pyarrow import compute

    numeric = {feature.name for feature in definition.features if feature.kind == "numeric"}
    arrays = []
    for name in table.column_names:
        column = table[name].combine_chunks()
        if name in numeric:
            # NaN means missing here as everywhere in a bundle, and there is one zero.
            missing = compute.is_nan(column)
            column = compute.if_else(missing, pyarrow.scalar(None, column.type), column)
            column = compute.add(column, pyarrow.scalar(0.0, column.type))
        elif name == definition.event_time.name:
            column = column.cast(pyarrow.timestamp("us", tz="UTC"))
        else:
            column = _plain(column, name)
        arrays.append(column)
    return pyarrow.table(arrays, names=table.column_names)


def _plain(column: Any, name: str) -> Any:
    import pyarrow

    kinds = pyarrow.types
    if kinds.is_boolean(column.type) or kinds.is_string(column.type):
        return column
    if kinds.is_integer(column.type):
        return column.cast(pyarrow.int64())
    if kinds.is_large_string(column.type):
        return column.cast(pyarrow.string())
    if kinds.is_timestamp(column.type):
        return column.cast(pyarrow.timestamp("us", tz="UTC"))
    raise BundleInvalid(
        "column cannot be a key",
        expected="text, a whole number or a time",
        found=str(column.type),
        location=name,
    )
