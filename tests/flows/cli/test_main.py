"""Exit codes and errors of every command: 0 passed, 1 refused, 2 could not, 130 interrupted."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.core import TyperGroup

from contracts.base.errors import (
    CaissonError,
    DigestMismatch,
    InputError,
    LoadFailed,
    ReleaseRefused,
    UnavailableError,
)
from flows.cli import main
from tasks import child
from tests.flows.cli.conftest import Caisson

COMMANDS = {
    "demo",
    "train",
    "gate",
    "release",
    "nightly",
    "deploy",
    "rollback",
    "status",
    "lineage",
    "ui",
    "stop",
}
GROUPS = {
    "contract": {"lint", "list", "show", "diff", "reset-fuse", "publish", "validate"},
    "features": {"list", "show", "snapshot"},
    "package": {"build", "inspect", "verify", "export"},
}


def commands() -> list[tuple[str, typer.core.TyperCommand]]:
    """Return every command with its whole name."""
    found = []
    top = typer.main.get_command(main.app)
    assert isinstance(top, TyperGroup)
    for name, command in top.commands.items():
        inner = command.commands.items() if isinstance(command, TyperGroup) else [("", command)]
        found += [(f"{name} {sub}".strip(), item) for sub, item in inner]
    return found  # type: ignore[return-value] # all of them are typer's


def test_the_commands_are_those_that_are_promised() -> None:
    """Every verb of the issue is there."""
    names = {name for name, _ in commands()}
    assert names >= COMMANDS | {f"{group} {sub}" for group, subs in GROUPS.items() for sub in subs}


@pytest.mark.parametrize(("name", "command"), commands(), ids=[name for name, _ in commands()])
def test_every_option_has_help_and_shows_its_default(
    name: str, command: typer.core.TyperCommand
) -> None:
    """A person can tell what an option does and what holds without it."""
    assert command.help
    assert command.help.splitlines()[0].endswith(".") or len(command.help) > 60
    for item in command.params:
        text = getattr(item, "help", None)
        assert text, f"{name}: {item.name} has no help"
        if isinstance(item, typer.core.TyperArgument) or item.required or item.is_flag:  # type: ignore[attr-defined] # an option
            continue
        shown = item.default is not None and item.default != ""
        assert shown or "if not given" in text or "if absent" in text or "must" in text, (
            f"{name}: --{item.name} does not say what holds without it"
        )


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """A command that raises what a test puts here."""
    raised: list[BaseException] = []
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)

    @app.command()
    def fail(as_json: Annotated[bool, typer.Option("--json")] = False) -> int:
        """Fail."""
        if raised:
            raise raised[0]
        return 1

    @app.command()
    def other() -> None:
        """Do nothing."""

    monkeypatch.setattr(main, "app", app)
    return raised


@pytest.mark.parametrize(
    ("err", "status"),
    [
        (ReleaseRefused("no"), 1),
        (DigestMismatch("changed"), 1),
        (InputError("malformed"), 2),
        (UnavailableError("gone"), 2),
        (LoadFailed("no", stage="graph"), 2),
        (CaissonError("other"), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_decides_the_exit_status(
    caisson: Caisson, failing: list[BaseException], err: CaissonError, status: int
) -> None:
    """Refused and tampered are 1, everything that could not be judged is 2; said on stderr."""
    failing.append(err)
    ended = caisson("fail")
    assert (ended.status, ended.out) == (status, "")
    assert ended.err == f"caisson: {err}\n"


def test_machines_get_an_error_as_one_object(
    caisson: Caisson, failing: list[BaseException]
) -> None:
    """With --json the parts of the error are on stdout, and the sentence still on stderr."""
    failing.append(InputError("no", expected="a", found="b", location="l", remedy="r"))
    ended = caisson("fail", "--json")
    assert ended.json["error"] == {
        "code": "input-invalid",
        "message": "no",
        "expected": "a",
        "found": "b",
        "location": "l",
        "remedy": "r",
    }
    assert "caisson: l: no" in ended.err


def test_a_fault_of_ours_is_shown_whole(caisson: Caisson, failing: list[BaseException]) -> None:
    """An exception that nobody foresaw is 2, with its trace for us and its name for machines."""
    failing.append(KeyError("wanted"))
    ended = caisson("fail", "--json")
    assert ended.status == 2
    assert "internal fault\nTraceback" in ended.err
    assert ended.json["error"] == {"code": "internal-fault", "message": "KeyError: 'wanted'"}


@pytest.mark.parametrize("err", [KeyboardInterrupt(), typer.Abort()], ids=["ctrl-c", "abort"])
def test_an_interrupt_ends_the_children(
    caisson: Caisson,
    failing: list[BaseException],
    err: BaseException,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C ends what stages started and says that going on is possible; the status is 130."""
    stopped: list[int] = []
    monkeypatch.setattr(child, "stop_all", lambda: stopped.append(1))
    failing.append(err)
    ended = caisson("fail")
    assert ended.status == 130
    assert "running the command again continues" in ended.err
    assert stopped == [1]


def test_statuses_of_a_command_are_passed_on(
    caisson: Caisson, failing: list[BaseException]
) -> None:
    """A number is the status, nothing is 0, and an early exit keeps its own."""
    assert caisson("fail").status == 1
    assert caisson("other").status == 0
    failing.append(typer.Exit(3))
    assert caisson("fail").status == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "No such command"),
        (["release"], "model"),
        (["release", "m", "--sauce", "x"], "No such option"),
        (["deploy", "m", "--canary-share", "much"], "--canary-share"),
        (["contract", "nothing"], "No such command"),
    ],
)
def test_wrong_usage_is_2_and_points_to_help(
    caisson: Caisson, arguments: list[str], words: str
) -> None:
    """What is wrong is named, on stderr; machines get it as an object too."""
    ended = caisson(*arguments)
    assert (ended.status, ended.out) == (2, "")
    assert words in ended.err
    assert "--help" in ended.err
    assert caisson(*arguments, "--json").json["error"]["code"] == "usage"


def test_help_names_every_command(caisson: Caisson) -> None:
    """Without arguments as with --help, all groups and verbs are listed."""
    for arguments in (["--help"], []):
        ended = caisson(*arguments)
        said = ended.out + ended.err
        assert all(name in said for name in COMMANDS | set(GROUPS))
    assert caisson("--help").status == 0


def test_a_wrong_setting_is_2_with_all_that_is_wrong(
    caisson: Caisson, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings are checked before anything is done, in reading commands too."""
    monkeypatch.setenv("CAISSON_LINGER", "long")
    monkeypatch.setenv("CAISSON_HOMES", "/x")
    for command in (["status"], ["release", "m"], ["contract", "list"]):
        ended = caisson(*command)
        assert ended.status == 2
        assert "CAISSON_LINGER" in ended.err
        assert "CAISSON_HOMES" in ended.err
