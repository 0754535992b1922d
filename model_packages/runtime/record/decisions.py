"""The decision log: which package answered which request, when, and how.

Serving appends to a bounded queue; a thread writes. A full queue drops records and counts them,
so that inference never waits for a disk. What a crash may lose is the last tenth of a second.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from contracts.base import failpoint
from contracts.base.errors import CorruptLog, UnavailableError
from model_packages.runtime.record import frames

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Decision:
    """One answered request.

    Attributes:
        time_ms: When it was answered, in milliseconds since 1970 UTC.
        request_id: Its id, as in the answer's header.
        package_digest: The package that answered; empty if none did.
        slot: ``A`` or ``B``; empty if it never reached one.
        status: HTTP status of the answer.
        canary: Whether the canary share sent it there.
    """

    time_ms: int
    request_id: str
    package_digest: str
    slot: str
    status: int
    canary: bool = False


@dataclass(frozen=True)
class LogOptions:
    """Bounds of a decision log.

    Attributes:
        queue: Records that may wait for the writer.
        interval_s: How often the writer writes.
        file_bytes: A file this large is set aside and a new one begun.
        files: Files set aside that are kept.
    """

    queue: int = 65_536
    interval_s: float = 0.1
    file_bytes: int = 64 * 2**20
    files: int = 4


class DecisionLog:
    """Appends decisions to a file from a thread of its own. Construct, then ``start``."""

    def __init__(self, path: Path, options: LogOptions | None = None) -> None:
        """Prepare a log at ``path``; nothing is touched yet."""
        self.path = path
        self._options = options or LogOptions()
        self._queue: deque[Decision] = deque()
        self._wake = threading.Event()
        self._stopped = False
        self._writing = threading.Lock()
        self._file = -1
        self._size = 0
        self._thread = threading.Thread(target=self._run, name="decision-log", daemon=True)
        self.written = 0
        self.dropped = 0

    def start(self) -> None:
        """Open the file, cut a torn tail, and start the writer.

        Raises:
            UnavailableError: If the file cannot be opened.
        """
        try:
            self._open()
        except OSError as err:
            raise UnavailableError(
                f"decision log cannot be opened: {err.strerror}",
                location=str(self.path),
                remedy="Check the permissions of the target's folder.",
            ) from err
        self._thread.start()

    def append(self, decision: Decision) -> None:
        """Queue one decision; never waits."""
        if len(self._queue) >= self._options.queue:
            self.dropped += 1
            return
        self._queue.append(decision)

    def facts(self) -> dict[str, int]:
        """Return what was written, is waiting and was dropped."""
        return {"written": self.written, "waiting": len(self._queue), "dropped": self.dropped}

    def flush(self) -> None:
        """Write everything queued so far, from the calling thread."""
        with self._writing:
            count = len(self._queue)
            if not count or self._file < 0:
                return
            batch = [self._queue.popleft() for _ in range(count)]
            failpoint.hit("decisions.write.before")
            try:
                self._write(b"".join(frames.pack(_dump(item)) for item in batch))
            except OSError:
                self.dropped += count
                _log.exception("decision log %s: %d records lost", self.path, count)
                return
            failpoint.hit("decisions.write.after")
            self.written += count

    def close(self) -> None:
        """Write the rest, make it durable and stop the writer."""
        self._stopped = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self.flush()
        with self._writing, contextlib.suppress(OSError):
            if self._file >= 0:
                os.fsync(self._file)
                os.close(self._file)
                self._file = -1

    def _run(self) -> None:
        while not self._stopped:
            self._wake.wait(self._options.interval_s)
            self.flush()

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            good = _good_bytes(self.path)
        except CorruptLog:
            _log.exception("decision log %s is set aside", self.path)
            self._set_aside()
            good = 0
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, good)
        self._size = os.lseek(self._file, good, os.SEEK_SET)

    def _write(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._options.file_bytes:
            os.close(self._file)
            self._set_aside()
            self._open()
        view = memoryview(data)
        while view:
            count = os.write(self._file, view)
            self._size += count
            view = view[count:]

    def _set_aside(self) -> None:
        """Number the files so that 1 is the newest of those set aside."""
        for number in range(self._options.files, 0, -1):
            source = self.path if number == 1 else _numbered(self.path, number - 1)
            with contextlib.suppress(FileNotFoundError):
                source.replace(_numbered(self.path, number))


def find(path: Path, request_id: str) -> Decision | None:
    """Return the newest decision about a request id, or None; works while a worker writes.

    Args:
        path: The log file; files set aside beside it are searched too, newest first.
        request_id: The id in the answer's header ``caisson-request-id``.
    """
    for file in [path, *_aside(path)]:
        with _mapped(file) as data:
            found = _search(data, request_id) if data is not None else None
        if found is not None:
            return found
    return None


def read(path: Path) -> Iterator[Decision]:
    """Yield the decisions of one file, oldest first, up to a torn tail.

    Raises:
        CorruptLog: If a record was changed.
    """
    with _mapped(path) as data:
        if data is None:
            return
        with memoryview(data) as view:
            for _, payload in frames.scan(view, where=str(path)):
                yield _parse(payload, str(path))


def _search(data: mmap.mmap, request_id: str) -> Decision | None:
    if not request_id.isascii():  # no answer ever carried such an id
        return None
    wanted = orjson.dumps(request_id)
    place = data.rfind(wanted)
    with memoryview(data) as view:
        while place != -1:
            start = data.rfind(frames.MARKER, 0, place)
            payload = frames.at(view, start) if start != -1 else None
            if payload is not None:
                decision = _parse(payload, "decision log")
                if decision.request_id == request_id:
                    return decision
            place = data.rfind(wanted, 0, place)
    return None


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap | None]:
    try:
        with path.open("rb") as stream:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):  # mmap refuses an empty file with ValueError
        yield None
        return
    with data:
        yield data


def _good_bytes(path: Path) -> int:
    with _mapped(path) as data:
        if data is None:
            return 0
        with memoryview(data) as view:
            return max((end for end, _ in frames.scan(view, where=str(path))), default=0)


def _aside(path: Path) -> list[Path]:
    found = path.parent.glob(f"{path.stem}.*{path.suffix}")
    numbers = [int(part) for part in (file.name.split(".")[-2] for file in found) if part.isdigit()]
    return [_numbered(path, number) for number in sorted(numbers)]


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number}{path.suffix}")


def _dump(decision: Decision) -> bytes:
    return orjson.dumps(
        [
            decision.time_ms,
            decision.request_id,
            decision.package_digest,
            decision.slot,
            decision.status,
            decision.canary,
        ]
    )


def _parse(payload: bytes, where: str) -> Decision:
    try:
        return Decision(*orjson.loads(payload))
    except (TypeError, ValueError) as err:
        raise CorruptLog("a record is not a decision", location=where) from err
