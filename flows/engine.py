"""The processes behind ``flows/server.py``: Prefect's local server, and MLflow's pages.

``python -m flows.engine prefect`` serves on a listening socket that it inherits, with SQLite in
the working folder. It writes ``server.json`` when it answers, and ends itself when it can take the
lock that every command holds shared. ``python -m flows.engine mlflow`` serves MLflow's pages until
its parent ends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import fcntl
import gc
import os
import shutil
import signal
import socket
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from contracts.base import files
from contracts.base.errors import CaissonError
from tasks import template

STATE = "server.json"
CLIENTS = "clients.lock"
DATABASE = "prefect.db"
MEMO = "memo_store.toml"

_LOOK_EVERY_S = 0.1
_PATIENCE_S = 2
_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Serve what the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m flows.engine")
    parser.add_argument("what", choices=("prefect", "mlflow"))
    parser.add_argument("--socket", type=int, required=True, help="number of the inherited socket")
    parser.add_argument("--linger", type=float, default=0.0, help="seconds to stay when unused")
    parser.add_argument("--starter", type=int, required=True, help="process that waits for it")
    options = parser.parse_args(argv)
    # Thousands of classes are made while importing, and none of them is garbage.
    gc.disable()
    listener = socket.socket(fileno=options.socket)
    if options.what == "mlflow":
        _serve_pages(listener)
    else:
        _serve_prefect(listener, options)


def _serve_prefect(listener: socket.socket, options: argparse.Namespace) -> None:
    fresh = not Path(DATABASE).exists()
    if not fresh:
        _require_database()
    keep = fresh and not _from_template()
    application = _prefect(f"http://127.0.0.1:{listener.getsockname()[1]}")
    gc.enable()
    gc.freeze()
    asyncio.run(_Prefect(application, listener, options, keep).run())


def _require_database() -> None:
    """End at once, with one sentence, if the database is none."""
    try:
        with contextlib.closing(sqlite3.connect(DATABASE)) as base:
            base.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error as err:
        sys.exit(
            f"{DATABASE}: {err}. Move it away to begin with an empty one: Prefect's history of runs"
            " is lost, the ledger and all releases are not."
        )


def _prefect(origin: str) -> Any:
    """Return Prefect's application, with every transaction on SQLite beginning IMMEDIATE.

    A transaction that begins DEFERRED and writes later fails at once with "database is locked" if
    another wrote in between; Prefect's client then sleeps about two seconds. Tried on 3.9.1.
    """
    os.environ["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] = origin
    os.environ["PREFECT_UI_API_URL"] = f"{origin}/api"

    from prefect.server.api.server import create_app
    from prefect.server.database.configurations import AioSqliteConfiguration

    original = AioSqliteConfiguration.begin_transaction

    @contextlib.asynccontextmanager
    async def begin_immediately(
        self: Any, session: Any, with_for_update: bool = False
    ) -> AsyncIterator[Any]:
        del with_for_update
        async with original(self, session, with_for_update=True) as transaction:
            yield transaction

    AioSqliteConfiguration.begin_transaction = begin_immediately
    return create_app(final=True)


class _Prefect:
    """One run of the server, from the first answer to the last command's end."""

    def __init__(
        self, application: Any, listener: socket.socket, options: argparse.Namespace, keep: bool
    ) -> None:
        import uvicorn

        config = uvicorn.Config(
            application,
            log_level="warning",
            lifespan="on",
            access_log=False,
            timeout_graceful_shutdown=_PATIENCE_S,
        )
        self._server = uvicorn.Server(config)
        self._listener = listener
        self._linger = options.linger
        self._starter = options.starter
        self._keep = keep

    async def run(self) -> None:
        """Serve until nobody needs it."""
        serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started:
            if serving.done():
                await serving
                raise SystemExit(1)
            if os.getppid() != self._starter:
                raise SystemExit("the command that started this server is gone")
            await asyncio.sleep(0.01)
        if self._keep:
            _to_template()
        self._announce()
        await self._until_unused(serving)
        self._withdraw()
        self._server.should_exit = True
        await serving

    def _announce(self) -> None:
        state = {
            "url": f"http://127.0.0.1:{self._listener.getsockname()[1]}",
            "auth": os.environ["PREFECT_SERVER_API_AUTH_STRING"],
            "pid": os.getpid(),
        }
        files.write_json(Path(STATE), state, mode=0o600)

    def _withdraw(self) -> None:
        with contextlib.suppress(CaissonError, TypeError, KeyError):
            if files.read_json(Path(STATE), limit=4096)["pid"] == os.getpid():
                Path(STATE).unlink(missing_ok=True)

    async def _until_unused(self, serving: asyncio.Task[None]) -> None:
        """Return with the clients' lock held, so that no command joins a server that is ending.

        Commands touch the lock file when they leave it; that moment starts the linger.
        """
        lock = os.open(CLIENTS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        while not serving.done():
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if time.time() - os.fstat(lock).st_mtime >= self._linger:
                    return
                fcntl.flock(lock, fcntl.LOCK_UN)
            await asyncio.sleep(_LOOK_EVERY_S)


def _from_template() -> bool:
    """Begin with a copy of the migrated empty database; return whether there was a good one."""
    try:
        memo = files.read_bounded(template.path_of("prefect").with_suffix(".toml"), 65536)
        files.write_atomic(Path(MEMO), memo, mode=0o600)
    except CaissonError:
        return False
    return template.restore("prefect", Path(DATABASE))


def _to_template() -> None:
    """Keep a copy of the database just migrated, and the memo that its blocks are registered."""
    if template.keep("prefect", Path(DATABASE), forget=["DELETE FROM configuration"]):
        with contextlib.suppress(OSError):
            shutil.copyfile(MEMO, template.path_of("prefect").with_suffix(".toml"))


def _serve_pages(listener: socket.socket) -> None:
    """Serve MLflow's pages in this one process until the parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    import uvicorn
    from mlflow.server.fastapi_app import app

    gc.enable()
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1:])
