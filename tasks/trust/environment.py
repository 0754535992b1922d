"""The environment of its own that alibi-detect lives in: where it is, and how it is built.

Its folder is named after the digest of its pinned requirements, so that another pin is another
environment. It is built aside and moved into place when it works; an interrupted build leaves
nothing that is trusted. ``python -m tasks.trust.environment [FOLDER]`` builds it, FOLDER being
``environments`` of the home folder.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
from pathlib import Path

from contracts.base import digest, failpoint, files
from contracts.base.errors import CaissonError, UnavailableError

REQUIREMENTS = Path("infra/environments/alibi/requirements.txt")

_ROOT = Path(__file__).resolve().parents[2]
_LIMIT = 2**20
_BUILD_S = 1200
_PROBE_S = 300

logger = logging.getLogger(__name__)


def locate(root: Path, environments: Path) -> Path:
    """Return the folder where the environment belongs, whether or not it is there.

    Raises:
        InputError: If the requirements cannot be read.
    """
    pinned = digest.of_bytes(files.read_bounded(root / REQUIREMENTS, _LIMIT))
    return environments / f"alibi-{digest.short(pinned)}"


def python_of(folder: Path) -> Path | None:
    """Return the environment's interpreter, or None if the environment is not there."""
    path = folder / "bin" / "python"
    return path if path.is_file() else None


def build(root: Path, environments: Path) -> Path:
    """Build the environment unless it is there, and return its folder.

    Raises:
        UnavailableError: If packages cannot be installed; says what pip said.
    """
    folder = locate(root, environments)
    with files.locked(environments / f".{folder.name}.lock"):
        if python_of(folder) is not None:
            return folder
        logger.info("building %s; this takes about a minute", folder)
        with files.staging(folder) as aside:
            python = str(aside / "bin" / "python")
            _run([sys.executable, "-m", "venv", str(aside)], _BUILD_S)
            install = ["install", "--disable-pip-version-check", "--no-input", "--no-deps"]
            pins = str(root / REQUIREMENTS)
            _run([python, "-m", "pip", *install, "--quiet", "-r", pins], _BUILD_S)
            _run([python, "-I", "-c", "import alibi_detect.cd"], _PROBE_S)
            failpoint.hit("trust.environment.before")
    return folder


def _run(command: list[str], seconds: int) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as err:
        raise _failed(command, str(err)) from err
    if done.returncode != 0:
        raise _failed(command, (done.stderr or done.stdout).strip()[-2000:])


def _failed(command: list[str], said: str) -> UnavailableError:
    return UnavailableError(
        f"environment of alibi-detect could not be built: {said}",
        location=" ".join(command[:4]),
        remedy="Check the package index and free space; without it the trust stage says so.",
    )


def main(arguments: list[str]) -> int:
    """Build the environment from the command line; 0 if it is there afterwards."""
    parser = argparse.ArgumentParser(prog="python -m tasks.trust.environment")
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=_ROOT / ".caisson" / "environments",
        help="environments of the home folder (default: %(default)s)",
    )
    try:
        folder = build(_ROOT, parser.parse_args(arguments).folder)
    except CaissonError as err:
        sys.stderr.write(f"{err}\n")
        return err.exit_status
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(main(sys.argv[1:]))
