"""The demo's table: what was done, with what verdict, how long it took, where to look further."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from flows.cli import console


@dataclass
class Chapter:
    """One line of the table.

    Attributes:
        name: What was done.
        verdict: pass, fail, skip or error; empty while it runs.
        note: What came of it.
        look: Command or file that tells more.
        seconds: Wall time.
    """

    name: str
    verdict: str = ""
    note: str = ""
    look: str = ""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass
class Chapters:
    """All lines so far.

    Attributes:
        quiet: Whether to say nothing while it runs.
        rows: The lines.
        flows: Seconds of the chapters that were flows, in all.
    """

    quiet: bool = False
    rows: list[Chapter] = field(default_factory=list)
    flows: float = 0.0

    @contextlib.contextmanager
    def telling(self, name: str, look: str = "", *, flow: bool = True) -> Iterator[Chapter]:
        """Time a chapter; it passes unless it says otherwise or raises.

        Args:
            name: What is done.
            look: Command or file that tells more.
            flow: Whether it is a flow, whose time outside stages is the engines'.
        """
        chapter = Chapter(name, look=look)
        self.rows.append(chapter)
        if not self.quiet:
            console.note(f"· {name}")
        start = time.monotonic()
        try:
            yield chapter
        except BaseException:
            chapter.verdict = "error"
            raise
        finally:
            seconds = time.monotonic() - start
            self.flows += seconds if flow else 0.0
            chapter.seconds = round(seconds, 2)
            chapter.verdict = chapter.verdict or "pass"
            if not self.quiet and chapter.note:
                console.note(f"  {chapter.verdict}: {chapter.note} ({chapter.seconds:.1f} s)")

    def add(self, name: str, verdict: str, seconds: float, note: str = "", look: str = "") -> None:
        """Add a line for something that was timed elsewhere."""
        self.rows.append(Chapter(name, verdict, note, look, round(seconds, 2)))

    def show(self) -> None:
        """Print the table."""
        console.table(
            "",
            ["stage", "verdict", "seconds", "result", "look further"],
            [
                [row.name, row.verdict, f"{row.seconds:.1f}", row.note, row.look]
                for row in self.rows
            ],
        )
