"""The data listener speaks the Open Inference Protocol v2."""

from __future__ import annotations

import collections
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pytest

from model_packages.format.tensors import TensorSpec
from model_packages.runtime.backends.fake import FakeBackend, FakeSession
from model_packages.runtime.load.model import PackageSource
from model_packages.runtime.record import decisions
from model_packages.runtime.serve.client import Connection, Reply
from tests.fakes import packages, serving
from tests.fakes.serving import Running, Sums
from tests.fakes.waiting import until

_TENSOR = {"name": "value", "datatype": "FP32", "shape": [2]}
_INFER = "/v2/models/sums/infer"


def post(
    running: Running, body: Any, *, path: str = _INFER, **headers: str
) -> tuple[Reply, dict[str, Any]]:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(running, "POST", path, data, named)


def ask(
    running: Running,
    method: str,
    path: str,
    data: bytes = b"",
    headers: dict[str, str] | None = None,
) -> tuple[Reply, dict[str, Any]]:
    connection = Connection(running.data_url, 20)
    reply = connection.send(method, path, data, headers or {}, again=False)
    connection.close()
    length = int(reply.headers.get("inference-header-content-length", len(reply.body)))
    content = orjson.loads(reply.body[:length]) if reply.body else {}
    return reply, content


def values(*data: float, **fields: Any) -> dict[str, Any]:
    return {"inputs": [{**_TENSOR, "shape": [len(data)], "data": list(data)}], **fields}


def binary(size: int, **fields: Any) -> dict[str, Any]:
    return {"inputs": [{**_TENSOR, **fields, "parameters": {"binary_data_size": size}}]}


@pytest.fixture
def live(running: Running, first: PackageSource) -> Running:
    running.deploy(first)
    return running


def test_the_server_describes_itself_and_its_model(live: Running, first: PackageSource) -> None:
    """Clients of the protocol read this first."""
    assert ask(live, "GET", "/v2")[1]["extensions"] == ["binary_tensor_data"]
    assert ask(live, "GET", "/v2/health/live")[1] == {"live": True}
    assert ask(live, "GET", "/v2/health/ready")[1] == {"ready": True}
    model = {
        "name": "sums",
        "versions": ["1.0.0"],
        "platform": "fake",
        "inputs": [{"name": "value", "datatype": "FP32", "shape": [-1]}],
        "outputs": [{"name": "sum", "datatype": "FP32", "shape": [-1]}],
    }
    reply, content = ask(live, "GET", "/v2/models/sums")
    assert content == model
    assert reply.headers["caisson-package-digest"] == first.package_digest
    assert reply.headers["caisson-request-id"]
    assert ask(live, "GET", "/v2/models/sums/versions/1.0.0")[1] == model
    for path in ("/v2/models/sums/ready", "/v2/models/sums/versions/1.0.0/ready"):
        assert ask(live, "GET", path)[1] == {"name": "sums", "ready": True}


def test_nothing_is_ready_before_a_model_is_live(running: Running) -> None:
    """Alive and not ready are two things."""
    assert ask(running, "GET", "/v2/health/live")[0].status == 200
    for reply, content in (
        ask(running, "GET", "/v2/health/ready"),
        ask(running, "GET", "/v2/models/sums"),
        post(running, values(1)),
    ):
        assert reply.status == 503
        assert content["code"] == "not-ready"
        assert "caisson-package-digest" not in reply.headers


def test_an_inference_is_answered_in_json(live: Running, first: PackageSource) -> None:
    """With the version in the body, the package and the request's id in the headers."""
    reply, content = post(live, values(1, 2.5, id="mine"))
    assert content == {
        "model_name": "sums",
        "model_version": "1.0.0",
        "id": "mine",
        "outputs": [{"name": "sum", "datatype": "FP32", "shape": [2], "data": [1.0, 2.5]}],
    }
    assert reply.headers["caisson-request-id"] == "mine"
    assert reply.headers["caisson-package-digest"] == first.package_digest


def test_tensors_travel_in_binary(live: Running) -> None:
    """In both directions, and each output as it was asked for."""
    raw = np.array([1, 2], np.float32).tobytes()
    tensor = {**_TENSOR, "parameters": {"binary_data_size": 8}}
    for wish in (
        {"parameters": {"binary_data_output": True}},
        {"outputs": [{"name": "sum", "parameters": {"binary_data": True}}]},
    ):
        text = orjson.dumps({"inputs": [tensor], **wish})
        headers = {"inference_header_content_length": str(len(text))}
        reply, content = post(live, text + raw, **headers)
        assert content["outputs"][0]["parameters"] == {"binary_data_size": 8}
        assert reply.body.endswith(raw)
        assert reply.headers["content-type"] == "application/octet-stream"
    text = orjson.dumps({"inputs": [tensor]})
    content = post(live, text + raw, inference_header_content_length=str(len(text)))[1]
    assert content["outputs"][0]["data"] == [1.0, 2.0]


