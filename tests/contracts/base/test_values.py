"""Digests, versions, moments, errors, progress, provenance and failpoints."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base import clock, digest, errors, failpoint, progress, provenance, version
from contracts.base.digest import Digest
from contracts.base.errors import CaissonError, DigestMismatch, InputError, LoadFailed
from contracts.base.version import Version

versions = st.builds(Version, *[st.integers(0, 999_999_999)] * 3)


@given(st.binary(max_size=100))
def test_a_digest_is_a_sha256(data: bytes) -> None:
    """A digest is sha256, reads back, and vouches for exactly its bytes."""
    found = digest.of_bytes(data)
    assert found == "sha256:" + hashlib.sha256(data).hexdigest()
    assert digest.parse(found) == found
    assert digest.require(data, found) == data
    with pytest.raises(DigestMismatch, match=r"there.*Restore"):
        digest.require(data + b"x", found, where="there")


def test_files_and_plain_data_have_digests(tmp_path: Path) -> None:
    """A file's digest is that of its bytes; that of plain data ignores the order of names."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 3_000_000)
    assert digest.of_file(path) == digest.of_bytes(b"x" * 3_000_000)
    assert digest.of_json({"a": 1, "b": 2}) == digest.of_json({"b": 2, "a": 1})
    assert digest.short(Digest("sha256:" + "ab" * 32)) == "abababababab"


@pytest.mark.parametrize("text", ["", "sha256:", "md5:" + "0" * 64, "sha256:" + "A" * 64, None, 5])
def test_other_text_is_no_digest(text: object) -> None:
    """Only sha256 and 64 lower-case hexadecimal digits are a digest."""
    with pytest.raises(InputError, match="not a digest"):
        digest.parse(text)  # type: ignore[arg-type] # what a file may hold


@given(versions, versions)
def test_versions_compare_as_numbers(first: Version, second: Version) -> None:
    """Versions read back, and are ordered by their three numbers."""
    assert version.parse(str(first)) == first
    assert version.parse(f"v{first}") == first
    numbers = [(item.major, item.minor, item.patch) for item in (first, second)]
    assert (first < second) == (numbers[0] < numbers[1])


@given(versions)
def test_a_bump_is_the_next_version(one: Version) -> None:
    """Every bump but none gives a later version, and the larger bump the later one."""
    bumped = [one.bumped(bump) for bump in ("none", "patch", "minor", "major")]
    assert bumped[0] == one
    assert bumped == sorted(set(bumped))


@pytest.mark.parametrize(
    "text", ["1.2", "1.2.3.4", "01.2.3", "1.2.3-rc1", " 1.2.3", "1\u0661.0.0", 1]
)
def test_other_text_is_no_version(text: object) -> None:
    """Pre-releases, leading zeros and foreign digits are refused."""
    with pytest.raises(InputError, match="not a semantic version"):
        version.parse(text, where="here")  # type: ignore[arg-type] # what a file may hold


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5))])))
def test_moments_read_back(moment: datetime) -> None:
    """A moment survives as text to the millisecond, in UTC, unless it leaves the calendar."""
    try:
        text = clock.to_text(moment)
    except OverflowError:
        assert moment.year in (1, 9999)
        return
    assert text.endswith("Z")
    assert timedelta(0) <= moment - clock.from_text(text) < timedelta(milliseconds=1)


def test_a_date_is_its_first_moment() -> None:
    """A date alone means midnight in UTC; other zones are converted."""
    assert clock.from_text("2013-11-01") == datetime(2013, 11, 1, tzinfo=UTC)
    assert clock.from_text("2013-11-01T00:00:00-04:00") == datetime(2013, 11, 1, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "soon", None, "2013-11-01T00:00:00", "0001-01-01T00:00:00+23:59"]
)
def test_other_text_is_no_moment(text: object) -> None:
    """A time without a zone is no moment, nor is one outside the calendar."""
    with pytest.raises(InputError):
        clock.from_text(text)  # type: ignore[arg-type] # what a file may hold
    with pytest.raises(InputError, match="no time zone"):
        clock.to_text(datetime(2013, 11, 1))  # noqa: DTZ001 - the point of the test


