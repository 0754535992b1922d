"""The ``caisson`` command: groups of commands, and the one place where errors become exit codes.

Exit 0: done and passed. 1: judged and refused. 2: could not be judged. 130: interrupted.
Only typer is imported to show help; a command imports what it needs when it runs.
"""

from __future__ import annotations

import json
import sys
import traceback

from contracts.base.errors import CaissonError, PackageMissing

try:
    import typer

    from flows.cli import contract, demo, features, model, operate, package
except ImportError as problem:
    sys.stderr.write(f"caisson: {PackageMissing.of(problem)}\n")
    raise SystemExit(2) from None

_INTERRUPTED = 130

app = typer.Typer(
    name="caisson",
    help="Take a model from checked data to a running, watched service, and prove every step.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
demo.register(app)
app.add_typer(contract.app, name="contract")
app.add_typer(features.app, name="features")
app.add_typer(package.app, name="package")
model.register(app)
operate.register(app)


def run() -> None:
    """Run the command named on the command line and exit with its status."""
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: list[str]) -> int:
    """Run a command and return its exit status; the outer edge for every error."""
    as_json = "--json" in arguments
    try:
        outcome = app(arguments, standalone_mode=False, prog_name="caisson")
    except CaissonError as err:
        return _failed(err.to_dict(), str(err), err.exit_status, as_json=as_json)
    except typer.Exit as err:
        outcome = err.exit_code
    except (KeyboardInterrupt, typer.Abort):
        outcome = _INTERRUPTED
    except typer.TyperException as err:
        wrong = err.format_message()
        said = f"{wrong}\nTry the command with --help."
        return _failed({"code": "usage", "message": wrong}, said, 2, as_json=as_json)
    except ImportError as err:
        missing = PackageMissing.of(err)
        return _failed(missing.to_dict(), str(missing), missing.exit_status, as_json=as_json)
    except Exception as err:  # noqa: BLE001 - the outer edge: a fault of ours is shown whole
        details = {"code": "internal-fault", "message": f"{type(err).__name__}: {err}"}
        said = f"internal fault\n{traceback.format_exc()}"
        return _failed(details, said, 2, as_json=as_json)
    except BaseException as err:
        if type(err).__name__ != "TerminationSignal":  # how Prefect passes SIGTERM on
            raise
        outcome = _INTERRUPTED
    if outcome == _INTERRUPTED:
        return _interrupted()
    return outcome if isinstance(outcome, int) else 0


def _failed(details: dict[str, str], said: str, status: int, *, as_json: bool) -> int:
    """Show an error: whole on stderr for people, as one object on stdout for machines."""
    if as_json:
        sys.stdout.write(json.dumps({"error": details}, ensure_ascii=False) + "\n")
    sys.stderr.write(f"caisson: {said.rstrip()}\n")
    return status


def _interrupted() -> int:
    """End what stages started, if a stage was ever imported, and say how to go on."""
    child = sys.modules.get("tasks.child")
    if child is not None:
        child.stop_all()
    sys.stderr.write("caisson: interrupted; running the command again continues\n")
    return _INTERRUPTED