def test_only_requested_outputs_come_and_in_that_order(home: Any) -> None:
    """A known defect of other servers' batching."""
    outputs = (TensorSpec("sum", "FP32", (-1,)), TensorSpec("text", "BYTES", (-1,)))
    plain = [spec.to_dict() for spec in outputs]
    source = serving.write_sums(home / "model", Sums(fields={"outputs": plain}))
    packages.write_json(
        source.folder / "test_cases" / "valid_output_01.json",
        {
            "outputs": [
                {"name": "sum", "datatype": "FP32", "shape": [1], "data": [3]},
                {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["3.0"]},
            ]
        },
    )
    with serving.serve(home, FakeBackend([FakeSession(outputs=outputs)])) as running:
        running.deploy(serving.source_of(source.folder))
        wish = [{"name": "text"}, {"name": "sum"}]
        content = post(running, values(1, outputs=wish))[1]
        assert [item["name"] for item in content["outputs"]] == ["text", "sum"]
        assert content["outputs"][0]["data"] == ["1.0"]
        content = post(running, values(1, outputs=[{"name": "text"}]))[1]
        assert [item["name"] for item in content["outputs"]] == ["text"]
        text = orjson.dumps(values(1, parameters={"binary_data_output": True}))
        reply, content = post(running, text)
        assert reply.body.endswith(np.float32(1).tobytes() + b"\3\0\0\x001.0")


_BAD: dict[str, tuple[Any, str]] = {
    "no json": (b"{", "not JSON"),
    "no object": (b"[]", "not a JSON object"),
    "deep": (b"[" * 100_000, "not JSON"),
    "no inputs": ({}, "inputs is not a list"),
    "empty inputs": ({"inputs": []}, "inputs are missing"),
    "nameless": ({"inputs": [{}]}, "has no name"),
    "unknown input": ({"inputs": [{**_TENSOR, "name": "x"}]}, "input is unknown"),
    "repeated input": ({"inputs": [{**_TENSOR, "data": [1, 2]}] * 2}, "given twice"),
    "wrong datatype": ({"inputs": [{**_TENSOR, "datatype": "FP64"}]}, "datatype does not fit"),
    "wrong shape": ({"inputs": [{**_TENSOR, "shape": [2, 1]}]}, "shape does not fit"),
    "wrong count": ({"inputs": [{**_TENSOR, "data": [1]}]}, "do not fill"),
    "no data": ({"inputs": [_TENSOR]}, "data is not a list"),
    "no rows": ({"inputs": [{**_TENSOR, "shape": [0], "data": []}]}, "no rows"),
    "a null": (values(1, None), "another type"),  # type: ignore[arg-type] # that is the point
    "too many rows": (values(*range(9)), "at most 8, got 9"),
    "id": (values(1, id=5), "id is not text"),
    "parameters": (values(1, parameters=[]), "parameters is not an object"),
    "flag": (values(1, parameters={"binary_data_output": 1}), "neither true nor false"),
    "outputs": (values(1, outputs={}), "outputs is not a list"),
    "unknown output": (values(1, outputs=[{"name": "x"}]), "output is unknown"),
    "repeated output": (values(1, outputs=[{"name": "sum"}] * 2), "given twice"),
    "binary size": (binary(9), "binary_data_size is wrong"),
    "binary and json": (binary(0, data=[1, 2]), "given twice"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = tmp_path_factory.mktemp("home")
    source = serving.write_sums(home / "model")
    with serving.serve(home) as running:
        running.deploy(source)
        yield running


@pytest.mark.parametrize("name", _BAD)
def test_requests_that_do_not_fit_get_400(name: str, shared: Running) -> None:
    """The error says what was expected; the next request is answered."""
    body, message = _BAD[name]
    reply, content = post(shared, body, caisson_request_id="r1")
    assert reply.status == 400
    assert message in content["error"]
    assert content["code"] == "request-invalid"
    assert reply.headers["caisson-request-id"] == "r1"
    assert post(shared, values(1))[0].status == 200


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"inference_header_content_length": "999"}, "content-length is wrong"),
        ({"inference_header_content_length": "-1"}, "content-length is wrong"),
        ({"inference_header_content_length": "5"}, "not JSON"),
        ({"caisson_timeout_ms": "soon"}, "whole milliseconds"),
        ({"caisson_timeout_ms": "0"}, "whole milliseconds"),
    ],
)
def test_headers_that_lie_get_400(headers: dict[str, str], message: str, shared: Running) -> None:
    """Lengths and times from outside are judged."""
    reply, content = post(shared, values(1), **headers)
    assert reply.status == 400
    assert message in content["error"]


