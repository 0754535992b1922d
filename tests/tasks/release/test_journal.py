"""The saga journal: what was begun can always be found and ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts.base.errors import CorruptLog, RefusedError, ServerUnavailable
from tasks.ledger.store import Ledger
from tasks.release.journal import (
    Inverse,
    Journal,
    operations,
    require_undone,
    unfinished,
)
from tests.fakes.clock import FixedClock

SUBJECT = "flight-delay/local"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """An empty ledger."""
    return Ledger(tmp_path / "ledger.db", FixedClock())


def begun(ledger: Ledger) -> Journal:
    """An open operation."""
    return Journal.begin(ledger, "deploy", SUBJECT, {"package": "p"})


def test_finished_operation_is_not_found_again(ledger: Ledger) -> None:
    """An operation that was closed is on record and no longer open."""
    journal = begun(ledger)
    with journal.effect("load", Inverse("unload", {"package": "p"})):
        pass
    journal.close("done")
    assert unfinished(ledger) == []
    (operation,) = operations(ledger)
    assert operation.ended("load")
    assert not operation.ended("switch")
    assert operation.result == "done"


def test_interrupted_effect_is_undone(ledger: Ledger) -> None:
    """Effects are undone newest first, also the one that was interrupted half way."""
    journal = begun(ledger)
    with journal.effect("load", Inverse("unload", {"package": "p"})):
        pass
    with pytest.raises(KeyboardInterrupt), journal.effect("canary", Inverse("restore")):
        raise KeyboardInterrupt
    taken: list[tuple[str, dict[str, Any]]] = []

    def note(act: str, arguments: Mapping[str, Any]) -> None:
        taken.append((act, dict(arguments)))

    (operation,) = unfinished(ledger)
    later = Journal(ledger, operation)
    acts = {
        "unload": lambda arguments: note("unload", arguments),
        "restore": lambda arguments: note("restore", arguments),
    }
    assert later.undo(acts) == []
    later.close("undone")
    assert taken == [("restore", {}), ("unload", {"package": "p"})]
    assert unfinished(ledger) == []
    assert {step.result for step in operations(ledger)[0].steps} == {"undone"}


def test_undoing_twice_acts_once(ledger: Ledger) -> None:
    """What was taken back and written down is not taken back again after a second crash."""
    journal = begun(ledger)
    with journal.effect("load", Inverse("unload")):
        pass
    calls: list[str] = []
    acts = {"unload": lambda _: calls.append("unload")}
    journal.undo(acts)
    (operation,) = unfinished(ledger)
    Journal(ledger, operation).undo(acts)
    assert calls == ["unload"]


def test_failing_inverse_leaves_the_operation_open(ledger: Ledger) -> None:
    """One inverse that fails stops no other, is reported, and is tried again later."""
    journal = begun(ledger)
    with journal.effect("load", Inverse("unload")):
        pass
    with journal.effect("canary", Inverse("restore")):
        pass

    def down(_: Mapping[str, Any]) -> None:
        raise ServerUnavailable("target is down")

    done: list[str] = []
    troubles = journal.undo({"restore": down, "unload": lambda _: done.append("unload")})
    assert done == ["unload"]
    assert "target is down" in troubles[0]
    with pytest.raises(RefusedError, match="target is down"):
        require_undone(troubles, SUBJECT)
    assert len(unfinished(ledger, SUBJECT)) == 1


def test_kept_effects_need_no_act(ledger: Ledger) -> None:
    """An effect that needs no undoing asks for no act."""
    journal = begun(ledger)
    with journal.effect("push"):
        pass
    assert journal.undo({}) == []


def test_same_operation_twice_has_two_names(ledger: Ledger) -> None:
    """A second attempt is another operation."""
    assert begun(ledger).key != begun(ledger).key
    assert len(unfinished(ledger)) == 2


def test_foreign_records_are_reported(ledger: Ledger) -> None:
    """A journal that does not fit together is a corrupt log, not a crash."""
    ledger.append("intent", SUBJECT, {"operation": "x", "step": "load"})
    with pytest.raises(CorruptLog, match="journal"):
        operations(ledger)
