"""The command: options in, exit status out; and one real target from start to kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.base import files
from contracts.base.errors import ServerUnavailable
from model_packages.runtime import __main__ as command
from model_packages.runtime import config
from model_packages.runtime.load.model import PackageSource
from model_packages.runtime.serve import home as homes
from model_packages.runtime.serve import spawn
from model_packages.runtime.serve.client import AdminClient, Call, InferenceClient
from model_packages.runtime.serve.supervisor import Order
from tests.fakes import packages, serving
from tests.fakes.waiting import alive, until


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


class _Runs:
    def __init__(self, *arguments: object) -> None:
        self.options = arguments[0]
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True

    def run(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        assert self.stopped


class _Serves(_Runs):
    async def run(self) -> int:  # type: ignore[override] # the worker's is asynchronous
        return 7


def test_supervise_passes_its_options_and_obeys_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM ends it in order."""
    made: list[_Runs] = []

    def make(*arguments: object) -> _Runs:
        made.append(_Runs(*arguments))
        return made[0]

    monkeypatch.setattr(command, "Supervisor", make)
    status = command.main(
        [
            "supervise",
            "--home",
            str(tmp_path),
            "--port",
            "80",
            "--while-locked",
            str(tmp_path / "l"),
        ]
    )
    assert status == 0
    options = made[0].options
    assert isinstance(options, config.SuperviseOptions)
    assert (options.port, options.while_locked) == (80, tmp_path / "l")


def test_serve_returns_the_workers_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And ties its life to its supervisor's."""
    tied: list[int] = []
    monkeypatch.setattr(command, "Worker", _Serves)
    monkeypatch.setattr(spawn, "die_with", tied.append)
    arguments = [
        "serve",
        "--home",
        str(tmp_path),
        "--data-descriptor",
        "4",
        "--admin-descriptor",
        "5",
    ]
    assert command.main(arguments) == 7
    assert command.main([*arguments, "--supervisor", "9", "--idle", "--backend", "fake"]) == 7
    assert tied == [9]


def test_errors_are_one_line_and_an_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An occupied port is status 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert command.main(["supervise", "--home", str(tmp_path), "--port", port]) == 2
    assert "server-unavailable: 127.0.0.1" in capsys.readouterr().err


def test_children_are_quiet_and_find_our_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they are started."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    root = str(Path(config.__file__).parents[2])
    assert config.child_environment()["PYTHONPATH"] == root
    monkeypatch.setenv("PYTHONPATH", "/x")
    found = config.child_environment()
    assert found["PYTHONPATH"] == f"{root}:/x"
    assert found["ORT_DISABLE_TELEMETRY"] == "1"


