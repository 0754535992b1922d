from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.base.errors import LoadFailed, SignatureInvalid
from contracts.base.progress import Progress
from tasks import child
from tasks.child import ChildFailed, Limits
from tests.fakes.waiting import alive, until

QUICK = Limits(wall_s=30, cpu_s=20, memory_bytes=2**30)
HEAD = """
import json, os, sys
request = json.load(open(sys.argv[-1]))
def answer(value):
    json.dump(value, open(request["answer"], "w"))
"""

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program given as text."""

    def start(body: str, limits: Limits = QUICK, **options: Any) -> dict[str, Any]:
        folder = tmp_path / "wörk folder"
        folder.mkdir(exist_ok=True)
        program = tmp_path / "program.py"
        program.write_text(HEAD + body)
        request = options.pop("request", {"value": 1})
        argv = [sys.executable, str(program)]
        return child.run(argv, request, folder=folder, limits=limits, **options)

    return start


def test_an_answer_comes_back(run: Run) -> None:
    """What the program answers is returned, with its isolation and use beside it."""
    result = run('print("noise"); answer({"sum": request["value"] + 1})')
    assert result["sum"] == 2
    assert result["isolation"] == "isolated" or result["isolation"].startswith("not isolated: ")
    assert result["usage"]["cpu_s"] > 0
    assert result["usage"]["peak_memory_bytes"] > 2**20


def test_progress_is_reported_and_noise_ignored(run: Run) -> None:
    """Progress lines reach the reporter; malformed ones change nothing."""
    seen: list[Progress] = []
    run(
        """
lines = [b'{"stage":"train","done":1,"total":3,"unit":"epochs"}', b'{', b'[]', b'{"done":1}',
         b'{"stage":"train","done":3,"total":3,"unit":"epochs"}']
os.write(request["progress"], b"\\n".join(lines) + b"\\n")
answer({})
""",
        progress=seen.append,
    )
    assert seen == [Progress("train", 1, 3, "epochs"), Progress("train", 3, 3, "epochs")]


def test_the_environment_is_clean(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of ours gets through but the path; telemetry is off; the caller may add."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("CAISSON_HOME", "/x")
    result = run('answer({"seen": dict(os.environ)})', environment={"OMP_NUM_THREADS": "1"})
    seen = result["seen"]
    assert set(seen) - {"LC_CTYPE"} == {
        "PATH",
        "HOME",
        "TMPDIR",
        "LANG",
        "DO_NOT_TRACK",
        "GX_ANALYTICS_ENABLED",
        "MLFLOW_DISABLE_TELEMETRY",
        "ORT_DISABLE_TELEMETRY",
        "PREFECT_SERVER_ANALYTICS_ENABLED",
        "OMP_NUM_THREADS",
    }


def test_no_descriptor_of_ours_is_inherited(run: Run, tmp_path: Path) -> None:
    """The program holds its standard streams and the progress pipe, nothing else."""
    with (tmp_path / "ours").open("w"):
        result = run('answer({"open": sorted(map(int, os.listdir("/proc/self/fd")))})')
    # One more is the listing of the folder itself.
    assert len(result["open"]) <= 5


def test_the_network_is_cut_where_the_kernel_allows(run: Run) -> None:
    """An isolated program sees no interface but an idle loopback, and connects nowhere."""
    result = run(
        """
import socket
def connects():
    try:
        socket.create_connection(("127.0.0.1", request["port"]), timeout=2).close()
    except OSError:
        return False
    return True
answer({"connects": connects()})
""",
        request={"port": _listening()},
    )
    assert result["connects"] == (result["isolation"] != "isolated")


def test_the_network_can_be_allowed(run: Run) -> None:
    """A program whose limits allow it reaches the network, and the answer says so."""
    result = run(
        """
import socket
socket.create_connection(("127.0.0.1", request["port"]), timeout=2).close()
answer({})
""",
        Limits(network=True),
        request={"port": _listening()},
    )
    assert result["isolation"] == "network allowed"


_sockets: list[Any] = []


def _listening() -> int:
    import socket

    listener = socket.create_server(("127.0.0.1", 0))
    _sockets.append(listener)
    return int(listener.getsockname()[1])


@pytest.fixture(autouse=True)
def close_sockets() -> Any:
    yield
    while _sockets:
        _sockets.pop().close()


@pytest.mark.parametrize("status", [0, 1])
def test_an_error_answer_is_raised_as_its_kind(run: Run, status: int) -> None:
    """The kind of error survives the process boundary, with all its parts."""
    body = f"""
answer({{"error": {{"code": "signature-invalid", "message": "no", "expected": "a", "found": "b",
                  "location": "c", "remedy": "d"}}}})
sys.exit({status})
"""
    with pytest.raises(SignatureInvalid) as caught:
        run(body)
    error = caught.value
    assert (error.message, error.expected, error.found) == ("no", "a", "b")
    assert (error.location, error.remedy, error.exit_status) == ("c", "d", 1)


def test_a_load_error_keeps_its_stage(run: Run) -> None:
    """The stage of a failed load is known on this side too."""
    details = LoadFailed("too big", stage="memory").to_dict()
    with pytest.raises(LoadFailed) as caught:
        run(f"answer({{'error': {details!r}}})")
    assert caught.value.stage == "memory"
    assert caught.value.message == "load stage memory: too big"


def test_an_error_of_an_unknown_kind_is_a_failed_child(run: Run) -> None:
    """A foreign program's own error codes are shown, not lost."""
    with pytest.raises(ChildFailed, match="strange"):
        run('answer({"error": {"code": "something", "message": "strange"}})')


