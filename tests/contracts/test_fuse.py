"""The fuse: its states, what moves it, and that it survives kills and company."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts import fuse
from contracts.base.errors import FuseOpen, InputError, ReportInvalid, UnavailableError
from contracts.fuse import Fuse, TrialRunning
from contracts.objects.folder import FolderStore
from tests.fakes import batches
from tests.fakes.clock import START

CONTRACT = batches.make(fuse={"violations": 2, "retry_after_ms": 3_600_000})
ONE = batches.make()
HOUR = timedelta(hours=1)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "objects")


def _tell(store: FolderStore, batch: str, violated: bool, contract: Any = CONTRACT) -> Fuse:
    return fuse.record(
        store,
        contract,
        "shop/model",
        batch_digest=batch,
        violated=violated,
        reason=f"{batch} is bad",
        now=START,
    )


def _admit(store: FolderStore, later: timedelta = timedelta(), contract: Any = CONTRACT) -> Fuse:
    return fuse.admit(store, contract, "shop/model", START + later)


def _blown(store: FolderStore) -> None:
    _tell(store, "a", violated=True)
    _tell(store, "b", violated=True)


def test_new_fuse_is_closed_and_leaves_no_trace(store: FolderStore) -> None:
    """A fuse that never blew lets batches through and writes nothing."""
    assert _admit(store).state == "closed"
    assert _tell(store, "a", violated=False).state == "closed"
    assert list(store.list("fuses/")) == []
    assert fuse.states(store, CONTRACT) == []


def test_violations_in_a_row_open_it(store: FolderStore) -> None:
    """The number of bad batches that the contract names opens the fuse, and it says why."""
    assert _tell(store, "a", violated=True).state == "closed"
    assert _tell(store, "b", violated=True).state == "open"
    with pytest.raises(FuseOpen, match=r"b is bad.*orders@example\.org") as caught:
        _admit(store)
    assert caught.value.exit_status == 1
    assert [name for name, _ in fuse.states(store, CONTRACT)] == ["shop/model"]


def test_good_batch_between_starts_the_count_again(store: FolderStore) -> None:
    """Only violations in a row count."""
    _tell(store, "a", violated=True)
    _tell(store, "b", violated=False)
    assert _tell(store, "c", violated=True).state == "closed"


def test_same_batch_counts_once(store: FolderStore) -> None:
    """Judging one bad batch again and again is one violation."""
    for _ in range(5):
        found = _tell(store, "a", violated=True)
    assert (found.state, found.violations) == ("closed", 1)


def test_consumers_and_versions_have_fuses_of_their_own(store: FolderStore) -> None:
    """One consumer's open fuse stops nobody else."""
    _tell(store, "a", violated=True, contract=ONE)
    with pytest.raises(FuseOpen):
        _admit(store, contract=ONE)
    assert fuse.admit(store, ONE, "other", START).state == "closed"
    assert _admit(store, contract=batches.make(version="1.0.1")).state == "closed"


def test_time_makes_it_half_open_for_one(store: FolderStore) -> None:
    """After the time in the contract one batch is tried; a second waits for its outcome."""
    _blown(store)
    with pytest.raises(FuseOpen):
        _admit(store, HOUR - timedelta(seconds=1))
    assert _admit(store, HOUR).state == "half-open"
    with pytest.raises(TrialRunning):
        _admit(store, HOUR)


def test_trial_decides(store: FolderStore) -> None:
    """A good batch closes a half-open fuse, a bad one opens it for another while."""
    _blown(store)
    _admit(store, HOUR)
    assert _tell(store, "c", violated=True).state == "open"
    _admit(store, 2 * HOUR)
    closed = _tell(store, "d", violated=False)
    assert (closed.state, closed.violations) == ("closed", 0)
    assert [event.split(": ")[0].partition(" ")[2] for event in closed.events] == [
        "closed -> open",
        "open -> half-open",
        "half-open -> open",
        "open -> half-open",
        "half-open -> closed",
    ]


def test_trial_of_a_killed_process_ends(store: FolderStore) -> None:
    """A trial that nobody decides is free again after ten minutes, or at once if given back."""
    _blown(store)
    _admit(store, HOUR)
    assert _admit(store, HOUR + timedelta(minutes=10)).state == "half-open"
    fuse.release(store, CONTRACT, "shop/model")
    assert _admit(store, HOUR + timedelta(minutes=11)).state == "half-open"


