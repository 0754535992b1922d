"""The clients: values in, values out, and errors of the tree whatever the server does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from contracts.base import files
from contracts.base.errors import (
    CaissonError,
    InputError,
    LoadFailed,
    ModelUnknown,
    RequestInvalid,
    ServerUnavailable,
)
from model_packages.runtime.load.model import PackageSource
from model_packages.runtime.serve import failures
from model_packages.runtime.serve import home as homes
from model_packages.runtime.serve.batcher import QueueFull
from model_packages.runtime.serve.client import AdminClient, Call, Connection, InferenceClient
from model_packages.runtime.serve.home import State
from model_packages.runtime.serve.messages import RequestRefused
from tests.fakes.serving import Running


@pytest.fixture
def live(running: Running, first: PackageSource) -> Running:
    running.deploy(first)
    return running


@pytest.mark.parametrize("binary", [True, False])
def test_values_go_in_and_come_out(binary: bool, live: Running, first: PackageSource) -> None:
    """In either form, with the id and the package of the answer."""
    with live.client() as client:
        assert client.ready()
        assert client.metadata("sums")["name"] == "sums"
        assert client.infer("sums", Call({"value": [1]})).outputs["sum"].tolist() == [1.0]
        call = Call({"value": np.array([1, 2.5], np.float32)}, request_id="r1", route_key="k")
        found = client.infer("sums", call, outputs=["sum"], binary=binary, timeout_ms=4000)
        assert found.outputs["sum"].tolist() == [1.0, 2.5]
        assert found.request_id == "r1"
        assert found.package_digest == first.package_digest
        assert found.model_version == "1.0.0"


def test_many_requests_keep_their_order(live: Running) -> None:
    """Over several connections at once."""
    with live.client() as client:
        calls = [Call({"value": np.array([number], np.float32)}) for number in range(200)]
        found = list(client.infer_many("sums", calls, threads=4))
        assert [answer.outputs["sum"].item() for answer in found] == list(range(200))
        assert len({answer.request_id for answer in found}) == 200


def test_errors_keep_their_kind(live: Running) -> None:
    """What the server raised is raised here."""
    with live.client() as client:
        with pytest.raises(ModelUnknown, match="expected sums, got other"):
            client.infer("other", Call({"value": np.zeros(1, np.float32)}))
        with pytest.raises(RequestInvalid, match="datatype does not fit"):
            client.infer("sums", Call({"value": np.zeros(1)}))
        with pytest.raises(RequestInvalid, match="expected FP32"):
            client.infer("sums", Call({"value": ["a"]}))
        with pytest.raises(RequestInvalid, match="input is unknown"):
            client.infer("sums", Call({"word": ["a"]}))
        with pytest.raises(ModelUnknown):
            client.metadata("other")


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind"),
    [
        (429, {"retry-after": "7"}, b'{"code": "overloaded", "error": "x"}', QueueFull),
        (429, {"retry-after": "soon"}, b'{"code": "overloaded"}', QueueFull),
        (503, {}, b'{"code": "load-failed", "stage": "graph", "error": "x"}', LoadFailed),
        (422, {}, b'{"code": "input-invalid", "details": {"expected": "y"}}', InputError),
        (500, {}, b'{"code": 5, "details": 6}', RequestRefused),
        (502, {}, b"<html>", RequestRefused),
        (502, {}, b"[]", RequestRefused),
    ],
)
def test_any_answer_becomes_an_error_of_the_tree(
    status: int, headers: dict[str, str], body: bytes, kind: type[CaissonError]
) -> None:
    """Even one that this project never sends."""
    with pytest.raises(kind):
        failures.require_ok(status, headers, body)
    failures.require_ok(200, {}, b"")


class Scripted:
    """A server that plays one answer a connection and then closes it."""

    def __init__(self, *answers: bytes) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._play, args=(answers,), daemon=True)
        self._thread.start()

    def _play(self, answers: tuple[bytes, ...]) -> None:
        for answer in answers:
            connection, _ = self._socket.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

    def close(self) -> None:
        self._thread.join(10)
        self._socket.close()


_OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


@pytest.fixture
def scripted() -> Iterator[list[Scripted]]:
    servers: list[Scripted] = []
    yield servers
    for server in servers:
        server.close()


def test_a_kept_connection_that_was_closed_is_opened_again(scripted: list[Scripted]) -> None:
    """Once, and only where sending twice does no harm."""
    server = Scripted(_OK, _OK)
    scripted.append(server)
    client = InferenceClient(server.url)
    assert client.ready()
    assert client.ready()
    client.close()


def test_an_act_is_never_sent_twice(scripted: list[Scripted]) -> None:
    """Whether it was done is asked, not guessed."""
    server = Scripted(_OK)
    scripted.append(server)
    connection = Connection(server.url, 5)
    assert connection.send("POST", "/", b"", {}, again=False).status == 200
    server.close()
    with pytest.raises(ServerUnavailable, match="does not answer"):
        connection.send("POST", "/", b"", {}, again=False)
    connection.close()


def test_a_server_that_is_not_there_is_unavailable(scripted: list[Scripted]) -> None:
    """Refused, silent, or speaking something else."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ServerUnavailable, match="timed out"):
            Connection(url, 0.05).send("GET", "/", b"", {}, again=True)
    with pytest.raises(ServerUnavailable, match="refused"):
        Connection(url, 5).send("GET", "/", b"", {}, again=True)
    scripted.append(Scripted(b"220 ready\r\n"))
    with pytest.raises(ServerUnavailable):
        Connection(scripted[0].url, 5).send("GET", "/", b"", {}, again=True)


def test_a_target_is_found_through_its_home(live: Running) -> None:
    """State and token lie there; only a held lock means that it runs."""
    home = live.home
    with pytest.raises(ServerUnavailable, match="not running"):
        AdminClient.connect(home)
    state = State(1, 2, live.data_url, live.admin_url, homes.TOKEN, "now")
    files.write_json(home / homes.STATE, state.to_dict())
    with pytest.raises(ServerUnavailable, match="not running"):
        AdminClient.connect(home)
    with files.locked(home / homes.LOCK):
        assert homes.read_state(home) == state
        admin = AdminClient.connect(home)
        assert admin.status()["model"] == "sums"
        admin.close()
    assert not homes.running(home)


@pytest.mark.parametrize("data", [None, {}, {"format_version": 0, "pid": 1}])
def test_a_state_of_another_form_is_refused(data: object) -> None:
    """Nothing is guessed from it."""
    with pytest.raises(InputError, match="not a target's state"):
        State.from_dict(data)


def test_every_datatype_is_named(tmp_path: Path) -> None:
    """From numpy's own types."""
    from model_packages.runtime.serve.client import _array, _datatype

    kinds = ["f2", "f4", "f8", "?", "u1", "i8", "U3", "O"]
    found = [_datatype(np.zeros(1, kind)) for kind in kinds]
    assert found == ["FP16", "FP32", "FP64", "BOOL", "UINT8", "INT64", "BYTES", "BYTES"]
    assert _datatype(_array(["a"], None)) == "BYTES"
    del tmp_path
