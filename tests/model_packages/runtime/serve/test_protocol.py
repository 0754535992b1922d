"""HTTP as it comes: whatever one client sends, it gets a defined answer and harms nobody."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model_packages.runtime.backends.fake import FakeBackend, FakeSession
from model_packages.runtime.load.model import PackageSource
from model_packages.runtime.serve import protocol
from tests.fakes import serving
from tests.fakes.serving import Running
from tests.fakes.waiting import until

_BODY = json.dumps(
    {"inputs": [{"name": "value", "datatype": "FP32", "shape": [1], "data": [3]}]}
).encode()
_LIVE = b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n"


def infer(body: bytes = _BODY, *headers: str) -> bytes:
    lines = ["POST /v2/models/sums/infer HTTP/1.1", "host: x", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def exchange(running: Running, data: bytes, *, end: bool = True) -> bytes:
    """Send bytes, say that no more follow, and return all that comes back."""
    with running.connect() as sock:
        sock.sendall(data)
        if end:
            sock.shutdown(socket.SHUT_WR)
        return read_all(sock)


def read_all(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(65536):
        parts.append(part)
    return b"".join(parts)


def read_one(sock: socket.socket) -> tuple[int, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(65536)
    head, _, rest = data.partition(b"\r\n\r\n")
    match = re.search(rb"content-length: (\d+)", head)
    assert match is not None
    while len(rest) < int(match[1]):
        rest += sock.recv(65536)
    return int(head[9:12]), rest


def statuses(answer: bytes) -> list[int]:
    return [int(text) for text in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("home")
    source = serving.write_sums(home / "model")
    with serving.serve(home, change=serving.with_limits(body_bytes=2000, pipelined=4)) as running:
        running.deploy(source)
        yield running


def test_requests_on_one_connection_are_answered_in_order(shared: Running) -> None:
    """Keep-alive, and many requests sent ahead of their answers."""
    found = exchange(shared, infer() * 3 + _LIVE + infer(b"{}") + infer())
    assert statuses(found) == [200, 200, 200, 200, 400, 200]
    assert found.count(b'"data":[3.0]') == 4


def test_more_requests_than_may_wait_are_read_later(shared: Running) -> None:
    """A client that sends ahead without end is slowed down, not refused."""
    assert statuses(exchange(shared, infer() * 3000)) == [200] * 3000


def test_bytes_may_come_one_by_one(shared: Running) -> None:
    """Pieces make the same request."""
    with shared.connect() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in infer():
            sock.sendall(bytes([byte]))
        assert read_one(sock)[0] == 200


def test_chunked_bodies_are_read(shared: Running) -> None:
    """And a trailer cannot pass for a header."""
    head = b"POST /v2/models/sums/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    body = b"%x\r\n%b\r\n0\r\ncaisson-request-id: forged\r\n\r\n" % (len(_BODY), _BODY)
    found = exchange(shared, head + body)
    assert statuses(found) == [200]
    assert b"forged" not in found


@pytest.mark.parametrize("endless", [b"0\r\nt: ", b"1;"])
def test_what_surrounds_chunks_is_bounded(endless: bytes, shared: Running) -> None:
    """A trailer or a chunk's extension that does not end is refused, not kept in memory."""
    with shared.connect() as sock:
        sock.sendall(head("transfer-encoding: chunked") + endless)
        for _ in range(20):
            sock.sendall(b"a" * 2000)
            time.sleep(0.01)
        assert statuses(read_all(sock)) == [431]


def test_a_client_may_ask_before_it_sends(shared: Running) -> None:
    """Expect: 100-continue."""
    with shared.connect() as sock:
        head, _, body = infer(_BODY, "expect: 100-continue").partition(b"\r\n\r\n")
        sock.sendall(head + b"\r\n\r\n")
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert read_one(sock)[0] == 200


def test_head_has_no_body(shared: Running) -> None:
    """Else the next answer could not be found."""
    found = exchange(shared, _LIVE.replace(b"GET", b"HEAD") + _LIVE)
    assert statuses(found) == [200, 200]
    assert found.count(b'{"live":true}') == 1


def test_old_clients_are_served_and_their_connection_closed(shared: Running) -> None:
    """HTTP/1.0 does not keep connections."""
    found = exchange(shared, b"GET /v2/health/live HTTP/1.0\r\n\r\n", end=False)
    assert statuses(found) == [200]
    assert b"connection: close" in found


def test_a_client_may_close_after_its_answer(shared: Running) -> None:
    """Connection: close is obeyed."""
    found = exchange(
        shared, _LIVE.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), end=False
    )
    assert statuses(found) == [200]


def test_an_offered_upgrade_is_ignored(shared: Running) -> None:
    """The request itself is answered in HTTP/1.1."""
    offer = b"\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    assert statuses(exchange(shared, _LIVE.replace(b"\r\n\r\n", offer), end=False)) == [200]
    found = exchange(shared, infer(_BODY, "connection: upgrade", "upgrade: h2c"), end=False)
    assert statuses(found) == [501]


def test_absolute_targets_are_understood(shared: Running) -> None:
    """As a proxy would send them; a query is no part of the path."""
    found = exchange(
        shared,
        b"GET http://x/v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n"
        b"GET /v2/health/live?a=b HTTP/1.1\r\nhost: x\r\n\r\n",
    )
    assert statuses(found) == [200, 200]


def head(*headers: str, line: str = "POST / HTTP/1.1") -> bytes:
    return "\r\n".join([line, "host: x", *headers, "", ""]).encode()


