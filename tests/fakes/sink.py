"""Places for alerts: one in memory that can be down, and an HTTP receiver on loopback."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from contracts.base.errors import UnavailableError
from tasks.alerts.interface import Alert


@dataclass
class MemorySink:
    """Remembers alerts; refuses them while it is down."""

    name: str = "memory"
    down: bool = False
    taken: list[Alert] = field(default_factory=list)

    def send(self, alert: Alert) -> None:
        """Take an alert, unless down."""
        if self.down:
            raise UnavailableError("down", location=self.name)
        self.taken.append(alert)

    def said(self) -> list[tuple[str, str]]:
        """Return action and key of what was taken."""
        return [(alert.action, alert.key) for alert in self.taken]


@dataclass
class Receiver:
    """What an HTTP receiver got, and how it answers."""

    url: str = ""
    status: int = 202
    bodies: list[dict[str, Any]] = field(default_factory=list)


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    """Run an HTTP receiver on a free port of 127.0.0.1."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            found.bodies.append(json.loads(self.rfile.read(length)))
            self.send_response(found.status)
            self.send_header("location", found.url)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}/hook/secret-path"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
