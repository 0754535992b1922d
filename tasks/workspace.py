"""Where an installation keeps everything it makes: one home folder, its parts by name.

Nothing here reads the environment: ``flows/wiring.py`` makes the workspace from the settings and
every stage receives it. The parts are described in the README.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from contracts.base import files
from contracts.base.clock import Clock, SystemClock
from contracts.base.errors import InputError, UnavailableError
from contracts.base.progress import Reporter, silent
from contracts.objects.folder import FolderStore

_FOLDERS = (
    "objects",
    "registry",
    "prefect",
    "mlflow",
    "targets",
    "environments",
    "locks",
    "reports",
    "tmp",
    "sources",
)
_SWEPT = ("objects", "registry", "reports")


@dataclass(frozen=True)
class Workspace:
    """The folders of one installation, and what every stage shares.

    Attributes:
        home: The home folder, ``.caisson`` by default.
        root: The checkout whose code runs; never written to.
        clock: Where stages take their time from.
        progress: Who hears of progress.
        batches: Folder of the data sources if it lies outside the home folder.
    """

    home: Path
    root: Path
    clock: Clock = field(default_factory=SystemClock)
    progress: Reporter = silent
    batches: Path | None = None

    @property
    def objects_path(self) -> Path:
        """Folder of the object store."""
        return self.home / "objects"

    @property
    def objects(self) -> FolderStore:
        """The object store: bundles, source trees and weights by digest."""
        return FolderStore(self.objects_path)

    def packages(self, repository: str) -> Path:
        """Folder of the OCI layout in which packages of a repository are built."""
        return self.objects_path / "packages" / _relative(repository)

    def registry(self, repository: str) -> Path:
        """Folder of the OCI layout to which releases of a repository are pushed."""
        return self.home / "registry" / _relative(repository)

    @property
    def ledger_path(self) -> Path:
        """The release ledger's database."""
        return self.home / "ledger.db"

    @property
    def prefect(self) -> Path:
        """Folder of the local Prefect server."""
        return self.home / "prefect"

    @property
    def mlflow(self) -> Path:
        """Folder of MLflow's database and artifacts."""
        return self.home / "mlflow"

    @property
    def targets(self) -> Path:
        """Folder with one folder a target."""
        return self.home / "targets"

    @property
    def environments(self) -> Path:
        """Folder of the Python environments that cannot share the main one."""
        return self.home / "environments"

    @property
    def keys(self) -> Path:
        """Folder of private keys; only its owner may enter."""
        return self.home / "keys"

    @property
    def locks(self) -> Path:
        """Folder of lock files; they are free again when their holders end."""
        return self.home / "locks"

    @property
    def presence(self) -> Path:
        """Lock file that every process that may write here holds shared."""
        return self.locks / "home"

    @property
    def reports(self) -> Path:
        """Folder of recorded reports, one folder a stage."""
        return self.home / "reports"

    @property
    def tmp(self) -> Path:
        """Folder for work in progress; nothing in it is trusted after its maker ended."""
        return self.home / "tmp"

    @property
    def sources(self) -> Path:
        """Folder under which the batches of data sources arrive."""
        return self.batches or self.home / "sources"

    def prepare(self) -> Workspace:
        """Make the folders that are missing and return this workspace.

        Raises:
            UnavailableError: If the home folder cannot be written.
        """
        try:
            # Whatever the umask, nobody else may put files where ours are looked for.
            self.home.mkdir(mode=0o755, parents=True, exist_ok=True)
            for name in _FOLDERS:
                (self.home / name).mkdir(mode=0o755, exist_ok=True)
            self.keys.mkdir(mode=0o700, exist_ok=True)
            writable = os.access(self.home, os.W_OK | os.X_OK)
        except OSError as err:
            raise _unwritable(self.home, err.strerror or str(err)) from err
        if not writable:
            raise _unwritable(self.home, "Permission denied")
        return self

    def sweep(self) -> int:
        """Remove what interrupted writes left, unless somebody works here; return how many things.

        That is all of ``tmp``, and half-written files elsewhere. Unfinished deliveries of data
        owners stay: only names that our own writes use are removed among the sources.
        """
        with files.locked(self.presence, wait=False) as alone:
            if not alone:
                return 0
            left = files.sweep(self.home / "sources", pattern="**/.*.????????????.part")
            left += sum(files.sweep(self.home / name) for name in _SWEPT)
            return left + files.sweep(self.tmp, pattern="*")


def _relative(repository: str) -> PurePosixPath:
    """Return a repository name as a path that cannot leave its folder."""
    path = PurePosixPath(repository)
    parts = repository.split("/")
    if path.is_absolute() or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise InputError(
            "not a repository name",
            expected="names joined by slashes, such as caisson/flight-delay",
            found=repr(repository),
        )
    return path


def _unwritable(home: Path, reason: str) -> UnavailableError:
    return UnavailableError(
        f"home folder cannot be written: {reason}",
        location=str(home),
        remedy="Set CAISSON_HOME to a folder you may write to.",
    )
