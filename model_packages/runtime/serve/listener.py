"""A listening socket and the connections that came through it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from contracts.base.clock import Clock
from contracts.base.errors import ServerUnavailable
from model_packages.runtime.config import Limits
from model_packages.runtime.serve.protocol import Connection, Handler

_BACKLOG = 1024


class Listener:
    """Accepts connections for one handler. Construct, then ``open``."""

    def __init__(self, handler: Handler, limits: Limits, clock: Clock) -> None:
        """Prepare a listener."""
        self.handler = handler
        self.limits = limits
        self.draining = False
        self.monotonic: Callable[[], float] = clock.monotonic
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None

    async def open(self, sock: socket.socket) -> None:
        """Accept connections from a socket that is bound already."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), sock=sock, backlog=_BACKLOG
        )

    def opened(self, connection: Connection) -> bool:
        """Take note of a connection; False if there are too many."""
        self._connections.add(connection)
        return len(self._connections) <= self.limits.connections

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)

    def check(self) -> None:
        """Enforce the time limits of all connections."""
        now = self.monotonic()
        for connection in list(self._connections):
            connection.check(now)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    async def drain(self, limit_s: float, *, grace_s: float = 0.2, pause_s: float = 0.02) -> bool:
        """Stop accepting, answer what is under way, and close.

        Args:
            limit_s: Longest time to wait.
            grace_s: How long an idle client may still send one last request.
            pause_s: Time between two looks.

        Returns:
            Whether nothing was cut off.
        """
        self.draining = True
        if self._server is not None:
            self._server.close()
        end = self.monotonic() + limit_s
        grace_end = min(end, self.monotonic() + grace_s)
        while self._connections and self.monotonic() < end:
            if self.monotonic() >= grace_end:
                for connection in list(self._connections):
                    connection.close_if_idle()
            await asyncio.sleep(pause_s)
        cut = [connection for connection in self._connections if connection.busy]
        for connection in list(self._connections):
            connection.abort()
        return not cut


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        ServerUnavailable: If the address is taken or not ours.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except OSError as err:
        sock.close()
        raise ServerUnavailable(
            f"cannot listen: {err.strerror}",
            location=f"{host}:{port}",
            remedy="Free the port, or ask for port 0 to get any free one.",
        ) from err
    sock.setblocking(False)
    return sock
