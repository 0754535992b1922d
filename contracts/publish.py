"""Publishes a contract: lint, compare with every earlier version, and write it once and for all.

A published version is never replaced. Publishing the same content again is a no-op that says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from contracts import compatibility, spec
from contracts.base import failpoint
from contracts.base.digest import Digest
from contracts.base.errors import OverwriteRefused, RefusedError, UnavailableError
from contracts.base.report import Report
from contracts.base.version import Bump
from contracts.catalog import Catalog
from contracts.compatibility import Change
from contracts.engine import scan
from contracts.judge import judge
from contracts.sources.interface import Batch
from contracts.terms import Contract


@dataclass(frozen=True)
class Published:
    """What publishing did.

    Attributes:
        contract: The contract.
        path: Its file in the catalog.
        digest: Digest of its canonical content.
        compared: Identities of all versions it was held against.
        changes: What changed since the latest earlier version.
        unchanged: Whether exactly this was published before.
        sample: Verdict on the sample batch; None if none was given.
    """

    contract: Contract
    path: Path
    digest: Digest
    compared: tuple[str, ...]
    changes: tuple[Change, ...]
    unchanged: bool
    sample: Report | None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain data."""
        return {
            "contract": self.contract.identity,
            "digest": self.digest,
            "schema_hash": self.contract.schema_hash,
            "compared": list(self.compared),
            "changes": [vars(change) for change in self.changes],
            "unchanged": self.unchanged,
            "sample": self.sample.verdict if self.sample else None,
        }


def publish(
    path: Path,
    catalog: Catalog,
    *,
    sample: Batch | None = None,
    as_of: datetime | None = None,
    dry_run: bool = False,
) -> Published:
    """Publish a contract file.

    Args:
        path: The owner's file; it may already lie at its place in the catalog.
        catalog: Where it is published.
        sample: A batch that must keep the promise.
        as_of: The moment of this run, for the sample.
        dry_run: Do everything but write.

    Raises:
        ContractInvalid: If the file breaks the specification.
        OverwriteRefused: If the version is published with other content.
        RefusedError: If the version step is too small for what changed, or the sample breaks it.
        UnavailableError: If the catalog cannot be written.
    """
    contract = spec.load(path)  # (1) lint: every problem at once
    scan.check_patterns(contract)  # (2) the engine accepts what lint cannot judge
    target = catalog.path(contract.name, contract.version)
    unchanged, earlier = check(contract, catalog)  # (3) never overwrite, (4) the right step
    verdict = _try(contract, sample, as_of)  # (5) the owner's own data keeps the promise
    if not unchanged and not dry_run:
        _write_once(target, contract)  # (6)
    older = [item for item in earlier if item.version < contract.version]
    return Published(
        contract=contract,
        path=target,
        digest=contract.digest,
        compared=tuple(item.identity for item in earlier),
        changes=compatibility.compare(older[-1], contract) if older else (),
        unchanged=unchanged,
        sample=verdict,
    )


def check(contract: Contract, catalog: Catalog) -> tuple[bool, list[Contract]]:
    """Hold a contract against every version of it that is published.

    Returns:
        Whether exactly this is published already, and all other versions, oldest first.

    Raises:
        OverwriteRefused: If the version is published with other content.
        RefusedError: If the version step is too small for what changed.
    """
    unchanged = _published_already(contract, catalog.path(contract.name, contract.version))
    earlier = catalog.earlier(contract)
    if not unchanged:
        _demand_newest(contract, earlier)
    _demand_bump(contract, earlier)
    return unchanged, earlier


def _published_already(contract: Contract, target: Path) -> bool:
    if not target.exists():
        return False
    present = spec.load(target)
    if present.digest == contract.digest:
        return True
    raise OverwriteRefused(
        f"{contract.identity} is published with other content",
        expected=present.digest,
        found=contract.digest,
        location=str(target),
        remedy=f"Give the change a new version, {_advice([present], contract)} or later.",
    )


def _demand_newest(contract: Contract, others: Sequence[Contract]) -> None:
    """Refuse a version before one of its own line, and a line before all others."""
    number = contract.version
    line = [item.version for item in others if item.version.major == number.major]
    before = max(line or [item.version for item in others], default=None)
    if before is not None and number < before:
        raise RefusedError(
            f"{contract.identity}: a later version is published already",
            expected=f"a version after {before}",
            found=str(number),
            location=contract.identity,
            remedy=f"Publish it as {_advice(others, contract)}.",
        )


def _demand_bump(contract: Contract, others: Sequence[Contract]) -> None:
    for other in others:
        newer, older = (contract, other) if contract.version > other.version else (other, contract)
        if compatibility.allowed(older, newer):
            continue
        changes = compatibility.compare(older, newer)
        step = compatibility.required(changes)
        grave = [change for change in changes if change.bump == step]
        raise RefusedError(
            f"{contract.identity}: the version step from {older.version} is too small",
            expected=f"a {step} step, because of "
            + "; ".join(f"{change.path}: {change.message}" for change in grave[:10]),
            found=f"{older.version} to {newer.version}",
            location=other.identity,
            remedy=f"Publish it as {_advice(others, contract)}, or take the change back.",
        )


def _advice(others: Sequence[Contract], contract: Contract) -> str:
    """Return the lowest version under which the change can be published."""
    latest = max(item.version for item in others)
    steps: tuple[Bump, ...] = ("patch", "minor", "major")
    for number in (latest.bumped(step) for step in steps):
        renumbered = replace(contract, version=number)
        if all(compatibility.allowed(item, renumbered) for item in others):
            return str(number)
    raise AssertionError("a major step above every version is always allowed")


def _try(contract: Contract, sample: Batch | None, as_of: datetime | None) -> Report | None:
    if sample is None:
        return None
    verdict = judge(contract, sample, as_of)
    if verdict.verdict == "fail":
        first = next(finding for finding in verdict.findings if finding.blocks)
        raise RefusedError(
            f"{contract.identity}: the sample batch {sample.name} breaks the contract",
            expected="a batch that keeps every rule",
            found=f"{len(verdict.findings)} findings, first: {first.message}",
            location=first.location,
            remedy="Correct the contract or the data before others rely on it.",
        )
    return verdict


def _write_once(target: Path, contract: Contract) -> None:
    """Write the file whole, and only if nobody else wrote it meanwhile."""
    data = json.dumps(contract.to_dict(), indent=2, ensure_ascii=False).encode() + b"\n"
    aside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        failpoint.hit("contract.publish.before")
        try:
            os.link(aside, target)
        except FileExistsError:
            _published_already(contract, target)
        failpoint.hit("contract.publish.after")
    except OSError as err:
        raise UnavailableError(
            f"the catalog cannot be written: {err.strerror}", location=str(target)
        ) from err
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()