def test_reset_needs_a_name_and_a_reason(store: FolderStore) -> None:
    """Somebody answers for a reset, and it is written down."""
    _blown(store)
    for who, why in (("", "x"), ("x", " ")):
        with pytest.raises(InputError, match="reset"):
            fuse.reset(store, CONTRACT, "shop/model", who=who, why=why, now=START)
    found = fuse.reset(store, CONTRACT, "shop/model", who="Ada", why="resent", now=START)
    assert (found.state, found.reason) == ("half-open", "reset by Ada: resent")
    assert _admit(store).state == "half-open"


def test_reset_of_a_closed_fuse_changes_nothing(store: FolderStore) -> None:
    """There is nothing to mend in a closed fuse."""
    found = fuse.reset(store, CONTRACT, "shop/model", who="Ada", why="sure", now=START)
    assert found == Fuse()


def test_batch_admitted_before_it_blew_does_not_close_it(store: FolderStore) -> None:
    """A good batch that was already on its way says nothing about the fuse that blew since."""
    _admit(store)
    _blown(store)
    assert _tell(store, "c", violated=False).state == "open"
    assert _tell(store, "d", violated=True).state == "open"


def test_events_are_bounded(store: FolderStore) -> None:
    """The history keeps the latest events only."""
    for number in range(60):
        _tell(store, f"x{number}", violated=True, contract=ONE)
        found = fuse.reset(store, ONE, "shop/model", who="Ada", why=str(number), now=START)
    assert len(found.events) == 50
    assert found.events[-1].endswith("59")


@pytest.mark.parametrize("text", [b"{}", b"[]", b"x"])
def test_unreadable_state_is_not_taken_for_closed(store: FolderStore, text: bytes) -> None:
    """A damaged state is an error; batches are not let through."""
    store.put("fuses/shop/orders/1.0.0/shop/model.json", text)
    with pytest.raises(InputError):
        _admit(store)


def test_unknown_state_is_not_taken_for_closed(store: FolderStore) -> None:
    """A state of another version of the program is an error."""
    _blown(store)
    key = "fuses/shop/orders/1.0.0/shop/model.json"
    data = store.get(key, limit=10_000).replace(b'"open"', b'"ajar"')
    store.put(key, data)
    with pytest.raises(ReportInvalid, match="unknown"):
        fuse.status(store, CONTRACT, "shop/model")


def test_of_many_at_once_one_is_admitted(store: FolderStore) -> None:
    """Half-open lets exactly one of many through."""
    _blown(store)

    def attempt(_: int) -> int:
        try:
            _admit(store, HOUR)
        except FuseOpen:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(24))) == 1


def test_of_many_violations_none_is_lost(store: FolderStore) -> None:
    """Violations told at the same time all count."""
    contract = batches.make(fuse={"violations": 100})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: _tell(store, f"x{n}", violated=True, contract=contract), range(16)))
    assert fuse.status(store, contract, "shop/model").violations == 16


def test_endless_company_is_a_typed_error(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If somebody else is always faster, the caller is told instead of waiting for ever."""
    contract = batches.make(fuse={"violations": 100})
    _tell(store, "a", violated=True, contract=contract)
    put: Callable[..., Any] = store.put
    count = iter(range(1000))

    def beaten(key: str, data: bytes, **conditions: Any) -> Any:
        data = re.sub(rb'"last_batch":"\w*"', b'"last_batch":"z%d"' % next(count), data)
        put(key, re.sub(rb'"reason":"\d*"', b'"reason":"%d"' % next(count), data))
        return put(key, data, **conditions)

    monkeypatch.setattr(FolderStore, "put", staticmethod(beaten))
    with pytest.raises(UnavailableError, match="too many"):
        _tell(store, "b", violated=True, contract=contract)


_KILLED = """
import sys
from pathlib import Path
from contracts import fuse
from contracts.base import failpoint
from contracts.objects.folder import FolderStore
from tests.fakes import batches
from tests.fakes.clock import START
failpoint.configure(sys.argv[2])
fuse.record(FolderStore(Path(sys.argv[1])), batches.make(), "shop/model", batch_digest="a",
            violated=True, reason="bad", now=START)
"""


@pytest.mark.parametrize(
    ("point", "state"), [("fuse.change.before", "closed"), ("fuse.change.after", "open")]
)
def test_kill_leaves_the_old_state_or_the_new(
    tmp_path: Path, root: Path, point: str, state: str
) -> None:
    """kill -9 around the write leaves no doubt, and the next attempt completes."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path), point], cwd=root, check=False
    )
    assert done.returncode == -9
    store = FolderStore(tmp_path)
    assert fuse.status(store, ONE, "shop/model").state == state
    assert _tell(store, "a", violated=True, contract=ONE).state == "open"
