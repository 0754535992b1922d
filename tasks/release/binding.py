"""What a release binds to its package: data, contract, code and reports, by digest.

The same values go into the signed statement and into the ledger, so that either alone answers
what a package was made from and who examined it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from contracts.base.digest import Digest
from contracts.base.errors import ReleaseRefused
from contracts.base.report import Report
from model_packages.oci.reference import PackageRef
from model_packages.oci.statement import ReleaseFacts

# The stages of the gate; a release needs a pass of each.
REQUIRED = ("validate", "package", "trust", "hardware", "verify", "compliance")


@dataclass(frozen=True)
class Origin:
    """Where a package comes from, as the flow knows it.

    Attributes:
        contract: Contract the training data was judged against, ``owner/source@version``.
        schema_hash: Its schema hash.
        feature_version: Feature bundle the model was trained on.
        git_commit: Commit of the code that ran the stages; ``unknown`` outside a checkout.
        runtime_version: Digest of the code inside the package.
        achieved_level: Compliance level the audit found.
    """

    contract: str
    schema_hash: Digest
    feature_version: str
    git_commit: str
    runtime_version: Digest
    achieved_level: str


def bind(ref: PackageRef, origin: Origin, reports: Sequence[Report]) -> ReleaseFacts:
    """Bind reports and origin to a package.

    Raises:
        ReleaseRefused: If a required stage failed, was skipped or is missing; all are named.
    """
    require_passed(ref, reports)
    return ReleaseFacts(
        set_digest=ref.set_digest,
        reports={report.stage: report.digest for report in reports},
        **asdict(origin),
    )


def require_passed(ref: PackageRef, reports: Sequence[Report]) -> None:
    """Refuse a package whose gate is not passed.

    Raises:
        ReleaseRefused: If a required stage failed, was skipped or is missing; all are named.
    """
    told = {report.stage for report in reports}
    reasons = [f"{stage} did not report" for stage in REQUIRED if stage not in told]
    reasons += [_reason(report) for report in reports if _blocks(report)]
    if reasons:
        raise ReleaseRefused(
            f"the gate was not passed: {'; '.join(reasons)}",
            location=str(ref),
            remedy="Remove the causes and run `caisson gate` again.",
        )


def _blocks(report: Report) -> bool:
    required = report.stage in REQUIRED
    return report.verdict == "fail" or (required and report.verdict == "skip")


def _reason(report: Report) -> str:
    if report.verdict == "skip":
        return f"{report.stage} was skipped: {report.reason}"
    blocking = [finding for finding in report.findings if finding.blocks]
    first = f": {blocking[0].rule}: {blocking[0].message}" if blocking else ""
    more = f" and {len(blocking) - 1} more" if len(blocking) > 1 else ""
    return f"{report.stage} failed{first}{more}"
