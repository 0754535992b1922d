"""The route word is whole, and the canary share is kept by a stable hash."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model_packages.runtime.serve.route import Route, RouteWord, fraction, idle

_SLOT = st.sampled_from([None, "A", "B"])


@given(_SLOT, _SLOT, st.floats(0, 1))
def test_a_route_survives_its_word(live: object, canary: object, share: float) -> None:
    """All of it fits into 64 bits; the share keeps 32 of them."""
    route = Route(live, canary, share)  # type: ignore[arg-type] # the strategy draws slot names
    word = RouteWord()
    word.write(route)
    found = word.read()
    assert route.pack() < 2**64
    assert (found.live, found.canary) == (live, canary)
    assert abs(found.share - share) < 1e-9
    assert word.read() is found


def test_nothing_is_live_at_first() -> None:
    """A new target serves nothing."""
    assert RouteWord().read() == Route()
    assert Route().choose("r1") is None


def test_the_share_is_kept() -> None:
    """Of many keys the stated part goes to the canary, and the same keys each time."""
    route = Route("A", "B", 0.2)
    chosen = [route.choose(f"request-{number}") for number in range(5000)]
    assert 0.18 < chosen.count("B") / 5000 < 0.22
    assert chosen == [route.choose(f"request-{number}") for number in range(5000)]


@given(st.text(max_size=20))
def test_a_larger_share_keeps_the_keys_of_a_smaller_one(key: str) -> None:
    """Nobody is sent back and forth while a canary grows."""
    if Route("A", "B", 0.1).choose(key) == "B":
        assert Route("A", "B", 0.3).choose(key) == "B"
    assert Route("A", "B", 1.0).choose(key) == "B"
    assert Route("A", "B", 0.0).choose(key) == "A"


def test_the_hash_never_changes() -> None:
    """Anybody can compute it: the first four bytes of the key's sha256."""
    assert fraction("") == 0xE3B0C442 / 2**32


def test_the_idle_slot_is_the_other_one() -> None:
    """There are two."""
    assert [idle(Route()), idle(Route("A")), idle(Route("B"))] == ["A", "B", "A"]