@pytest.mark.parametrize(
    ("body", "limits", "reason", "message"),
    [
        ("while True: pass", Limits(wall_s=0.3), "wall", "at most 0.3 seconds"),
        ("while True: pass", Limits(wall_s=30, cpu_s=1), "cpu", "1 seconds of processor time"),
        ("sys.exit('broke here')", QUICK, "exit", "broke here"),
        ("os.kill(os.getpid(), 9)", QUICK, "exit", "signal 9"),
        ("pass", QUICK, "answer", "no usable answer"),
        ("open(request['answer'], 'w').write('{')", QUICK, "answer", "not readable"),
        ("answer([1])", QUICK, "answer", "something else than an object"),
        ("x = bytearray(10**9)", Limits(memory_bytes=2**28), "exit", "MemoryError"),
    ],
    ids=["wall", "cpu", "exit", "signal", "silent", "torn", "list", "memory"],
)
def test_a_bad_end_says_how(run: Run, body: str, limits: Limits, reason: str, message: str) -> None:
    """Each way to end badly has its reason, and shows what the program said last."""
    with pytest.raises(ChildFailed, match=message) as caught:
        run(body, limits)
    assert caught.value.reason == reason
    assert caught.value.exit_status == 2


def test_memory_of_all_its_processes_counts_together(run: Run) -> None:
    """Four processes that each stay below the limit are ended when they pass it together."""
    body = """
for _ in range(4):
    if os.fork() == 0:
        break
held = bytearray(os.urandom(2**20)) * 60
while True: pass
"""
    with pytest.raises(ChildFailed) as caught:
        run(body, Limits(wall_s=30, memory_bytes=150 * 2**20))
    assert caught.value.reason == "memory"


def test_a_program_that_does_not_exist_says_so(tmp_path: Path) -> None:
    """A missing program is told from one that ended badly."""
    with pytest.raises(ChildFailed, match="could not be started") as caught:
        child.run([str(tmp_path / "nothing")], {}, folder=tmp_path, limits=QUICK)
    assert caught.value.reason == "start"


LEAVES = """
import signal
pid = os.fork()
if pid == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True: pass
open(request["mark"] + ".part", "w").write(f"{os.getpid()} {pid}")
os.rename(request["mark"] + ".part", request["mark"])
"""


def pids(mark: Path) -> list[int]:
    return [int(part) for part in mark.read_text().split()]


def test_what_a_program_leaves_behind_is_ended(run: Run, tmp_path: Path) -> None:
    """A grandchild in a session of its own does not outlive the program."""
    run(LEAVES + "answer({})", request={"mark": str(tmp_path / "mark")})
    assert not any(alive(pid) for pid in pids(tmp_path / "mark"))


def test_cancelling_ends_everything(run: Run, tmp_path: Path) -> None:
    """stop_all ends running programs with all they started, from another thread."""
    mark = tmp_path / "mark"
    failures: list[ChildFailed] = []

    def work() -> None:
        try:
            run(LEAVES + "while True: pass", request={"mark": str(mark)})
        except ChildFailed as err:
            failures.append(err)

    thread = threading.Thread(target=work)
    thread.start()
    until(mark.exists)
    child.stop_all()
    thread.join(20)
    assert [failure.reason for failure in failures] == ["cancelled"]
    assert not any(alive(pid) for pid in pids(mark))


def test_an_interrupt_ends_everything(run: Run, tmp_path: Path) -> None:
    """An exception while waiting, as from Ctrl-C, leaves nothing running."""
    mark = tmp_path / "mark"

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    body = (
        LEAVES
        + """
os.write(request["progress"], b'{"stage":"s","done":1,"total":1,"unit":"u"}\\n')
while True: pass
"""
    )
    with pytest.raises(KeyboardInterrupt):
        run(body, request={"mark": str(mark)}, progress=interrupt)
    assert not any(alive(pid) for pid in pids(mark))


PARENT = """
import sys
from pathlib import Path
from tasks import child
program, folder, mark = sys.argv[1:]
child.run([sys.executable, program], {"mark": mark}, folder=Path(folder), limits=child.Limits())
"""


@pytest.mark.parametrize("victim", ["us", "launcher"])
def test_kill_9_leaves_no_orphan(root: Path, tmp_path: Path, victim: str) -> None:
    """When our process or the launcher is killed, the program and what it started end too."""
    program, mark = tmp_path / "program.py", tmp_path / "mark"
    program.write_text(HEAD + LEAVES.replace("os.setsid()", "pass") + "while True: pass")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(program), str(tmp_path), str(mark)],
        env={"PYTHONPATH": str(root), "PATH": os.environ["PATH"]},
        stderr=subprocess.DEVNULL,
    )
    until(mark.exists)
    started = pids(mark)
    launcher = _parent_of(started[0])
    if victim == "us":
        parent.send_signal(signal.SIGKILL)
    else:
        os.kill(launcher, signal.SIGKILL)
    parent.wait(20)
    until(lambda: not any(alive(pid) for pid in [*started, launcher]))


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_the_request_is_private(run: Run, tmp_path: Path) -> None:
    """Only its owner can read what a program was asked, and it is whole JSON."""
    run("answer({})", request={"value": "secret"})
    path = tmp_path / "wörk folder" / "request.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["value"] == "secret"
