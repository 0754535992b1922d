"""A home folder in which one model was released, deployed and asked, without running any stage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.report import Report, conclude
from contracts.features import archive, bundle, pointer
from contracts.features.bundle import BundleColumn, BundleInput, BundleManifest, BundlePart
from contracts.features.pointer import Pointer
from model_packages.runtime.record.decisions import Decision, DecisionLog
from tasks import reuse
from tasks.ledger.store import Ledger
from tasks.workspace import Workspace
from tests.fakes.clock import FixedClock

MODEL = "flight-delay"
TARGET = "local"
COMMIT = "c0ffee" * 6 + "c0ff"
CONTRACT = "nyc/flights@1.0.0"
SCHEMA = digest.of_bytes(b"schema")
STAGES = ("validate", "package", "trust", "hardware", "verify", "compliance")


@dataclass(frozen=True)
class House:
    """What a test wants to know of it."""

    workspace: Workspace
    ledger: Ledger
    manifest: BundleManifest


def manifest() -> BundleManifest:
    """Return what a bundle of two batches and one row says about itself."""
    cells = (digest.of_bytes(b"cells"),)
    return BundleManifest(
        definition="nyc/flights/arrival-delay",
        definition_digest=digest.of_bytes(b"definition"),
        inputs=(
            BundleInput(
                "flights",
                CONTRACT,
                SCHEMA,
                (("2013-01", digest.of_bytes(b"jan")), ("2013-02", digest.of_bytes(b"feb"))),
            ),
            BundleInput(
                "weather",
                "nyc/weather@1.0.0",
                digest.of_bytes(b"weather"),
                (("2013-01", digest.of_bytes(b"sun")),),
            ),
        ),
        columns=(
            BundleColumn("time", "timestamp", "event_time", "", cells),
            BundleColumn("distance", "float32", "feature", "numeric", cells),
            BundleColumn("late", "int64", "label", "", cells),
        ),
        rows=1,
        excluded_rows=2,
        block_rows=10,
        block_bounds=(("2013-01-01T00:00:00Z", "2013-01-01T00:00:00Z"),),
        as_of=datetime(2013, 11, 1, tzinfo=UTC),
        parts=(BundlePart("part-00000.parquet", 4, digest.of_bytes(b"data")),),
    )


def publish(workspace: Workspace, content: BundleManifest) -> None:
    """Put a bundle where readers look."""
    packed = archive.pack({bundle.MANIFEST: content.dumps(), "part-00000.parquet": b"data"})
    key = pointer.archive_key(content.definition, content.version)
    info = workspace.objects.put(key, packed)
    found = Pointer(
        content.definition,
        content.version,
        content.root,
        content.as_of,
        content.rows,
        key,
        info.size,
        info.etag,
    )
    workspace.objects.put(pointer.key_of(content.definition, content.version), found.dumps())


def reports() -> list[Report]:
    """Return what the stages said."""
    return [
        conclude(stage, "s", [], facts={"n": {"auc": 0.7}}, measurements={"seconds": 1.5})
        for stage in STAGES
    ]


def package(name: str) -> Digest:
    """Return the digest of a package."""
    return digest.of_bytes(name.encode())


def release(house: House, name: str) -> Digest:
    """Record a package's reports and its candidate, and put it into the registry."""
    found = package(name)
    binding = {
        "set_digest": digest.of_bytes(f"set {name}".encode()),
        "contract": CONTRACT,
        "schema_hash": SCHEMA,
        "feature_version": house.manifest.version,
        "git_commit": COMMIT,
        "achieved_level": "L1",
        "reports": {report.stage: report.digest for report in reports()},
    }
    body = {
        "model": MODEL,
        "set_digest": binding["set_digest"],
        "binding": binding,
        "achieved_level": "L1",
        "signature": {"signers": ["demo"]},
    }
    house.ledger.append("candidate", found, body)
    blob = house.workspace.registry(MODEL) / "blobs" / "sha256" / found.removeprefix("sha256:")
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.touch()
    return found


def answer(house: House, request_id: str, digest_of_package: str) -> None:
    """Log an answer of the target."""
    log = DecisionLog(house.workspace.targets / TARGET / "decisions.log")
    log.start()
    log.append(Decision(1_385_900_000_000, request_id, digest_of_package, "A", 200))
    log.close()


def build(home: Path, root: Path) -> House:
    """Return a home folder with one published bundle and the recorded reports."""
    workspace = Workspace(home, root, FixedClock()).prepare()
    house = House(workspace, Ledger(workspace.ledger_path, FixedClock()), manifest())
    publish(workspace, house.manifest)
    for report in reports():
        reuse.once(workspace, report.stage, {}, lambda found=report: found, areas=["tasks/lineage"])
    return house
