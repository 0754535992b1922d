"""Measures the demo and the commands people wait for: ``python -m tests.bench.demo``.

The demo runs through the command line in a fresh home folder, then once more unchanged. The
outlier detector's environment counts as installed: it is linked from the checkout's home folder.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.cli import console
from tests.bench.rows import Limit, Row, judge, machine, markdown, status

ROOT = Path(__file__).resolve().parents[2]
LIMITS = (
    Limit("first demo", "s", 120.0),
    Limit("engines' share of it (Prefect, MLflow)", "s", 16.0),
    Limit("training in it", "s", 20.0),
    Limit("rollback in it", "s", 10.0),
    Limit("demo again, unchanged", "s", 20.0),
    Limit("caisson --help", "CPU s", 0.3),
    Limit("caisson status", "CPU s", 0.5),
)
_REPEATS = 5
_PATIENCE_S = 900.0


@dataclass(frozen=True)
class Ran:
    """How one command ended.

    Attributes:
        code: Its exit status.
        out: What it wrote to stdout.
        err: What it wrote to stderr.
        seconds: Wall time.
        processor: CPU seconds of it and of the processes that it waited for.
    """

    code: int
    out: str
    err: str
    seconds: float
    processor: float

    @property
    def problem(self) -> str:
        """Why it gave no value; empty if it did."""
        said = self.err.strip().splitlines()
        return "" if self.code == 0 else f"exit {self.code}: {said[-1] if said else 'no message'}"


def caisson(home: Path, *arguments: str) -> Ran:
    """Run the command line against a home folder, as a person would after installation."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CAISSON_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(
        [str(Path(sys.executable).with_name("caisson")), *arguments],
        env={**kept, "CAISSON_HOME": str(home)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(done.returncode, done.stdout, done.stderr, seconds, used)


def measure(home: Path, *, quick: bool) -> list[Row]:
    """Measure everything in a home folder that is empty; ``quick`` leaves the demo out."""
    first = None if quick else caisson(home, "demo", "--json")
    again = caisson(home, "demo", "--json") if first and not first.problem else None
    values, stages, reason = _first(first)
    values["demo again, unchanged"], why_not = _again(again, reason)
    reasons = {"demo again, unchanged": why_not}
    for name, arguments in (("caisson --help", ["--help"]), ("caisson status", ["status"])):
        values[name], reasons[name] = _processor(home, arguments)
    rows = [
        judge(limit, values.get(limit.name), reasons.get(limit.name) or reason) for limit in LIMITS
    ]
    return [*rows, *(judge(Limit(f"stage {name}", "s", None), took) for name, took in stages)]


def _first(ran: Ran | None) -> tuple[dict[str, float | None], Sequence[tuple[str, float]], str]:
    """Return what the first demo says by name, the seconds of each stage, and why not."""
    if ran is None:
        return {}, (), "left out by --quick"
    if ran.problem:
        return {}, (), ran.problem
    report: Mapping[str, Any] = json.loads(ran.out)
    if report["measurements"].get("unchanged"):
        return {}, (), "the home folder was not empty"
    took = {row["name"].strip(): row["seconds"] for row in report["facts"]["table"]}
    measured = report["measurements"]
    values: dict[str, float | None] = {
        "first demo": ran.seconds,
        "engines' share of it (Prefect, MLflow)": measured["engines"],
        "training in it": took["train"],
        "rollback in it": took["rollback"],
    }
    return values, sorted(measured["stages"].items()), ""


def _again(ran: Ran | None, reason: str) -> tuple[float | None, str]:
    if ran is None or ran.problem:
        return None, ran.problem if ran else reason
    unchanged = json.loads(ran.out)["measurements"].get("unchanged")
    return (ran.seconds, "") if unchanged else (None, "the demo was not recognised as unchanged")


def _processor(home: Path, arguments: Sequence[str]) -> tuple[float | None, str]:
    """Return the median CPU seconds of a command, after one run that fills the caches."""
    ran = [caisson(home, *arguments) for _ in range(_REPEATS + 1)][1:]
    problem = next((item.problem for item in ran if item.problem), "")
    return (None, problem) if problem else (statistics.median(x.processor for x in ran), "")


def _link_environment(home: Path) -> bool:
    """Give a home folder the environments that ``make install`` built; False if there are none."""
    built = ROOT / ".caisson" / "environments"
    if not any(built.glob("alibi-*/bin/python")):
        return False
    (home / "environments").symlink_to(built, target_is_directory=True)
    return True


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 0 if every limit was kept, 1 if not, 2 if one was not measured."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.demo", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    parser.add_argument("--markdown", action="store_true", help="print it as in BENCHMARKS.md")
    parser.add_argument("--quick", action="store_true", help="only the commands, not the demo")
    chosen = parser.parse_args(arguments)
    where = {**machine()}
    home = Path(tempfile.mkdtemp(prefix="caisson-bench-"))
    try:
        where["alibi_environment"] = _link_environment(home)
        rows = measure(home, quick=chosen.quick)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if chosen.json:
        console.emit({"machine": where, "rows": [row.to_dict() for row in rows]}, as_json=True)
    elif chosen.markdown:
        console.emit(None, as_json=False, text=markdown(where, rows))
    else:
        console.pairs("machine", where)
        console.records("", [row.to_dict() for row in rows], as_json=False)
    return status([row for row in rows if row.value is not None] if chosen.quick else rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