def test_bytes_after_the_last_tensor_are_refused(shared: Running) -> None:
    """Nothing is ignored silently."""
    text = orjson.dumps(values(1))
    reply, content = post(shared, text + b"x", inference_header_content_length=str(len(text)))
    assert reply.status == 400
    assert "after the last" in content["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v3", 404),
        ("GET", "/v2/health", 404),
        ("GET", "/v2/models/sums/x", 404),
        ("GET", "/v2/models/other", 404),
        ("GET", "/v2/models/sums/versions", 404),
        ("GET", "/v2/models/sums/versions/9.9.9", 404),
        ("GET", _INFER, 405),
        ("POST", "/v2", 405),
        ("POST", "/v2/models/other/infer", 404),
        ("POST", "/v2/models/sums/versions/9.9.9/infer", 404),
        ("POST", "/v2/models/sums/x/y/infer", 404),
        ("POST", "/v2/models/s%75ms/infer", 200),
        ("POST", "/v2/models/sums/versions/1.0.0/infer", 200),
    ],
)
def test_paths_are_judged(method: str, path: str, status: int, shared: Running) -> None:
    """Unknown paths, models, versions and wrong methods are told apart."""
    reply, content = ask(shared, method, path, orjson.dumps(values(1)) if method == "POST" else b"")
    assert reply.status == status
    assert ("error" in content) == (status != 200)


def test_ids_that_could_not_stand_in_a_header_are_replaced(shared: Running) -> None:
    """What is logged and echoed is printable and short."""
    for given in ("x" * 200, "a b"):
        reply, content = post(shared, values(1, id=given))
        assert reply.headers["caisson-request-id"] != given
        assert content["id"] == given


def test_what_has_no_time_left_gets_504(home: Any) -> None:
    """Also while the model computes; a client may shorten its time."""
    hold = threading.Event()
    session = FakeSession()
    source = serving.write_sums(home / "model")
    with serving.serve(home, FakeBackend([session])) as running:
        running.deploy(source)
        session.hold = hold
        reply, content = post(running, values(1), caisson_timeout_ms="50")
        assert reply.status == 504
        assert content["code"] == "deadline-exceeded"
        hold.set()
        assert post(running, values(1))[0].status == 200
        with running.admin() as admin:
            statistics = admin.statistics()[source.package_digest]
        assert statistics.faults == 1
        assert statistics.errors == {"deadline-exceeded": 1}
        assert statistics.answers == 1


def test_a_full_queue_gets_429_and_when_to_come_back(home: Any) -> None:
    """Quick refusal instead of endless waiting."""
    hold = threading.Event()
    session = FakeSession()
    source = serving.write_sums(home / "model", Sums(queue_size=1))
    with serving.serve(home, FakeBackend([session])) as running:
        running.deploy(source)
        before = len(session.batches)
        session.hold = hold
        threads = []
        for waiting in (1, 2):
            threads.append(threading.Thread(target=post, args=(running, values(1))))
            threads[-1].start()
            until(lambda: running.worker._slots.pending == waiting)  # noqa: B023 - used at once
            until(lambda: len(session.batches) == before + 1)
        reply, content = post(running, values(1))
        assert reply.status == 429
        assert int(reply.headers["retry-after"]) >= 1
        assert content["code"] == "overloaded"
        hold.set()
        for thread in threads:
            thread.join()


def test_a_failing_model_gets_500_and_no_details(home: Any) -> None:
    """What a model says may hold data of another client."""

    def fault(inputs: Any) -> None:
        if inputs["value"][0] == 7:
            raise ValueError("secret")

    source = serving.write_sums(home / "model")
    with serving.serve(home, FakeBackend([FakeSession(fault=fault)])) as running:
        running.deploy(source)
        reply, content = post(running, values(7))
        assert reply.status == 500
        assert "secret" not in content["error"]
        assert post(running, values(1))[0].status == 200


def test_every_request_is_found_in_the_decision_log(live: Running, first: PackageSource) -> None:
    """Answers and refusals alike; what reached no slot names none."""
    post(live, values(1), caisson_request_id="good")
    post(live, values(1, 2, outputs={}), caisson_request_id="bad")
    post(live, b"{", caisson_request_id="broken")
    live.stop()
    path = live.home / "decisions.log"
    found = {name: decisions.find(path, name) for name in ("good", "bad", "broken")}
    summary = {
        name: (item.status, item.slot, item.package_digest) for name, item in found.items() if item
    }
    assert summary == {
        "good": (200, "A", first.package_digest),
        "bad": (400, "A", first.package_digest),
        "broken": (400, "", ""),
    }


def test_a_canary_gets_its_share_by_key(
    live: Running, first: PackageSource, second: PackageSource
) -> None:
    """The same key gets the same package; answers and log say which it was."""
    with live.admin() as admin:
        admin.load(second.folder, second.package_digest, second.set_digest)
        admin.route(0.3, lease_s=60)
    seen = collections.Counter()
    for number in range(200):
        headers = {"caisson_route_key": f"customer-{number}"}
        reply = post(live, values(1), **headers)[0]
        again = post(live, values(2), **headers)[0]
        digest = reply.headers["caisson-package-digest"]
        assert digest == again.headers["caisson-package-digest"]
        seen[digest] += 1
    assert 0.15 < seen[second.package_digest] / 200 < 0.45
    assert set(seen) == {first.package_digest, second.package_digest}
    with live.admin() as admin:
        statistics = admin.statistics()
    assert statistics[second.package_digest].answers == 2 * seen[second.package_digest]
    live.stop()
    canaries = [item for item in decisions.read(live.home / "decisions.log") if item.canary]
    assert {item.package_digest for item in canaries} == {second.package_digest}