def test_a_worker_is_started_with_its_sockets(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with nothing else of the supervisor's."""
    calls: list[tuple[list[str], dict[str, object]]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda argv, **rest: calls.append((argv, rest)))
    with socket.socket() as data, socket.socket() as admin:
        spawn.worker(Order(home, data, admin, 9, idle=True, drain_s=1.0))
        argv, rest = calls[0]
        assert rest["pass_fds"] == (data.fileno(), admin.fileno(), 9)
    assert argv[-1] == "--idle"
    assert str(home) in argv


def test_a_worker_without_its_parent_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent may have died before the kernel was told."""
    sent: list[tuple[int, int]] = []
    tied: list[tuple[int, int]] = []

    class Library:
        def prctl(self, option: int, value: int) -> int:
            tied.append((option, value))
            return 0

    monkeypatch.setattr(spawn.ctypes, "CDLL", lambda *args, **rest: Library())
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    spawn.die_with(os.getppid())
    assert not sent
    spawn.die_with(1)
    assert sent == [(os.getpid(), signal.SIGKILL)]
    assert tied[0] == (1, signal.SIGKILL)


class _Process:
    def __init__(self, home: Path, *, dies: bool) -> None:
        self._dies = dies
        if not dies:
            threading.Thread(target=self._hold, args=(home,), daemon=True).start()
        self.done = threading.Event()

    def _hold(self, home: Path) -> None:
        with files.locked(home / homes.LOCK):
            state = homes.State(1, 2, "http://127.0.0.1:1", "http://127.0.0.1:2", "t", "now")
            files.write_json(home / homes.STATE, state.to_dict())
            self.done.wait(20)

    pid = 1

    def poll(self) -> int | None:
        return 2 if self._dies else None

    def wait(self) -> int:
        return 0


def test_a_supervisor_is_started_once_and_awaited(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes second uses the one that runs."""
    started: list[_Process] = []

    def popen(argv: list[str], **rest: object) -> _Process:
        assert "--while-locked" in argv
        assert rest["start_new_session"]
        started.append(_Process(home, dies=False))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    assert spawn.supervisor(home, while_locked=home / "lock").pid == 1
    assert spawn.supervisor(home).pid == 1
    assert len(started) == 1
    started[0].done.set()


def test_nothing_of_the_working_folder_is_imported(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file there that is named like a module is not run; the supervisor would inherit it."""
    (tmp_path / "argparse.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    commands: list[list[str]] = []

    def popen(argv: list[str], **rest: object) -> _Process:
        commands.append(argv)
        return _Process(home, dies=True)

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", popen)
        with pytest.raises(ServerUnavailable):
            spawn.supervisor(home)
    asked = subprocess.run(
        [*commands[0], "--help"], env=config.child_environment(), capture_output=True, check=False
    )
    assert asked.returncode == 0, asked.stderr.decode()
    assert b"--while-locked" in asked.stdout


def test_a_supervisor_that_does_not_start_says_why(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its own last words."""
    monkeypatch.setattr(subprocess, "Popen", lambda argv, **rest: _Process(home, dies=True))
    with pytest.raises(ServerUnavailable, match="nothing in its log"):
        spawn.supervisor(home)
    (home / homes.LOG).write_text("first\nserver-unavailable: port 80 is taken\n")
    with pytest.raises(ServerUnavailable, match="port 80 is taken"):
        spawn.supervisor(home)
    assert spawn._tail(home / "missing") == "no log"
    with files.locked(home / homes.LOCK), pytest.raises(ServerUnavailable):
        spawn.supervisor(home, limit_s=0.05)


@pytest.fixture
def tiny(home: Path) -> PackageSource:
    return serving.source_of(packages.write_source(home / "packages" / "tiny" / "model"))


@pytest.mark.slow
def test_a_real_target_survives_its_worker_and_leaves_no_orphan(
    home: Path, tiny: PackageSource
) -> None:
    """Start, deploy, kill the worker, kill the supervisor, start again, stop."""
    call = Call({"carrier": ["AA"], "distance": [1.0]}, request_id="r1")
    state = spawn.supervisor(home)
    try:
        admin, client = AdminClient.connect(home), InferenceClient(state.data_url)
        admin.load(tiny.folder, tiny.package_digest, tiny.set_digest)
        admin.promote(tiny.package_digest)
        expected = packages.score("AA", 1.0)
        assert client.infer("tiny", call).outputs["score"].tolist() == [expected]
        os.kill(state.worker, signal.SIGKILL)
        client.close()
        answer = client.infer("tiny", call)
        assert answer.outputs["score"].tolist() == [expected], "it waited for the next worker"
        state = homes.read_state(home)
        admin.close()
        client.close()
    finally:
        os.kill(state.pid, signal.SIGKILL)
    until(lambda: not alive(state.pid))
    until(lambda: not alive(state.worker), seconds=5)
    with pytest.raises(ServerUnavailable):
        homes.read_state(home)
    state = spawn.supervisor(home)
    try:
        client = InferenceClient(state.data_url)
        assert client.infer("tiny", call).package_digest == tiny.package_digest
        client.close()
        admin = AdminClient.connect(home)
        admin.stop()
        admin.close()
        until(lambda: not homes.running(home))
        until(lambda: not alive(state.worker))
    finally:
        if homes.running(home):
            os.kill(state.pid, signal.SIGKILL)


def test_unknown_acts_are_named(tmp_path: Path) -> None:
    """argparse exits with 2, as every usage error."""
    with pytest.raises(SystemExit) as caught:
        command.main(["dance", "--home", str(tmp_path)])
    assert caught.value.code == 2
