"""Whether an installation is sound: nothing half-written is trusted, nothing is there twice."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.report import Report
from model_packages.oci.store import LayoutStore
from tasks.release.journal import unfinished
from tests.fakes.installation import MODEL, TARGET, Installation


def assert_sound(installation: Installation) -> None:
    """The ledger verifies, every digest is true, every package is registered once."""
    ledger = installation.ledger
    assert ledger.verify() > 0
    candidates = Counter(record.subject for record in ledger.records("candidate"))
    assert candidates, "nothing was registered"
    assert set(candidates.values()) == {1}, candidates
    _assert_layouts(installation)
    _assert_blobs(installation.workspace.objects_path / "blobs" / "sha256")
    _assert_reports(installation.workspace.reports)
    assert not [key for key in installation.workspace.objects.keys("") if key.endswith(".part")]


def assert_finished(installation: Installation, live: Digest) -> None:
    """The installation is sound, what shall be live is, and nothing is left half done."""
    assert_sound(installation)
    pointer = installation.ledger.pointer(MODEL, TARGET)
    assert pointer is not None
    assert pointer.digest == live
    assert unfinished(installation.ledger) == []
    route = json.loads((installation.workspace.targets / TARGET / "route.json").read_text())
    assert route["live"]["package_digest"] == live
    assert halves(installation) == []


def halves(installation: Installation) -> list[Path]:
    """Return what was begun and never moved into place."""
    return [
        Path(parent, name)
        for parent, folders, names in os.walk(installation.home)
        for name in (*folders, *names)
        if name.endswith(".part")
    ]


def live(installation: Installation) -> Digest:
    """Return the digest of what is live."""
    pointer = installation.ledger.pointer(MODEL, TARGET)
    assert pointer is not None
    return pointer.digest


def _assert_layouts(installation: Installation) -> None:
    """Everything that a layout's index reaches is there and is what its digest says."""
    workspace = installation.workspace
    places = [workspace.registry(MODEL), workspace.packages(MODEL)]
    kept = workspace.targets / TARGET / "packages"
    places += sorted(kept.iterdir()) if kept.is_dir() else []
    for place in places:
        if not (place / "index.json").is_file():
            continue
        store = LayoutStore(place)
        for entry in store.entries():
            store.verify(entry)
        _assert_blobs(place / "blobs" / "sha256")


def _assert_blobs(folder: Path) -> None:
    """Every file that is named after a digest has it."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            assert digest.of_file(path) == f"sha256:{path.name}", path


def _assert_reports(folder: Path) -> None:
    for path in folder.glob("digests/*.json"):
        record = json.loads(path.read_bytes())
        found = Report.from_dict(record["report"])
        assert found.digest == record["report_digest"] == f"sha256:{path.stem}", path
