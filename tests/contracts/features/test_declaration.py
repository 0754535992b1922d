"""Feature definitions are read strictly, and a leak is refused by name."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.base import canonical
from contracts.base.errors import BundleInvalid, InputError
from contracts.features import declaration
from contracts.features.definition import Reference
from tests.fakes import observations

FORBIDDEN = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]
NAME = "nyc/flights/arrival-delay"


@pytest.fixture(scope="module")
def published(root: Path) -> Path:
    return root / "contracts" / "published"


def test_the_published_definition_is_what_the_issue_says(published: Path) -> None:
    """The flights' definition predicts lateness at scheduled departure from 17 features."""
    found = declaration.load(published, NAME)
    assert {str(reference) for reference in found.known_later} == {
        f"flights.{column}" for column in FORBIDDEN
    }
    assert (str(found.label.column), found.label.above) == ("flights.arr_delay", 15)
    assert [feature.name for feature in found.features][:3] == ["carrier", "origin", "dest"]
    assert len(found.features) == 17
    assert declaration.names(published) == [NAME]


@pytest.mark.parametrize("column", FORBIDDEN)
def test_what_is_known_only_later_is_no_feature(published: Path, column: str) -> None:
    """A feature of a column known only after departure is refused, feature and column named."""
    path = published / f"{NAME}.features.json"
    text = path.read_text().replace('"flights.distance"', f'"flights.{column}"')
    with pytest.raises(
        BundleInvalid, match=rf"feature distance.*flights\.{column}.*known only later"
    ):
        declaration.parse(text.encode())


def test_the_labels_own_column_leaks_even_if_nobody_lists_it() -> None:
    """A feature that reads the label's column is refused though known_later is empty."""
    leak = {"name": "x", "kind": "numeric", "transform": "value", "columns": ["trips.delay"]}
    with pytest.raises(BundleInvalid, match=r"feature x: .*trips\.delay"):
        observations.definition(features=[leak], known_later=[])


def test_keys_moments_and_joins_may_not_leak_either() -> None:
    """Nothing that is computed at the moment of prediction reads what is known later."""
    inputs = copy.deepcopy(observations.PLAIN["inputs"])
    inputs[1]["match"][0]["equals"] = "trips.left"
    with pytest.raises(BundleInvalid) as caught:
        observations.definition(
            key=[{"name": "number", "column": "trips.left"}],
            event_time={"name": "start", "transform": "value", "columns": ["trips.left"]},
            inputs=inputs,
        )
    for reader in ("key number", "event time start", "input weather"):
        assert f"{reader}: expected columns known" in str(caught.value)


def test_only_the_columns_needed_are_read() -> None:
    """Of each input come the columns that features, joins, key, moment and label use."""
    found = observations.definition()
    assert found.columns_of(found.joined[0]) == ("place", "time", "warmth")
    assert "left" not in found.columns_of(found.spine)
    assert "delay" in found.columns_of(found.spine)


def test_the_digest_follows_from_the_content() -> None:
    """Layout does not change a definition's identity; any content does."""
    first = observations.definition()
    spaced = canonical.dumps(observations.PLAIN).replace(b",", b" ,\n")
    assert declaration.parse(spaced).digest == first.digest
    assert observations.definition(title="Another").digest != first.digest


FEATURE = observations.PLAIN["features"][3]
CASES: dict[str, dict[str, Any]] = {
    "unknown format": {"format_version": 1},
    "bad name": {"name": "trips"},
    "another source's name": {"name": "small/weather/lateness"},
    "no spine": {"inputs": observations.PLAIN["inputs"][1:]},
    "two spines": {"inputs": [observations.PLAIN["inputs"][0]] * 2},
    "spine that matches": {
        "inputs": [
            {**observations.PLAIN["inputs"][0], "match": [{"column": "a", "equals": "trips.a"}]}
        ]
    },
    "join without match": {
        "inputs": [
            observations.PLAIN["inputs"][0],
            {"name": "weather", "contract": "small/weather@1.0.0", "join": "lookup"},
        ]
    },
    "bad contract": {"inputs": [{"name": "trips", "contract": "small/trips", "join": "spine"}]},
    "no features": {"features": []},
    "feature twice": {"features": [FEATURE, FEATURE]},
    "feature named like the label": {"features": [{**FEATURE, "name": "late"}]},
    "unknown transform": {"features": [{**FEATURE, "transform": "eval"}]},
    "too many columns": {"features": [{**FEATURE, "columns": ["trips.a", "trips.b"]}]},
    "column without input": {"features": [{**FEATURE, "columns": ["length"]}]},
    "column of an unknown input": {"features": [{**FEATURE, "columns": ["other.length"]}]},
    "text from a number's transform": {
        "features": [{**FEATURE, "kind": "categorical", "transform": "minute_of_day"}]
    },
    "label of a joined input": {"label": {"name": "late", "column": "weather.warmth", "above": 1}},
    "label without threshold": {"label": {"name": "late", "column": "trips.delay"}},
    "key without dot": {"key": [{"name": "number", "column": "number"}]},
    "later column without dot": {"known_later": ["left"]},
    "unknown field": {"query": "SELECT 1"},
}


@pytest.mark.parametrize("case", CASES)
def test_malformed_definitions_are_refused(case: str) -> None:
    """Whatever is wrong is a BundleInvalid that says where."""
    with pytest.raises(BundleInvalid, match="expected"):
        observations.definition(**CASES[case])


@pytest.mark.parametrize("field", [name for name in observations.PLAIN if name != "known_later"])
def test_every_field_must_be_there(field: str) -> None:
    """A definition that lacks a field is refused."""
    plain = {name: value for name, value in observations.PLAIN.items() if name != field}
    optional = field in ("key",)
    with contextlib.nullcontext() if optional else pytest.raises(BundleInvalid):
        declaration.parse(canonical.dumps(plain))


def test_all_problems_are_told_at_once() -> None:
    """Two mistakes give one error that names both."""
    with pytest.raises(BundleInvalid, match=r"2 problems:(.|\n)*title(.|\n)*label\.above"):
        observations.definition(title=5, label={"name": "late", "column": "trips.delay"})


def test_a_definition_lies_under_its_own_name(tmp_path: Path) -> None:
    """A file that defines another name, a missing one and a path as name are refused."""
    path = tmp_path / "small" / "trips" / "other.features.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(canonical.dumps(observations.PLAIN))
    with pytest.raises(BundleInvalid, match="another name"):
        declaration.load(tmp_path, "small/trips/other")
    with pytest.raises(InputError, match="missing"):
        declaration.load(tmp_path, "small/trips/lateness")
    with pytest.raises(BundleInvalid, match="not the name"):
        declaration.load(tmp_path, "../small/trips")
    assert declaration.names(tmp_path) == ["small/trips/other"]


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Arbitrary bytes never surface as another kind of error."""
    with contextlib.suppress(InputError):
        declaration.parse(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(deadline=None)
@given(field=st.sampled_from(sorted(observations.PLAIN)), value=json_values)
def test_any_value_of_a_field_is_read_or_refused(field: str, value: Any) -> None:
    """A field may hold anything: the answer is a definition or a BundleInvalid."""
    with contextlib.suppress(InputError):
        observations.definition(**{field: value})


def test_references_are_written_as_read() -> None:
    """A reference prints as input.column."""
    assert str(Reference("trips", "left")) == "trips.left"
