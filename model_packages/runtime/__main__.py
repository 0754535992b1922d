"""``python -m model_packages.runtime``: supervise a target, or be its worker."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from contracts.base.clock import SystemClock
from contracts.base.errors import CaissonError
from model_packages.runtime import backends, config
from model_packages.runtime.config import ServeOptions, SuperviseOptions
from model_packages.runtime.serve import spawn
from model_packages.runtime.serve.supervisor import Supervisor
from model_packages.runtime.serve.worker import Worker

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(arguments)
    config.prepare_process()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level="INFO")
    try:
        status: int = options.run(options)
    except CaissonError as err:
        sys.stderr.write(f"{err.code}: {err}\n")
        return err.exit_status
    return status


def _supervise(options: argparse.Namespace) -> int:
    supervisor = Supervisor(
        SuperviseOptions(
            home=options.home.absolute(),
            host=options.host,
            port=options.port,
            admin_port=options.admin_port,
            while_locked=options.while_locked,
            drain_s=options.drain_s,
        ),
        spawn.worker,
        SystemClock(),
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: supervisor.stop())
    supervisor.run()
    return 0


def _serve(options: argparse.Namespace) -> int:
    if options.supervisor:
        spawn.die_with(options.supervisor)
    return uvloop.run(
        _work(
            ServeOptions(
                home=options.home,
                data_descriptor=options.data_descriptor,
                admin_descriptor=options.admin_descriptor,
                ready_descriptor=options.ready_descriptor,
                supervisor=options.supervisor,
                idle=options.idle,
                drain_s=options.drain_s,
            ),
            options.backend,
        )
    )


async def _work(options: ServeOptions, backend: str) -> int:
    worker = Worker(options, lambda: backends.create(backend), SystemClock())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)
    return await worker.run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m model_packages.runtime", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--home", type=Path, required=True, help="folder of the target")
    shared.add_argument(
        "--drain-s", type=float, default=30.0, help="seconds to finish requests when ending"
    )
    supervise = commands.add_parser(
        "supervise",
        parents=[shared],
        help="own the sockets of a target and keep a worker alive",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    supervise.add_argument("--host", default="127.0.0.1", help="address to listen at")
    supervise.add_argument("--port", type=int, default=0, help="port for requests; 0 = any free")
    supervise.add_argument("--admin-port", type=int, default=0, help="port for acts; 0 = any free")
    supervise.add_argument("--while-locked", type=Path, help="lock file; end once nobody holds it")
    supervise.set_defaults(run=_supervise)
    serve = commands.add_parser(
        "serve",
        parents=[shared],
        help="serve on inherited sockets; started by a supervisor",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    serve.add_argument("--data-descriptor", type=int, required=True, help="inherited socket")
    serve.add_argument("--admin-descriptor", type=int, required=True, help="inherited socket")
    serve.add_argument("--ready-descriptor", type=int, default=-1, help="pipe told when ready")
    serve.add_argument("--supervisor", type=int, default=0, help="process to end with")
    serve.add_argument("--idle", action="store_true", help="do not load the live package")
    serve.add_argument("--backend", default="onnx", choices=sorted(backends.TABLE))
    serve.set_defaults(run=_serve)
    return parser


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    os._exit(code)  # a model that never ends must not keep the process
