from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.base.errors import ServerUnavailable
from flows import engine, server
from tasks.workspace import Workspace
from tests.fakes.waiting import alive, until

COMMAND = """
import sys
import time
from pathlib import Path
{first}
from flows import server
from tasks.workspace import Workspace

home, root, linger, mark, go = sys.argv[1:]
workspace = Workspace(Path(home), Path(root))
with server.ensure(workspace, float(linger)) as found:
    from prefect import flow, task

    @task
    def add(number):
        return number + 1

    @flow
    def work():
        return [add(number) for number in range(3)]

    assert work() == [1, 2, 3]
    Path(mark + ".part").write_text(str(found.pid))
    Path(mark + ".part").rename(mark)
    while go and not Path(go).exists():
        time.sleep(0.05)
"""

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def workspace(tmp_path: Path, root: Path) -> Workspace:
    return Workspace(tmp_path / "hôme folder", root).prepare()


@pytest.fixture
def start(workspace: Workspace, root: Path, tmp_path: Path) -> Start:
    """Starts a command that runs a flow, marks that it did, and waits to be let go."""

    def begin(
        name: str, *, linger: float = 0, wait: bool = False, first: str = ""
    ) -> subprocess.Popen[bytes]:
        go = str(tmp_path / "go") if wait else ""
        arguments = [str(workspace.home), str(root), str(linger), str(tmp_path / name), go]
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND.format(first=first), *arguments],
            env={"PYTHONPATH": str(root), "PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            cwd=tmp_path,
            stderr=subprocess.PIPE,
        )

    return begin


def pid_of(path: Path) -> int:
    return int(path.read_text())


def log_of(workspace: Workspace) -> str:
    return (workspace.prefect / "server.log").read_text()


def status(url: str, auth: str = "") -> int:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    token = base64.b64encode(auth.encode()).decode()
    headers = {"Authorization": f"Basic {token}"} if auth else {}
    with contextlib.closing(connection):
        connection.request("GET", "/api/admin/version", headers=headers)
        return connection.getresponse().status


@pytest.mark.slow
def test_commands_share_one_server_that_ends_with_the_last(
    workspace: Workspace, start: Start, tmp_path: Path
) -> None:
    """Two commands at once use the same server, and it is gone soon after both."""
    running = [start(name, wait=True) for name in ("one", "two")]
    for name in ("one", "two"):
        until((tmp_path / name).exists, seconds=120)
    pid = pid_of(tmp_path / "one")
    assert pid_of(tmp_path / "two") == pid

    state = workspace.prefect / engine.STATE
    found = json.loads(state.read_text())
    assert state.stat().st_mode & 0o777 == 0o600
    assert found["url"].startswith("http://127.0.0.1:")
    assert status(found["url"]) == 401
    assert status(found["url"], found["auth"]) == 200

    (tmp_path / "go").touch()
    for process in running:
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()
        assert b"rror" not in said, said.decode()
    until(lambda: not alive(pid))
    assert not state.exists()
    assert log_of(workspace) == ""
    assert not (tmp_path / ".prefect").exists()


@pytest.mark.slow
def test_a_killed_command_leaves_no_server(start: Start, tmp_path: Path) -> None:
    """After kill -9 of the only command the server ends itself; the next one starts another."""
    process = start("one", wait=True)
    until((tmp_path / "one").exists, seconds=120)
    pid = pid_of(tmp_path / "one")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: not alive(pid))

    second = start("two", first="import prefect")
    _, said = second.communicate()
    assert second.returncode == 0, said.decode()
    assert pid_of(tmp_path / "two") != pid


@pytest.mark.slow
def test_a_command_killed_while_starting_leaves_nothing(
    workspace: Workspace, start: Start, tmp_path: Path
) -> None:
    """Killed right after it started the server, the server gives up and the next command works."""
    armed = "from contracts.base import failpoint; failpoint.configure('server.start.inside')"
    process = start("one", first=armed)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    until(lambda: "is gone" in log_of(workspace))
    assert not (workspace.prefect / engine.STATE).exists()
    second = start("two")
    _, said = second.communicate()
    assert second.returncode == 0, said.decode()


