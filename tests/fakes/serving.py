"""A worker in this process, on a thread of its own, and packages for the fake backend.

- ``write_sums(folder)`` writes a package whose model is a ``FakeSession``: it sums rows.
- ``serve(home, backend)`` runs a worker until the block ends and says where it listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import uvloop

from contracts.base import digest, files
from contracts.base.clock import SystemClock
from contracts.base.digest import Digest
from model_packages.format import inventory
from model_packages.runtime.backends.fake import FakeBackend
from model_packages.runtime.backends.interface import Backend
from model_packages.runtime.config import ServeOptions
from model_packages.runtime.load.model import PackageSource
from model_packages.runtime.serve import home as homes
from model_packages.runtime.serve.client import AdminClient, InferenceClient
from model_packages.runtime.serve.listener import bind
from model_packages.runtime.serve.worker import Worker
from tests.fakes import packages

TOKEN = "a token of tests"


@dataclass(frozen=True)
class Sums:
    """What may differ between two packages of the fake backend."""

    name: str = "sums"
    version: str = "1.0.0"
    max_batch_size: int = 8
    timeout_ms: int = 5000
    memory_mb: int = 512
    queue_size: int = 64
    golden: float = 3.0
    fields: dict[str, Any] = field(default_factory=dict)


def write_sums(folder: Path, sums: Sums | None = None) -> PackageSource:
    """Write a ``/model`` tree with one FP32 input ``value`` and one output ``sum``."""
    sums = sums or Sums()
    (folder / "test_cases").mkdir(parents=True)
    (folder / "docs").mkdir()
    plain = packages.manifest(packages.Options(name=sums.name, version=sums.version, memory_mb=0))
    plain["inputs"] = [{"name": "value", "datatype": "FP32", "shape": [-1]}]
    plain["outputs"] = [{"name": "sum", "datatype": "FP32", "shape": [-1]}]
    packages.write_json(folder / "manifest.json", {**plain, **sums.fields})
    (folder / "config.yaml").write_text(
        f"max_batch_size: {sums.max_batch_size}\ntimeout_ms: {sums.timeout_ms}\n"
        f"memory_mb: {sums.memory_mb}\nqueue_size: {sums.queue_size}\n"
    )
    (folder / "model.onnx").write_bytes(b"no graph")
    (folder / "docs" / "usage.md").write_text("Send a value.\n")
    (folder / "health_check.py").write_text('"""Nothing."""\n')
    tensor = {"datatype": "FP32", "shape": [1]}
    packages.write_json(
        folder / "test_cases" / "valid_input_01.json",
        {"inputs": [{"name": "value", **tensor, "data": [3.0]}]},
    )
    packages.write_json(
        folder / "test_cases" / "valid_output_01.json",
        {
            "outputs": [{"name": "sum", **tensor, "data": [sums.golden]}],
            "tolerance": {"absolute": 0.001, "relative": 0.0},
        },
    )
    return source_of(folder)


def source_of(folder: Path) -> PackageSource:
    """Return a tree as a package whose digest follows from its content."""
    content = inventory.read(folder).set_digest
    return PackageSource(folder, digest.of_bytes(content.encode()), content)


@dataclass
class Running:
    """A worker that runs."""

    home: Path
    data_port: int
    admin_port: int
    worker: Worker
    begin_stop: Callable[[], None]
    stop: Callable[[], int]

    @property
    def data_url(self) -> str:
        """Address of the data listener."""
        return f"http://127.0.0.1:{self.data_port}"

    @property
    def admin_url(self) -> str:
        """Address of the admin listener."""
        return f"http://127.0.0.1:{self.admin_port}"

    @contextlib.contextmanager
    def admin(self, token: str = TOKEN) -> Iterator[AdminClient]:
        """Lend a client of the admin listener."""
        with contextlib.closing(AdminClient(self.admin_url, token, timeout_s=20)) as client:
            yield client

    @contextlib.contextmanager
    def client(self) -> Iterator[InferenceClient]:
        """Lend a client of the data listener."""
        with contextlib.closing(InferenceClient(self.data_url, timeout_s=20)) as client:
            yield client

    def deploy(self, source: PackageSource) -> Digest:
        """Load and promote a package."""
        with self.admin() as admin:
            admin.load(source.folder, source.package_digest, source.set_digest)
            admin.promote(source.package_digest)
        return source.package_digest

    def connect(self) -> socket.socket:
        """Return a raw connection to the data listener."""
        return socket.create_connection(("127.0.0.1", self.data_port), timeout=20)


@contextlib.contextmanager
def serve(
    home: Path,
    backend: Backend | None = None,
    *,
    change: Callable[[ServeOptions], ServeOptions] = lambda options: options,
) -> Iterator[Running]:
    """Run a worker for the target in ``home`` until the block ends."""
    opened = backend or FakeBackend()
    files.write_atomic(home / homes.TOKEN, TOKEN.encode(), mode=0o600)
    data, admin = bind("127.0.0.1", 0), bind("127.0.0.1", 0)
    ports = data.getsockname()[1], admin.getsockname()[1]
    options = change(ServeOptions(home, data.detach(), admin.detach(), drain_s=5.0))
    started: list[Worker] = []
    loops: list[asyncio.AbstractEventLoop] = []
    status: list[int] = []
    ready = threading.Event()

    async def main() -> int:
        loops.append(asyncio.get_running_loop())
        started.append(Worker(options, lambda: opened, SystemClock()))
        ready.set()
        return await started[0].run()

    def body() -> None:
        try:
            status.append(uvloop.run(main()))
        finally:
            ready.set()

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    assert ready.wait(20)
    assert started, "the worker did not start"

    def begin_stop() -> None:
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            loops[0].call_soon_threadsafe(started[0].stop)

    def stop() -> int:
        begin_stop()
        thread.join(20)
        assert not thread.is_alive(), "the worker does not end"
        return status[0]

    running = Running(home, *ports, worker=started[0], begin_stop=begin_stop, stop=stop)
    try:
        yield running
    finally:
        stop()


def with_options(**fields: Any) -> Callable[[ServeOptions], ServeOptions]:
    """Return a change of the worker's options, for ``serve``."""
    return lambda options: replace(options, **fields)


def with_limits(**limits: Any) -> Callable[[ServeOptions], ServeOptions]:
    """Return a change of the data listener's limits, for ``serve``."""
    return lambda options: replace(options, data=replace(options.data, **limits))