def test_the_system_clock_runs() -> None:
    """The machine's clock gives UTC, and its stopwatch never runs backwards."""
    system = clock.SystemClock()
    assert system.now().tzinfo is UTC
    assert system.monotonic() <= system.monotonic()


def _tree(kind: type[CaissonError]) -> list[type[CaissonError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _tree(child))]


def test_every_error_has_a_code_of_its_own() -> None:
    """Codes are stable, unique and in kebab case, and exit codes follow the branch."""
    tree = [kind for kind in _tree(CaissonError) if kind.__module__ == errors.__name__]
    codes = [kind.code for kind in tree]
    assert len(set(codes)) == len(codes)
    assert all(code == code.lower() and " " not in code for code in codes)
    for kind in tree:
        judged = issubclass(kind, errors.RefusedError | errors.IntegrityError)
        assert kind.exit_status == (1 if judged else 2)


def test_an_error_says_what_where_and_what_next() -> None:
    """The sentence holds place, what, expected, found and remedy; the parts stay apart."""
    error = InputError("is wrong", expected="a", found="b", location="file", remedy="Do c.")
    assert str(error) == "file: is wrong; expected a, got b. Do c."
    assert str(InputError("is wrong", found="b")) == "is wrong; expected nothing, got b"
    assert str(InputError("is wrong")) == "is wrong"
    assert error.to_dict()["remedy"] == "Do c."
    assert LoadFailed("no file", stage="weights").stage == "weights"
    assert str(LoadFailed("no file", stage="weights")) == "load stage weights: no file"


def test_progress_can_be_ignored() -> None:
    """The default reporter takes a step and does nothing."""
    progress.silent(progress.Progress("train", 1, 2, "rows"))


def test_provenance_names_the_commit(tmp_path: Path, root: Path) -> None:
    """Inside a checkout the commit is known; outside it is unknown, and nothing fails."""
    found = provenance.collect(root, datetime(2013, 11, 1, tzinfo=UTC))
    assert len(found.commit) == 40 or found.commit == "unknown"
    known = {item.metadata["Name"].lower() for item in importlib.metadata.distributions()}
    assert ("numpy" in found.to_dict()["libraries"]) == ("numpy" in known)
    outside = provenance.collect(tmp_path / "absent", datetime(2013, 11, 1, tzinfo=UTC))
    assert (outside.commit, outside.dirty) == ("unknown", False)


@pytest.mark.parametrize(
    ("armed", "passes"), [("a.before", 0), ("b, a.before:2", 2), ("", 9), ("b", 9)]
)
def test_a_failpoint_ends_the_process_at_its_count(armed: str, passes: int) -> None:
    """An armed point kills as kill -9 does, after the passes it lets by; others do nothing."""
    program = (
        "import sys; from contracts.base import failpoint\n"
        "failpoint.configure(sys.argv[1])\n"
        "for n in range(9): failpoint.hit('a.before'); print(n, flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, armed], capture_output=True, text=True, check=False
    )
    assert len(done.stdout.split()) == passes
    assert done.returncode == (0 if passes == 9 else -signal.SIGKILL)


def test_malformed_failpoints_are_refused() -> None:
    """A count that is no number is an input error."""
    with pytest.raises(InputError, match="a:b"):
        failpoint.configure("a:b")
    failpoint.configure("")


def test_an_armed_point_sends_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal is SIGKILL, to this very process, after the passes it lets by."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    failpoint.configure("a.before:1")
    for name in ("a.before", "other", "a.before"):
        failpoint.hit(name)
    failpoint.configure("")
    failpoint.hit("a.before")
    assert sent == [(os.getpid(), signal.SIGKILL)]
