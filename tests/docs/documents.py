"""Reads the documents of the house: code blocks, commands, links and the names of files."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^\s*```(\w*)\s*$")
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_EXIT = re.compile(r"#\s*exit (\d+)\b")


@dataclass(frozen=True)
class Command:
    """A command that a document tells its reader to run.

    Attributes:
        text: As written, without the prompt.
        where: File and line.
        status: The exit status it is documented to have.
    """

    text: str
    where: str
    status: int

    @property
    def words(self) -> list[str]:
        """The words of the command, without its comment."""
        return shlex.split(self.text, comments=True)


@dataclass(frozen=True)
class Block:
    """A fenced block of code.

    Attributes:
        language: Word after the fence; may be empty.
        lines: Its lines, each with its number in the file.
    """

    language: str
    lines: tuple[tuple[int, str], ...]


def listed(root: Path) -> list[Path]:
    """Return every document that git holds or would hold."""
    done = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "*.md"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Golden pages and what templates are made of are not documents of ours.
    names = [name for name in done.stdout.splitlines() if not name.startswith("tests/corpus/")]
    return [root / name for name in sorted(names) if (root / name).is_file()]


def blocks(path: Path) -> list[Block]:
    """Return the fenced blocks of a document."""
    found: list[Block] = []
    language: str | None = None
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if fence is None:
            lines.append((number, line))
        elif language is None:
            language, lines = fence.group(1), []
        else:
            found.append(Block(language, tuple(lines)))
            language = None
    return found


def prose(path: Path) -> str:
    """Return a document without its fenced blocks."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^\s*```.*?^\s*```\s*$", "", text, flags=re.MULTILINE | re.DOTALL)


def console(path: Path) -> list[Command]:
    """Return what stands after a prompt in the ``console`` blocks of a document, in order."""
    return [
        Command(line[2:], f"{path}:{number}", _status(line))
        for block in blocks(path)
        if block.language == "console"
        for number, line in block.lines
        if line.startswith("$ ")
    ]


def written(path: Path, program: str) -> Iterator[Command]:
    """Yield each call of a program in any block of a document, with or without a prompt."""
    for block in blocks(path):
        for number, line in block.lines:
            text = line.strip().removeprefix("$ ")
            if text.startswith(f"{program} "):
                yield Command(text, f"{path}:{number}", _status(text))


def mentions(path: Path) -> list[str]:
    """Return what stands between single back-quotes in a document."""
    return _INLINE.findall(prose(path))


def links(path: Path) -> list[str]:
    """Return the targets of the links and pictures of a document."""
    return _LINK.findall(prose(path))


def tables(path: Path, heading: str) -> list[list[str]]:
    """Return the rows of the first table below a heading, without its head."""
    text = prose(path)
    _, found, below = text.partition(f"\n{heading}\n")
    assert found, f"{path}: no heading {heading!r}"
    below = re.split(r"^#{1,6} ", below, maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line.strip() for line in below.splitlines() if line.strip().startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def _status(line: str) -> int:
    found = _EXIT.search(line)
    return int(found.group(1)) if found else 0
