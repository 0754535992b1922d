from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.base.digest import Digest
from contracts.base.errors import CorruptLog, InputError
from tasks.ledger.record import GENESIS, KINDS, Record, check, link, seal

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
entries = st.tuples(
    st.sampled_from(KINDS),
    st.text(max_size=10),
    st.dictionaries(st.text(max_size=5), plain, max_size=3),
)


def chain(items: list[tuple[str, str, dict[str, object]]]) -> list[Record]:
    records: list[Record] = []
    for kind, subject, body in items:
        last = records[-1] if records else None
        records.append(
            link(last, at="2026-11-30T21:00:00.000Z", kind=kind, subject=subject, body=body)
        )
    return records


chains = st.lists(entries, min_size=1, max_size=6).map(chain)


@settings(deadline=None, max_examples=60)
@given(chains)
def test_a_chain_holds(records: list[Record]) -> None:
    """Whatever is recorded, the chain checks, and starts at the common beginning."""
    assert check(records) == records[-1]
    assert records[0].previous == GENESIS
    assert check([]) is None


@settings(deadline=None, max_examples=60)
@given(chains, st.data())
def test_any_edit_is_found(records: list[Record], data: st.DataObject) -> None:
    """Changing any field of any record breaks the chain, even with its own digest mended."""
    place = data.draw(st.integers(0, len(records) - 1))
    field = data.draw(st.sampled_from(["at", "kind", "subject", "body", "previous", "number"]))
    old = records[place]
    new = {
        "at": "2027-01-01T00:00:00.000Z",
        "kind": KINDS[(KINDS.index(old.kind) + 1) % len(KINDS)],
        "subject": old.subject + "x",
        "body": {**old.body, "added": 1, "more": old.number},
        "previous": Digest(f"sha256:{'0' * 64}"),
        "number": old.number + 1,
    }[field]
    edited = replace(old, **{field: new})
    with pytest.raises(CorruptLog):
        check([*records[:place], edited, *records[place + 1 :]])
    mended = replace(edited, digest=seal(edited))
    if place < len(records) - 1 or field in ("previous", "number"):
        with pytest.raises(CorruptLog):
            check([*records[:place], mended, *records[place + 1 :]])


@settings(deadline=None, max_examples=60)
@given(chains.filter(lambda records: len(records) > 1), st.data())
def test_a_missing_or_moved_record_is_found(records: list[Record], data: st.DataObject) -> None:
    """Taking a record out of the middle, or swapping two, breaks the chain."""
    place = data.draw(st.integers(0, len(records) - 2))
    with pytest.raises(CorruptLog):
        check([*records[:place], *records[place + 1 :]])
    swapped = [*records[:place], records[place + 1], records[place], *records[place + 2 :]]
    with pytest.raises(CorruptLog):
        check(swapped)


def test_an_unknown_kind_is_refused() -> None:
    """A record says what happened in one of the known words."""
    with pytest.raises(InputError, match="unknown kind"):
        link(None, at="", kind="party", subject="", body={})


def test_a_body_must_be_plain_data() -> None:
    """What canonical JSON cannot carry is refused before anything is written."""
    with pytest.raises(InputError):
        link(None, at="", kind="deploy", subject="", body={"x": float("nan")})