_CHUNKED = "transfer-encoding: chunked"
_MALFORMED = {
    "not http": (b"\x16\x03\x01\x02\x00\x01", 400),
    "http 2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "another version": (head(line="GET / HTTP/3.0"), 400),
    "http 0.9": (head(line="GET / HTTP/0.9"), 505),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (head("host: y"), 400),
    "bad target": (head(line="GET http:// HTTP/1.1"), 400),
    "two lengths": (head("content-length: 1", "content-length: 2") + b"ab", 400),
    "length and chunked": (head("content-length: 5", _CHUNKED) + b"0\r\n\r\n", 400),
    "gzip coding": (head("transfer-encoding: gzip, chunked"), 501),
    "gzip body": (head("content-encoding: gzip", "content-length: 1") + b"0", 415),
    "bare line feed": (b"GET / HTTP/1.1\r\nhost: x\n\n", 400),
    "space before colon": (b"GET / HTTP/1.1\r\nhost : x\r\n\r\n", 400),
    "bad chunk": (head(_CHUNKED) + b"zz\r\n", 400),
    "huge length": (head("content-length: 99999999999999999999"), 400),
    "large length": (head("content-length: 2001"), 413),
    "large chunks": (head(_CHUNKED) + b"7d1\r\n" + b"x" * 2001 + b"\r\n0\r\n\r\n", 413),
    "long target": (head(line=f"GET /{'x' * 20000} HTTP/1.1"), 431),
    "long header": (head(f"x: {'x' * 20000}"), 431),
    "endless header": (head(f"x: {'x' * 2_000_000}")[:-4], 431),
    "connect": (head(line="CONNECT x:80 HTTP/1.1"), 400),
}


@pytest.mark.parametrize("name", _MALFORMED)
def test_malformed_requests_get_a_defined_answer(name: str, shared: Running) -> None:
    """One JSON error, then the connection ends; a request before it is still answered."""
    data, status = _MALFORMED[name]
    found = exchange(shared, infer() + data, end=False)
    assert statuses(found) == [200, status]
    assert b"connection: close" in found
    error = json.loads(found[found.rindex(b"\r\n\r\n") :])
    assert error["error"]
    assert error["code"] in ("request-refused", "request-invalid")
    assert statuses(exchange(shared, infer())) == [200]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_damage_gives_an_answer_or_an_end(data: st.DataObject, shared: Running) -> None:
    """Bytes changed, cut or inserted anywhere: never an internal error, and others are served."""
    request = bytearray(infer(_BODY, "caisson-request-id: r1"))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(request) - 1))
        request[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    assert 500 not in statuses(exchange(shared, bytes(request)))
    assert statuses(exchange(shared, infer())) == [200]


def test_half_a_request_is_dropped(shared: Running) -> None:
    """A client that gives up leaves nothing behind."""
    assert exchange(shared, infer()[:-3]) == b""
    assert exchange(shared, b"") == b""


def test_a_client_that_leaves_is_not_waited_for(home: Path, first: PackageSource) -> None:
    """What it asked for is not computed."""
    hold = threading.Event()
    session = FakeSession()
    with serving.serve(home, FakeBackend([session])) as running:
        running.deploy(first)
        before = len(session.batches)
        session.hold = hold
        with running.connect() as waiting, running.connect() as leaving:
            waiting.sendall(infer())
            until(lambda: len(session.batches) == before + 1)
            leaving.sendall(infer() * 2)
            until(lambda: running.worker._slots.pending == 2)
            leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            leaving.close()  # with a reset, which unlike an end cannot mean "I still read"
            until(lambda: running.worker._listeners[0].connections == 1)
            hold.set()
            assert read_one(waiting)[0] == 200
        until(lambda: running.worker._slots.pending == 0)
        assert len(session.batches) == before + 1


@pytest.mark.parametrize("sent", [b"", b"GET / HT", infer()[:-1]])
def test_slow_clients_are_refused(sent: bytes, home: Path) -> None:
    """A request must arrive in its time."""
    with serving.serve(home, change=serving.with_limits(read_s=0.2)) as running:
        found = exchange(running, sent, end=False)
        assert statuses(found) == [408]


def test_idle_connections_are_closed(home: Path) -> None:
    """Silently, since nothing is owed."""
    with (
        serving.serve(home, change=serving.with_limits(idle_s=0.2)) as running,
        running.connect() as sock,
    ):
        sock.sendall(_LIVE)
        assert read_one(sock)[0] == 200
        assert sock.recv(10) == b""


def test_too_many_connections_are_refused(home: Path) -> None:
    """With an answer, and only those over the limit."""
    with (
        serving.serve(home, change=serving.with_limits(connections=2)) as running,
        running.connect() as one,
        running.connect() as two,
    ):
        one.sendall(_LIVE)
        two.sendall(_LIVE)
        assert read_one(one)[0] == read_one(two)[0] == 200
        assert statuses(exchange(running, b"", end=False)) == [503]


@pytest.fixture
def short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_LINGER_S", 0.2)


def test_a_client_that_never_reads_is_cut(home: Path) -> None:
    """Answers do not pile up in memory."""
    with serving.serve(home, change=serving.with_limits(write_s=0.3)) as running:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", running.data_port))
        with sock, pytest.raises((ConnectionResetError, BrokenPipeError)):
            sock.sendall(_LIVE * 200_000)


@pytest.mark.usefixtures("short_linger")
def test_a_client_that_stays_after_a_refusal_is_cut(home: Path) -> None:
    """The answer is delivered, then the connection ends whatever the client does."""
    with serving.serve(home) as running, running.connect() as sock:
        sock.sendall(b"bad\r\n\r\n")
        assert statuses(read_all(sock)) == [400]
        sock.sendall(b"more")
        until(lambda: running.worker._listeners[0].connections == 0, seconds=10)
