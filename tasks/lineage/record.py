"""What is logged of one release: its identities, its inputs by digest, and its stages' reports.

Made from the ledger's candidate record, which decides, and from the reports the flow holds. No
I/O: ``store.py`` brings it to MLflow, ``openlineage.py`` into events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.errors import InputError
from contracts.base.report import Report
from contracts.features.bundle import BundleManifest
from tasks.ledger.record import Record


@dataclass(frozen=True)
class Source:
    """One input of a release.

    Attributes:
        name: ``contract/<owner>/<source>@<version>``, ``bundle/<definition>`` or
            ``batch/<contract>#<name>``.
        digest: What identifies its content, whole.
        kind: ``contract``, ``feature_bundle`` or ``batch``.
        facts: What else is known of it, as plain data.
    """

    name: str
    digest: Digest
    kind: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Release:
    """One release as lineage sees it.

    Attributes:
        model: Name of the model, which is its repository.
        package_digest: Identity of the package.
        set_digest: Identity of its files.
        contract: Contract its training data was judged against.
        schema_hash: That contract's schema hash.
        feature_version: Bundle it was trained on.
        git_commit: Commit of the code that ran the stages.
        achieved_level: Compliance level the audit found.
        ledger_number: Number of the candidate record.
        ledger_digest: Digest of the candidate record.
        at: When it was registered, RFC 3339.
        sources: What it was made from.
        reports: What the stages said.
    """

    model: str
    package_digest: Digest
    set_digest: Digest
    contract: str
    schema_hash: Digest
    feature_version: str
    git_commit: str
    achieved_level: str
    ledger_number: int
    ledger_digest: Digest
    at: str
    sources: tuple[Source, ...]
    reports: tuple[Report, ...]

    @property
    def tags(self) -> dict[str, str]:
        """The identities as text, for tags."""
        return {
            "package_digest": self.package_digest,
            "set_digest": self.set_digest,
            "contract": self.contract,
            "schema_hash": self.schema_hash,
            "feature_version": self.feature_version,
            "git_commit": self.git_commit,
            "achieved_level": self.achieved_level,
            "ledger_record": f"{self.ledger_number} {self.ledger_digest}",
        }

    @property
    def source(self) -> str:
        """The package's address, as model registries want it."""
        return f"oci://local/{self.model}@{self.package_digest}"


def describe(
    candidate: Record, bundle: BundleManifest | None, reports: Sequence[Report]
) -> Release:
    """Gather what is known of a release.

    Args:
        candidate: Its record in the ledger.
        bundle: The bundle it was trained on; None if it is not on this machine.
        reports: What the stages said.

    Raises:
        InputError: If the record is not a candidate's.
    """
    body, bound = candidate.body, candidate.body.get("binding")
    if candidate.kind != "candidate" or not isinstance(bound, Mapping):
        raise InputError("not a candidate's record", found=f"{candidate.kind} {candidate.number}")
    contract, schema_hash = str(bound["contract"]), Digest(bound["schema_hash"])
    sources = sources_of(bundle) if bundle else (_contract(contract, schema_hash),)
    return Release(
        model=str(body["model"]),
        package_digest=Digest(candidate.subject),
        set_digest=Digest(body["set_digest"]),
        contract=contract,
        schema_hash=schema_hash,
        feature_version=str(bound["feature_version"]),
        git_commit=str(bound["git_commit"]),
        achieved_level=str(bound["achieved_level"]),
        ledger_number=candidate.number,
        ledger_digest=candidate.digest,
        at=candidate.at,
        sources=sources,
        reports=tuple(reports),
    )


def sources_of(bundle: BundleManifest) -> tuple[Source, ...]:
    """Return a bundle and everything it was computed from, each by its own digest."""
    found = [
        Source(
            f"bundle/{bundle.definition}",
            bundle.root,
            "feature_bundle",
            {
                "feature_version": bundle.version,
                "definition_digest": bundle.definition_digest,
                "rows": bundle.rows,
            },
        )
    ]
    for item in bundle.inputs:
        found.append(_contract(item.contract, item.schema_hash))
        found += [
            Source(f"batch/{item.contract}#{name}", value, "batch", {"input": item.name})
            for name, value in item.batches
        ]
    return tuple({(source.name, source.digest): source for source in found}.values())


def _contract(identity: str, schema_hash: Digest) -> Source:
    """Identify a contract by its name, version and schema, whatever its file looks like."""
    content = {"contract": identity, "schema_hash": schema_hash}
    return Source(f"contract/{identity}", digest.of_json(content), "contract", content)
