"""What the documents say is done: every command, request and example runs, in order."""

from __future__ import annotations

import re
import shlex
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs import documents
from tests.docs.documents import Command
from tests.docs.reader import Reader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.xdist_group("documents"),
]
_DEMO = "caisson demo --keep"
_LAST = "caisson stop"


@pytest.fixture(scope="module")
def reader(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Somebody who ran the demo as the README says, and noted what it printed."""
    home = tmp_path_factory.mktemp("documents") / "home"
    home.mkdir()
    built = root / ".caisson" / "environments"
    if built.is_dir():
        (home / "environments").symlink_to(built, target_is_directory=True)
    found = Reader(root, home)
    try:
        done = found.run(_DEMO)
        assert done.returncode == 0, done.stderr[-4000:]
        found.words = _learned(found, done.stderr)
        yield found
    finally:
        found.run(_LAST)
        shutil.rmtree(home.parent, ignore_errors=True)


def _learned(reader: Reader, said: str) -> dict[str, str]:
    """Return what the demo and the lists after it printed, by the word that stands for it."""
    release = reader.ask("status")[0]
    return {
        "URL": _after(r"^answers +(\S+)", said),
        "REQUEST_ID": _after(r"^lineage +caisson lineage (\S+)", said),
        "VERSION": reader.ask("features", "list")[0]["version"],
        "FOLDER": str(reader.home.parent / "exported"),
        "DIGEST": release["live"],
        "PAGE": _after(r"^report +file://(\S+)", said),
    }


def _after(pattern: str, said: str) -> str:
    found = re.search(pattern, said, flags=re.MULTILINE)
    assert found, f"nothing printed like {pattern}"
    return found.group(1)


def test_the_table_of_the_demo_is_the_one_it_prints(root: Path, reader: Reader) -> None:
    """The README's table has the demo's stages in order, each with its verdict."""
    shown = documents.tables(root / "README.md", "## What the demo shows")
    rows: list[dict[str, Any]] = reader.ask("demo", "--keep")["facts"]["table"]
    printed = [(row["name"].strip(), row["verdict"]) for row in rows]
    documented = [(name.removeprefix("… "), verdict) for name, verdict, *_ in shown]
    assert documented == printed[: len(documented)]
    assert [name for name, _ in printed[len(documented) :]] == ["start the target again"]


def test_the_report_is_where_the_demo_says(reader: Reader) -> None:
    """The page that the demo names is there and needs no other file."""
    text = Path(reader.words["PAGE"]).read_text(encoding="utf-8")
    assert "<svg" in text
    assert re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", text) == []


def test_requests_of_the_model_are_answered(root: Path, reader: Reader) -> None:
    """Each request in the model's documents is sent, from the folder of the model."""
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    folder = root / "model_packages/published/flight-delay"
    sent = [
        reader.run("\n".join(line for _, line in block.lines), folder)
        for block in documents.blocks(folder / "docs/requests.md")
        if block.language == "bash"
    ]
    assert len(sent) >= 2
    assert [done.stderr for done in sent if done.returncode] == []
    assert '"probability"' in sent[0].stdout


def test_python_example_of_packages_runs(root: Path, reader: Reader) -> None:
    """The example for reading a package from Python runs in a home folder."""
    (block,) = [
        item
        for item in documents.blocks(root / "model_packages/README.md")
        if item.language == "python"
    ]
    program = "\n".join(line for _, line in block.lines)
    start = f"import os\nos.chdir({str(reader.home)!r})\ndigest = {reader.words['DIGEST']!r}\n"
    path = reader.home.parent / "example.py"
    path.write_text(start + program, encoding="utf-8")
    done = reader.run(f"PYTHONPATH={shlex.quote(str(root))} python {shlex.quote(str(path))}")
    assert done.returncode == 0, done.stderr
    assert "nyc/flights@1.0.0" in done.stdout


def test_readme_commands_do_what_it_says(root: Path, reader: Reader) -> None:
    """Every command of the README ends as documented; Prefect's run while its page is up."""
    typed = documents.console(root / "README.md")
    for command in typed:
        program = command.words[0]
        if program == "make" or command.text == _DEMO:
            continue  # make is run by .ci/run (see test_make.py); the demo by the fixture
        if command.words == ["caisson", "ui"]:
            reader.watch(command, lambda said: _use_pages(root, reader, said))
        else:
            reader.obey(command)
    model = Path(reader.words["FOLDER"]) / "model"
    assert (
        _set_digest(root, reader, model)
        in reader.ask("package", "inspect", "flight-delay")["set_digest"]
    )


def test_commands_about_tests_run(root: Path, reader: Reader) -> None:
    """The tests are run as their README says."""
    for command in documents.console(root / "tests/README.md"):
        reader.obey(command)


def _use_pages(root: Path, reader: Reader, said: str) -> None:
    """Open both pages, and type what the flows' README says about schedules."""
    prefect, auth, mlflow = re.findall(r"(https?://\S+|caisson:[\w-]+)", said)
    for url in (prefect, mlflow):
        with urllib.request.urlopen(url) as answer:
            assert answer.status == 200
    reader.words |= {"URL": prefect, "AUTH": auth}
    typed: list[Command] = documents.console(root / "flows/README.md")
    done = reader.run("\n".join(command.text for command in typed))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def _set_digest(root: Path, reader: Reader, model: Path) -> str:
    """Return what the shell command in SPEC.md says about an exported package."""
    text = (root / "model_packages/SPEC.md").read_text(encoding="utf-8")
    done = reader.run(_after(r"`(find \. -type f [^`]+)`", text), model)
    return done.stdout.split()[0]
