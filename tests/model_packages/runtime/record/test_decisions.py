"""The decision log never blocks, survives crashes, and finds a request."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.errors import CorruptLog, UnavailableError
from model_packages.runtime.record import decisions, frames
from model_packages.runtime.record.decisions import Decision, DecisionLog, LogOptions

_DIGEST = "sha256:" + "0" * 64


def decision(identity: str = "r1", status: int = 200) -> Decision:
    return Decision(1_796_000_000_000, identity, _DIGEST, "A", status)


def write(path: Path, *identities: str) -> None:
    log = DecisionLog(path)
    log.start()
    for identity in identities:
        log.append(decision(identity))
    log.close()


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    """In order, and across several runs."""
    path = tmp_path / "decisions.log"
    write(path, "r1", "r2")
    write(path, "r3")
    assert [item.request_id for item in decisions.read(path)] == ["r1", "r2", "r3"]
    assert decisions.find(path, "r2") == decision("r2")
    assert decisions.find(path, "r4") is None
    assert decisions.find(path, "\udcff") is None
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_newest_decision_about_an_id_is_found(tmp_path: Path) -> None:
    """A client may use an id twice."""
    path = tmp_path / "decisions.log"
    log = DecisionLog(path)
    log.start()
    log.append(decision("r1", 200))
    log.append(decision("r1", 429))
    log.close()
    found = decisions.find(path, "r1")
    assert found is not None
    assert found.status == 429


def test_an_id_inside_another_value_is_not_taken_for_it(tmp_path: Path) -> None:
    """Only the id of a record counts."""
    path = tmp_path / "decisions.log"
    write(path, "A", "r2")
    assert decisions.find(path, _DIGEST) is None
    found = decisions.find(path, "A")
    assert found is not None
    assert found.request_id == "A"


def test_a_missing_or_empty_log_holds_nothing(tmp_path: Path) -> None:
    """A target that answered nothing yet is no error."""
    path = tmp_path / "decisions.log"
    assert decisions.find(path, "r1") is None
    assert list(decisions.read(path)) == []
    path.touch()
    assert decisions.find(path, "r1") is None


@given(cut=st.integers(1, 200))
def test_a_torn_tail_is_tolerated_and_cut(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Wherever a crash cut the last record short, the others stay and new ones follow."""
    path = tmp_path_factory.mktemp("log") / "decisions.log"
    write(path, "r1", "r2")
    os.truncate(path, max(0, path.stat().st_size - cut))
    whole = [item.request_id for item in decisions.read(path)]
    assert whole == ["r1", "r2"][: len(whole)]
    write(path, "r3")
    assert [item.request_id for item in decisions.read(path)] == [*whole, "r3"]


def test_zeros_after_a_power_loss_are_a_torn_tail(tmp_path: Path) -> None:
    """Some file systems lengthen a file before they write it."""
    path = tmp_path / "decisions.log"
    write(path, "r1")
    with path.open("ab") as stream:
        stream.write(bytes(500))
    assert [item.request_id for item in decisions.read(path)] == ["r1"]


def test_a_changed_record_is_noticed_and_the_file_kept(tmp_path: Path) -> None:
    """A writer that meets a changed file sets it aside and begins a new one."""
    path = tmp_path / "decisions.log"
    write(path, "r1", "r2")
    data = bytearray(path.read_bytes())
    data[data.index(b"r1")] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptLog, match="was changed"):
        list(decisions.read(path))
    assert decisions.find(path, "r2") is not None
    write(path, "r3")
    assert [item.request_id for item in decisions.read(path)] == ["r3"]
    assert decisions.find(path, "r2") is not None


def test_a_record_of_another_form_is_refused(tmp_path: Path) -> None:
    """A good checksum does not make a decision."""
    path = tmp_path / "decisions.log"
    path.write_bytes(frames.pack(orjson.dumps({"a": 1})))
    with pytest.raises(CorruptLog, match="not a decision"):
        list(decisions.read(path))


def test_a_full_queue_drops_and_counts(tmp_path: Path) -> None:
    """Serving never waits for a disk."""
    log = DecisionLog(tmp_path / "decisions.log", LogOptions(queue=2))
    for number in range(5):
        log.append(decision(f"r{number}"))
    assert log.facts() == {"written": 0, "waiting": 2, "dropped": 3}
    log.close()


def test_large_files_are_set_aside(tmp_path: Path) -> None:
    """A bounded number is kept, and all of them are searched."""
    path = tmp_path / "decisions.log"
    log = DecisionLog(path, LogOptions(interval_s=60, file_bytes=150, files=2))
    log.start()
    for number in range(8):
        log.append(decision(f"r{number}"))
        log.flush()
    log.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "decisions.1.log",
        "decisions.2.log",
        "decisions.log",
    ]
    found = [number for number in range(8) if decisions.find(path, f"r{number}")]
    assert found == [5, 6, 7]


def test_a_log_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    """At the start it is an error; later records are counted as dropped."""
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="cannot be opened"):
        DecisionLog(tmp_path / "file" / "decisions.log").start()
    log = DecisionLog(tmp_path / "decisions.log", LogOptions(interval_s=60))
    log.start()
    os.close(log._file)
    log.append(decision())
    log.flush()
    assert log.facts()["dropped"] == 1
    log.close()


def test_the_writer_writes_by_itself(tmp_path: Path) -> None:
    """Nobody needs to ask for it."""
    path = tmp_path / "decisions.log"
    log = DecisionLog(path, LogOptions(interval_s=0.01))
    log.start()
    log.append(decision())
    pause = threading.Event()
    for _ in range(500):
        if log.written:
            break
        pause.wait(0.01)
    assert decisions.find(path, "r1") is not None
    log.close()


@given(st.lists(st.binary(max_size=40), max_size=6), st.data())
def test_one_changed_byte_never_yields_a_wrong_record(
    payloads: list[bytes], data: st.DataObject
) -> None:
    """A reader gets a prefix of what was written, or an error."""
    whole = bytearray(b"".join(frames.pack(payload) for payload in payloads))
    if whole:
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] ^= data.draw(st.integers(1, 255))
    found = []
    try:
        for _, payload in frames.scan(memoryview(whole)):
            found.append(payload)
    except CorruptLog:
        pass
    assert found == payloads[: len(found)]
