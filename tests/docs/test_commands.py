"""Documents name only commands that exist, and leave none out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from flows import settings
from tests.docs import commands, documents


def test_readme_shows_every_command(root: Path) -> None:
    """Each command and group of ``caisson`` is called or named in the README."""
    text = (root / "README.md").read_text(encoding="utf-8")
    missing = [name for name in commands.known() if f"caisson {name}" not in text]
    assert missing == []


def test_every_call_in_a_block_can_be_run(root: Path) -> None:
    """A call that a reader may copy has real commands, options and all arguments."""
    wrong = [
        f"{found.where}: {found.text}: {said}"
        for path in documents.listed(root)
        for found in documents.written(path, "caisson")
        if (said := commands.problem(found.words[1:]))
    ]
    assert wrong == []


def test_every_mention_is_of_a_real_command(root: Path) -> None:
    """A command named in a sentence exists, and so do the options named with it."""
    wrong = [
        f"{path.relative_to(root)}: `{said}`: {problem}"
        for path in documents.listed(root)
        for said in documents.mentions(path)
        if said.startswith("caisson ") and (problem := commands.misnamed(_words(said)))
    ]
    assert wrong == []


def test_commands_with_a_prompt_are_typed_by_a_test(root: Path) -> None:
    """A command with a prompt stands only in documents whose commands test_executed.py types."""
    found = {
        str(path.relative_to(root)) for path in documents.listed(root) if documents.console(path)
    }
    assert found == {"README.md", "flows/README.md", "tests/README.md"}


def test_every_make_target_named_exists(root: Path) -> None:
    """A target of ``make`` that a document names is in the Makefile, and help lists it."""
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    listed = set(re.findall(r'@echo "make ([a-z-]+)', makefile))
    named = {
        word.split()[1]
        for path in documents.listed(root)
        for word in [
            *(item for item in documents.mentions(path) if item.startswith("make ")),
            *(found.text for found in documents.written(path, "make")),
        ]
        if len(word.split()) > 1 and "=" not in word.split()[1]
    }
    assert named - targets == set()
    assert named - listed == set()


def test_readme_lists_the_settings(root: Path) -> None:
    """The table of settings is the one that the code has: name, default, meaning."""
    found = documents.tables(root / "README.md", "## Settings")
    known = [[f"`{item.name}`", item.default, item.help] for item in settings.VARIABLES]
    assert found == known


def _words(said: str) -> list[str]:
    """Return the words after ``caisson``; what stands in angle brackets is one word."""
    return shlex.split(re.sub(r"<[^>]*>", "X", said))[1:]
