"""Memory is counted, predicted and given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.base.errors import OutOfMemory
from model_packages.runtime.memory import budget, release


def test_this_process_holds_memory() -> None:
    """A Python process with numpy holds more than a MiB."""
    assert budget.resident() > budget.MIB


def test_the_smaller_of_machine_and_container_counts(tmp_path: Path) -> None:
    """A container limit is not visible in the machine's own figure."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 100 kB\nMemAvailable: 50 kB\n")
    assert budget.available(meminfo=meminfo, cgroup=tmp_path) == 50 * 1024
    (tmp_path / "memory.max").write_text("40000\n")
    (tmp_path / "memory.current").write_text("30000\n")
    assert budget.available(meminfo=meminfo, cgroup=tmp_path) == 10000
    (tmp_path / "memory.max").write_text("max\n")
    assert budget.available(meminfo=meminfo, cgroup=tmp_path) == 50 * 1024
    assert budget.available() > budget.MIB


def test_a_model_that_fits_is_let_through() -> None:
    """What is declared and what follows from the weights: the larger counts."""
    assert budget.predict(10, 3, 4, 100 * budget.MIB).needed == 3 * budget.MIB
    assert budget.predict(budget.MIB, 0, 4, 100 * budget.MIB).needed > 2 * budget.MIB


@pytest.mark.parametrize(
    ("allowed", "free", "message"), [(1, 100, "settings allow"), (100, 1, "is left")]
)
def test_a_model_that_does_not_fit_is_refused(allowed: int, free: int, message: str) -> None:
    """The message says which limit it was."""
    with pytest.raises(OutOfMemory, match=message):
        budget.predict(0, 2, allowed, free * budget.MIB)


def test_trimming_works_or_says_it_cannot() -> None:
    """It never raises, whatever the C library."""
    assert release.trim() in (True, False)
