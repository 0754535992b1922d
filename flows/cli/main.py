"""The ``caisson`` command: groups of commands, and the one place where errors become exit codes.

Exit 0: done and passed. 1: judged and refused. 2: could not be judged. 130: interrupted.
Only typer is imported to show help; a command imports what it needs when it runs.
"""

from __future__ import annotations

import json
import sys
import traceback

import typer

from contracts.base.errors import CaissonError
from flows.cli import contract, demo, features, model, operate, package

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
    try:
        outcome = app(arguments, standalone_mode=False, prog_name="caisson")
    except CaissonError as err:
        return _report(err, as_json="--json" in arguments)
    except typer.Exit as err:
        return int(err.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _stop_children()
        sys.stderr.write("caisson: interrupted; running the command again continues\n")
        return 130
    except typer.TyperException as err:
        sys.stderr.write(f"caisson: {err}\nTry the command with --help.\n")
        return 2
    except Exception:  # noqa: BLE001 - the outer edge: a fault of ours is shown whole, with status 2
        sys.stderr.write(f"caisson: internal fault\n{traceback.format_exc()}")
        return 2
    return outcome if isinstance(outcome, int) else 0


def _stop_children() -> None:
    """End what stages started, if a stage was ever imported."""
    child = sys.modules.get("tasks.child")
    if child is not None:
        child.stop_all()


def _report(err: CaissonError, *, as_json: bool) -> int:
    if as_json:
        sys.stdout.write(json.dumps({"error": err.to_dict()}, ensure_ascii=False) + "\n")
    sys.stderr.write(f"caisson: {err}\n")
    return err.exit_status
