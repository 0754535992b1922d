"""The point-in-time join equals an oracle that loops over rows, whatever the order of files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.base.errors import BundleInvalid, SourceUnavailable
from contracts.features.join import Joined, join
from tests.fakes import observations
from tests.fakes.observations import Row, trip, vehicle, weather

numbers = st.none() | st.floats(-5, 5, width=32) | st.sampled_from([float("nan"), -0.0])
places = st.sampled_from([None, "A", "B", "ä"])
trips = st.builds(
    trip,
    st.integers(0, 5),
    at=st.integers(0, 300),
    place=places,
    vehicle=st.sampled_from([None, "v1", "v2", "v3"]),
    planned=st.integers(0, 2359),
    length=numbers,
    delay=st.none() | st.integers(-60, 60),
)
worlds = st.fixed_dictionaries(
    {
        "trips": st.lists(trips, min_size=1, max_size=12),
        "weather": st.lists(
            st.builds(
                weather,
                st.integers(-200, 400),
                st.none() | st.integers(-5, 5).map(float),
                places,
            ),
            max_size=12,
        ),
        "vehicles": st.sets(st.sampled_from(["v1", "v2"])).map(
            lambda names: [vehicle(name, 1990 + len(name)) for name in names]
        ),
    }
)


def _join(folder: Path, world: dict[str, list[Row]], **options: Any) -> Joined:
    cut = options.pop("cut", 1)
    data = observations.inputs(folder, world, cut=cut)
    return join(observations.definition(), observations.paths(data), **options)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(world=worlds, cut=st.integers(1, 3), labelled=st.booleans())
def test_the_join_equals_the_oracle(
    tmp_path: Path, world: dict[str, list[Row]], cut: int, labelled: bool
) -> None:
    """Each row sees the newest observation known at its moment; none is lost, none doubled."""
    made = _join(tmp_path, world, cut=cut, labelled=labelled)
    assert made.table.to_pylist() == observations.expected(world, labelled=labelled)
    assert made.input_rows == len(world["trips"])
    assert made.table.num_rows == made.input_rows - made.excluded_rows


def test_order_of_rows_and_files_does_not_matter(tmp_path: Path) -> None:
    """Shuffled rows in other files give the same table."""
    world = observations.ordinary(200)
    first = _join(tmp_path / "a", world)
    shuffled = {kind: random.Random(1).sample(rows, len(rows)) for kind, rows in world.items()}
    assert _join(tmp_path / "b", shuffled, cut=3).table.equals(first.table)


def test_nothing_of_the_future_is_seen(tmp_path: Path) -> None:
    """An observation one minute after the moment changes nothing; at the moment itself it does."""
    world = {"trips": [trip(0, at=60)], "weather": [weather(60, 1.0)], "vehicles": []}
    assert _join(tmp_path / "a", world).table["warmth"].to_pylist() == [1.0]
    world["weather"] = [weather(61, 2.0), weather(0, 3.0)]
    assert _join(tmp_path / "b", world).table["warmth"].to_pylist() == [3.0]


def test_old_observations_count_as_missing(tmp_path: Path) -> None:
    """An observation as old as allowed is used; a minute more and it is missing."""
    limit = observations.MAXIMUM_AGE
    world = {
        "trips": [trip(0, at=limit), trip(1, at=limit + 1)],
        "weather": [weather(0, 1.0)],
        "vehicles": [],
    }
    assert _join(tmp_path, world).table["warmth"].to_pylist() == [1.0, None]


def test_rows_without_label_are_counted(tmp_path: Path) -> None:
    """A row without label is left out and counted, and kept where labels are not needed."""
    world = observations.ordinary(10)
    world["trips"][3]["delay"] = None
    made = _join(tmp_path, world)
    assert (made.input_rows, made.excluded_rows, made.table.num_rows) == (10, 1, 9)
    kept = _join(tmp_path, world, labelled=False)
    assert (kept.excluded_rows, kept.table["late"].null_count) == (0, 1)


def test_a_key_looked_up_twice_is_refused(tmp_path: Path) -> None:
    """Two rows of one key would double a row of the spine; both are refused by name."""
    world = observations.ordinary(3)
    world["vehicles"] = [vehicle("v1"), vehicle("v1", 2001)]
    with pytest.raises(BundleInvalid, match=r"2 rows for v1"):
        _join(tmp_path, world)


def test_every_row_needs_a_moment(tmp_path: Path) -> None:
    """A row whose moment of prediction is unknown is refused, not dropped."""
    world = observations.ordinary(3)
    world["trips"][0]["minute"] = None
    with pytest.raises(BundleInvalid, match="1 rows have no moment"):
        _join(tmp_path, world)


def test_missing_inputs_and_broken_files_are_named(tmp_path: Path) -> None:
    """An input without files and a file that is no Parquet are clear messages."""
    files = observations.paths(observations.inputs(tmp_path, observations.ordinary(3)))
    with pytest.raises(BundleInvalid, match=r"no files.*weather"):
        join(observations.definition(), {**files, "weather": []})
    files["weather"][0].write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(SourceUnavailable, match="cannot be read"):
        join(observations.definition(), files)


def test_a_key_must_be_exact(tmp_path: Path) -> None:
    """A floating-point column cannot tell rows apart."""
    definition = observations.definition(key=[{"name": "number", "column": "trips.length"}])
    data = observations.inputs(tmp_path, observations.ordinary(3))
    with pytest.raises(BundleInvalid, match="cannot be a key"):
        join(definition, observations.paths(data))


def test_names_cannot_break_out_of_the_statement(tmp_path: Path) -> None:
    """A column name made to end a quotation is only an unknown column."""
    feature = {
        "name": "x",
        "kind": "numeric",
        "transform": "value",
        "columns": ['trips.a"; DROP TABLE trips; --'],
    }
    data = observations.inputs(tmp_path, observations.ordinary(3))
    with pytest.raises(SourceUnavailable):
        join(observations.definition(features=[feature]), observations.paths(data))


def test_moments_and_texts_can_be_keys(tmp_path: Path) -> None:
    """A key may be text, a whole number or a time; an event time may be a column as it is."""
    definition = observations.definition(
        key=[{"name": "hour", "column": "trips.hour"}, {"name": "where", "column": "trips.place"}],
        event_time={"name": "start", "transform": "value", "columns": ["trips.hour"]},
    )
    made = join(
        definition, observations.paths(observations.inputs(tmp_path, observations.ordinary(3)))
    )
    assert [str(kind) for kind in made.table.schema.types[:3]] == [
        "timestamp[us, tz=UTC]",
        "string",
        "timestamp[us, tz=UTC]",
    ]
