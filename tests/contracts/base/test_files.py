"""Files are written whole or not at all, read within limits, and locked while needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.base import files
from contracts.base.errors import InputError, UnavailableError


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(data=st.binary(max_size=1000))
def test_what_is_written_is_read(tmp_path: Path, data: bytes) -> None:
    """Any bytes come back, and nothing else is left in the folder."""
    path = tmp_path / "a" / "b" / "file name ä"
    files.write_atomic(path, data, mode=0o600)
    assert files.read_bounded(path, 1000) == data
    assert path.stat().st_mode & 0o777 == 0o600
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    """While one process keeps replacing a file, another reads only whole contents."""
    path = tmp_path / "file"
    files.write_atomic(path, b"0" * 100_000)
    writer = (
        "import sys, itertools; from pathlib import Path; from contracts.base import files\n"
        "for n in itertools.count():\n"
        "    files.write_atomic(Path(sys.argv[1]), str(n % 10).encode() * 100_000)\n"
    )
    with subprocess.Popen([sys.executable, "-c", writer, str(path)]) as process:
        try:
            seen = {files.read_bounded(path, 100_000) for _ in range(300)}
        finally:
            process.kill()
    assert all(len(data) == 100_000 and len(set(data)) == 1 for data in seen)


def test_killed_writers_leave_the_old_content(tmp_path: Path) -> None:
    """kill -9 in the middle of a write leaves the old file, and sweep removes the rest."""
    path = tmp_path / "file"
    files.write_atomic(path, b"old")
    program = (
        "import os, signal, sys; from pathlib import Path; from contracts.base import files\n"
        "real = os.fsync\n"
        "def ends(fd):\n"
        "    real(fd); os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.fsync = ends\n"
        "files.write_atomic(Path(sys.argv[1]), b'new' * 1000)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert files.read_bounded(path, 10) == b"old"
    assert files.sweep(tmp_path) == 1
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_folders_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    """A file where a folder should be is a clear message, and nothing is left behind."""
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file" / "below", tmp_path / "file" / "deep" / "below"):
        with pytest.raises(UnavailableError, match="cannot be written"):
            files.write_atomic(place, b"")
    with pytest.raises(UnavailableError), files.staging(tmp_path / "file" / "x"):
        pass
    with pytest.raises(UnavailableError), files.locked(tmp_path / "file" / "x"):
        pass
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_reading_is_bounded_and_plain(tmp_path: Path) -> None:
    """Missing files, folders, and files over the limit are input errors that name the file."""
    (tmp_path / "big").write_bytes(b"12345")
    with pytest.raises(InputError, match=r"big.*at most 4 bytes, got 5 bytes"):
        files.read_bounded(tmp_path / "big", 4)
    for place in (tmp_path, tmp_path / "absent", tmp_path / "big" / "below"):
        with pytest.raises(InputError):
            files.read_bounded(place, 4)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="plain file"):
        files.read_bounded(tmp_path / "pipe", 4)


def test_json_files_are_canonical_and_strict(tmp_path: Path) -> None:
    """JSON is written in one form, and read without leniency."""
    path = tmp_path / "a.json"
    files.write_json(path, {"b": 1.0, "a": "ä"})
    assert path.read_bytes() == '{"a":"ä","b":1}\n'.encode()
    assert files.read_json(path) == {"a": "ä", "b": 1}
    path.write_text('{"a": 1, "a": 2}')
    with pytest.raises(InputError, match=r"a\.json"):
        files.read_json(path)


def test_a_lock_excludes_until_its_holder_ends(tmp_path: Path) -> None:
    """A lock cannot be had twice, can be shared, and is free when its holder was killed."""
    path = tmp_path / "locks" / "one"
    program = (
        "import sys, time; from pathlib import Path; from contracts.base import files\n"
        "with files.locked(Path(sys.argv[1])):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=pipe, stdout=pipe, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with files.locked(path, wait=False) as held:
            assert not held
        with files.locked(path, shared=True, wait=False) as held:
            assert not held
        holder.kill()
    with files.locked(path, shared=True) as one, files.locked(path, shared=True, wait=False) as two:
        assert one
        assert two


def test_staged_folders_appear_whole(tmp_path: Path) -> None:
    """A folder is there only if its block ended well; a second one is thrown away."""
    target = tmp_path / "deep" / "folder"
    with pytest.raises(FileNotFoundError), files.staging(target) as aside:
        (aside / "absent" / "a").write_bytes(b"1")
    assert not target.exists()
    for text in (b"1", b"2"):
        with files.staging(target) as aside:
            (aside / "a").write_bytes(text)
    assert (target / "a").read_bytes() == b"1"
    assert [item.name for item in target.parent.iterdir()] == ["folder"]


def test_sweeping_takes_only_leftovers(tmp_path: Path) -> None:
    """What an interrupted write left goes, whole folders too; everything else stays."""
    (tmp_path / ".x.abc.part").mkdir()
    (tmp_path / ".x.abc.part" / "inner").write_bytes(b"")
    (tmp_path / "x.part").write_bytes(b"")
    (tmp_path / ".hidden").write_bytes(b"")
    assert files.sweep(tmp_path) == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == [".hidden", "x.part"]
    assert files.sweep(tmp_path / "absent") == 0
