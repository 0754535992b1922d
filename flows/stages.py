"""The calls of the gate's waves, with their arguments bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from contracts.base.report import Report
from flows.context import Context
from flows.sources import Source
from flows.waves import Call, Outcome
from model_packages.oci.reference import PackageRef
from tasks.compliance.steps import audit
from tasks.hardware.steps import test_hardware
from tasks.package.steps import build_package, reference_of
from tasks.policy import TargetPolicy
from tasks.snapshot.steps import review_training, verify_bundles
from tasks.trust.steps import TrustOptions, assess_trust
from tasks.verify.steps import VerifyOptions, verify_package

_DETECTOR = "alibi-detect"


@dataclass(frozen=True)
class Calls:
    """What each wave runs.

    Attributes:
        here: The run's context.
        source: The package source that is judged.
        policy: What the target demands.
    """

    here: Context
    source: Source
    policy: TargetPolicy

    def first(self) -> Mapping[str, Call]:
        """Contract and bundles that the model learned from, and the package itself."""
        workspace, training = self.here.workspace, self.source.training
        versions = (training.definition, training.feature_version, training.holdout_version)
        model = self.source.manifest.name
        return {
            "validate": partial(review_training, workspace, *versions),
            "snapshot": partial(verify_bundles, workspace, *versions),
            "package": partial(build_package, workspace, self.source.tree, model),
        }

    def package(self, outcomes: Sequence[Outcome]) -> PackageRef | None:
        """Return what the first wave built; None if it built nothing."""
        for outcome in outcomes:
            if outcome.stage == "package" and outcome.verdict == "pass" and outcome.report:
                return reference_of(outcome.report)
        return None

    def trust(self, ref: PackageRef) -> Mapping[str, Call]:
        """How far the model's answers can be trusted."""
        training = self.source.training
        options = TrustOptions(licence_decision=self._second_opinion())
        call = partial(
            assess_trust,
            self.here.workspace,
            ref,
            training.holdout_version,
            training.definition,
            options,
        )
        return {"trust": call}

    def hardware(self, ref: PackageRef) -> Mapping[str, Call]:
        """Where the package fits and runs."""
        return {"hardware": partial(test_hardware, self.here.workspace, ref, self.policy)}

    def verify(self, ref: PackageRef) -> Mapping[str, Call]:
        """Whether what is shipped computes what was trained, and how fast."""
        call = partial(
            verify_package,
            self.here.workspace,
            ref,
            self.source.reference,
            self.source.training.holdout_version,
            VerifyOptions(),
        )
        return {"verify": call}

    def compliance(self, ref: PackageRef, reports: Sequence[Report]) -> Mapping[str, Call]:
        """What level is achieved, from everything said before."""
        return {"compliance": partial(audit, self.here.workspace, ref, reports, self.policy)}

    def _second_opinion(self) -> str:
        """Return why the policy lets alibi-detect run, whose licence forbids production use."""
        for item in self.policy.licences.decisions:
            if (item.component, item.use, item.decision) == (_DETECTOR, "evaluation", "allowed"):
                return item.reason
        return ""