@pytest.mark.slow
def test_a_killed_server_is_replaced_and_one_may_linger(
    workspace: Workspace, start: Start, tmp_path: Path
) -> None:
    """A server lingers for the next command; its remains after kill -9 do not confuse one."""
    start("one", linger=60).communicate()
    pid = pid_of(tmp_path / "one")
    assert alive(pid)
    start("two").communicate()
    assert pid_of(tmp_path / "two") == pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid))
    assert (workspace.prefect / engine.STATE).exists()
    start("three").communicate()
    third = pid_of(tmp_path / "three")
    assert third != pid
    until(lambda: not alive(third))


@pytest.mark.slow
def test_a_server_that_cannot_start_says_why(workspace: Workspace) -> None:
    """A damaged database ends in one clear error with the server's own words, and no process."""
    (workspace.prefect / engine.DATABASE).write_bytes(b"no database" * 1000)
    with (
        pytest.raises(ServerUnavailable, match="did not start") as caught,
        server.ensure(workspace),
    ):
        pass
    assert "server.log" in caught.value.remedy
    assert "not a database" in str(caught.value)
    assert not (workspace.prefect / engine.STATE).exists()


@pytest.mark.slow
def test_pages_of_both_are_served(workspace: Workspace) -> None:
    """Prefect's and MLflow's pages answer on loopback while the block lasts."""
    with server.pages(workspace) as (prefect, mlflow):
        for url, words in ((prefect.url, "Prefect"), (mlflow, "MLflow")):
            request = urllib.request.Request(f"{url}/", headers={"Accept": "text/html"})
            with urllib.request.urlopen(request, timeout=30) as answer:
                assert words in answer.read().decode()
        pid = prefect.pid
    until(lambda: not alive(pid))
    with pytest.raises(ConnectionRefusedError):
        status(mlflow)


def test_a_server_that_answers_nonsense_is_not_joined(workspace: Workspace) -> None:
    """Another program on the recorded port is told from our server, and nothing is started."""
    import threading

    class Nonsense:
        def __init__(self) -> None:
            import socket

            self.listener = socket.create_server(("127.0.0.1", 0))
            threading.Thread(target=self.answer, daemon=True).start()

        def answer(self) -> None:
            connection, _ = self.listener.accept()
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            connection.close()

    other = Nonsense()
    port = other.listener.getsockname()[1]
    state = {"url": f"http://127.0.0.1:{port}", "auth": "a:b", "pid": 1}
    (workspace.prefect / engine.STATE).write_text(json.dumps(state))
    with pytest.raises(ServerUnavailable, match="as it should"), server.ensure(workspace):
        pass
    other.listener.close()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', '{"url":"x","auth":"y","pid":"z"}'])
def test_a_damaged_state_file_is_no_server(tmp_path: Path, text: str) -> None:
    """What cannot be read is treated as if no server ran."""
    (tmp_path / engine.STATE).write_text(text)
    assert server._running(tmp_path) is None


def test_transactions_begin_immediate() -> None:
    """Prefect's server on SQLite takes the write lock at the beginning of every transaction."""
    code = """
import asyncio, sys
from flows import engine
engine._prefect("http://127.0.0.1:1")
from prefect.server.database.configurations import SQLITE_BEGIN_MODE, AioSqliteConfiguration
import contextlib

class Session:
    @contextlib.asynccontextmanager
    async def begin(self):
        yield SQLITE_BEGIN_MODE.get()

async def main():
    configuration = AioSqliteConfiguration("sqlite+aiosqlite:///x.db")
    async with configuration.begin_transaction(Session()) as mode:
        print(mode)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "IMMEDIATE"
