"""Registered releases."""

from __future__ import annotations

import pytest

from contracts.base import digest
from contracts.base.errors import InputError, RefusedError
from flows.candidates import candidate
from flows.context import Context

FIRST, SECOND, SET = (digest.of_bytes(name) for name in (b"first", b"second", b"set"))


@pytest.fixture
def registered(here: Context) -> Context:
    for model, subject in (("tiny", FIRST), ("tiny", SECOND), ("other", digest.of_bytes(b"x"))):
        here.ledger.append("candidate", subject, {"model": model, "set_digest": SET})
    return here


def test_the_newest_of_the_model_counts(registered: Context) -> None:
    """Without a digest it is the newest, and never another model's."""
    ref = candidate(registered, "tiny", None)
    assert (ref.repository, ref.digest, ref.set_digest) == ("tiny", SECOND, SET)


def test_one_may_be_named(registered: Context) -> None:
    """An older release is found by its digest."""
    assert candidate(registered, "tiny", FIRST).digest == FIRST


def test_what_is_not_registered_is_refused(registered: Context) -> None:
    """The error names what was asked for and what to do."""
    unknown = digest.of_bytes(b"unknown")
    with pytest.raises(RefusedError, match=f"as {unknown}.*Run `caisson release tiny` first"):
        candidate(registered, "tiny", unknown)
    with pytest.raises(RefusedError, match="no release of absent is registered"):
        candidate(registered, "absent", None)
    with pytest.raises(InputError, match="package"):
        candidate(registered, "tiny", "newest")
