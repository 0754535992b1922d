"""One real but quickly trained package, shared by all tests that need one.

January of the real flights trains it, February judges it; three thousand rows, one epoch. Made once
a test process, in about ten seconds, by the real stages.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from contracts.base.digest import Digest
from contracts.base.report import Report
from model_packages.oci.reference import PackageRef
from tasks.demo import data
from tasks.package.package import package, reference_of
from tasks.snapshot.snapshot import snapshot
from tasks.train.options import TrainOptions
from tasks.train.train import Versions, train
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
MODEL = "flight-delay"
DEFINITION = "nyc/flights/arrival-delay"
OPTIONS = TrainOptions(epochs=1, rows=3000, enforce_target=False)


@dataclass(frozen=True)
class Trained:
    """What there is after training and packaging."""

    workspace: Workspace
    report: Report
    ref: PackageRef
    versions: Versions

    @property
    def tree(self) -> Digest:
        return Digest(self.report.facts["source_tree"])

    @property
    def reference(self) -> Digest:
        return Digest(self.report.facts["reference_digest"])


@functools.cache
def trained() -> Trained:
    """Return the package, made on the first call."""
    home = Path(tempfile.mkdtemp(prefix="caisson-trained-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    workspace = Workspace(home / "home with space", ROOT).prepare()
    data.prepare(workspace.sources)
    versions = Versions(_bundle(workspace, "2013-01", 2), _bundle(workspace, "2013-02", 3))
    folder = OPTIONS.folder(ROOT, MODEL)
    report = train(workspace, folder, versions, OPTIONS)
    tree = Digest(report.facts["source_tree"])
    return Trained(workspace, report, build(workspace, tree), versions)


def build(workspace: Workspace, tree: Digest) -> PackageRef:
    """Build a package source and return what it is called."""
    return reference_of(package(workspace, tree, MODEL))


def _bundle(workspace: Workspace, month: str, following: int) -> str:
    batches = {"nyc/flights": [month], "nyc/weather": [month], "nyc/planes": ["2013"]}
    moment = datetime(2013, following, 1, tzinfo=UTC)
    return str(snapshot(workspace, DEFINITION, batches, moment).facts["feature_version"])
