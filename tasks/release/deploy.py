"""Deploys a registered release to a target: nothing changes for callers until it is proven there.

1. signature and policy on the digest that is in the registry today, 2. approval where the policy
demands it, 3. copy to the target, 4. load into the idle slot, 5. golden cases, 6. canary,
7. the pointer moves and the target is switched, 8. the old slot drains. What happens before 7 is
undone on any failure; from 7 on it is completed, if need be by the next command.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contracts.base import failpoint, files
from contracts.base.errors import CaissonError, RefusedError
from contracts.base.report import Finding, Report, conclude
from model_packages.oci.reference import PackageRef
from tasks.ledger.store import Ledger
from tasks.policy import TargetPolicy
from tasks.release import admission, approval, cutover, kept
from tasks.release.admission import Admission
from tasks.release.approval import Approved
from tasks.release.canary import Analysis, CanaryPlan
from tasks.release.cutover import Move
from tasks.release.journal import Inverse, Journal, require_undone
from tasks.release.observe import Pair, Patience, Pump, observe
from tasks.release.targets.interface import Release, Target
from tasks.release.trust import trusted
from tasks.workspace import Workspace

STAGE = "deploy"

_PAUSE_S = 0.2


@dataclass(frozen=True)
class DeployOptions:
    """What a deployment may be told besides the policy.

    Attributes:
        share: Share of requests for the candidate; the policy's if None.
        minimum_answers: Answers of the candidate below which nothing is decided.
        timeout_s: Longest canary; the policy's if None.
        drain_s: Longest wait for the old slot to finish its answers.
        by: Who asked for it.
        pump: Called between looks at the canary; produces requests or waits for those of others.
    """

    share: float | None = None
    minimum_answers: int = 100
    timeout_s: float | None = None
    drain_s: float = 30.0
    by: str = ""
    pump: Pump = field(default=functools.partial(time.sleep, _PAUSE_S), compare=False)


def plan_of(policy: TargetPolicy, options: DeployOptions) -> CanaryPlan:
    """Return the canary plan of a policy with the options of one deployment."""
    demand = policy.canary
    return CanaryPlan(
        share=demand.share if options.share is None else options.share,
        minimum_answers=options.minimum_answers,
        power=demand.power,
        false_alarm=demand.significance,
        max_error_delta=demand.detectable_errors - demand.baseline_errors,
        max_latency_ratio=demand.latency_ratio,
        baseline_error_share=demand.baseline_errors,
    )


def deploy(
    workspace: Workspace,
    ref: PackageRef,
    target: Target,
    policy: TargetPolicy,
    options: DeployOptions | None = None,
) -> Report:
    """Bring a registered release live in a target, or leave the target as it was.

    Args:
        workspace: Registry, ledger, keys and locks.
        ref: The release; its repository names the model.
        target: Where it shall run.
        policy: What the target demands.
        options: What this deployment may be told.

    Returns:
        pass with what is live, or fail with the finding that stopped it: golden cases or canary.
        ``measurements`` holds ``unchanged: true`` if it was live already.

    Raises:
        SignatureInvalid: If the package is unsigned, or not by a trusted key.
        ReleaseRefused: If it is not registered, or the policy or an approver does not let it pass.
        LoadFailed: If the target cannot load it.
        UnavailableError: If the target cannot be reached.
    """
    chosen = options or DeployOptions()
    with files.locked(cutover.lock_path(workspace.locks, target.name)):
        return _Deployment(workspace, ref, target, policy, chosen).run()


class _Deployment:
    """One deployment, under the lock of its target."""

    def __init__(
        self,
        workspace: Workspace,
        ref: PackageRef,
        target: Target,
        policy: TargetPolicy,
        options: DeployOptions,
    ) -> None:
        self._workspace = workspace
        self._ledger = Ledger(workspace.ledger_path, workspace.clock)
        self._ref = ref
        self._target = target
        self._policy = policy
        self._options = options
        self._facts: dict[str, Any] = {
            "model": ref.repository,
            "target": target.name,
            "package_digest": ref.digest,
            "policy": policy.digest,
        }
        self._measurements: dict[str, Any] = {}

    def run(self) -> Report:
        """Take every step in order."""
        recovered = cutover.recover(self._ledger, self._target)
        if recovered:
            self._measurements["recovered"] = recovered
        pointer = self._ledger.pointer(self._ref.repository, self._target.name)
        old = pointer.digest if pointer else None
        admitted = admission.admit(self._workspace, self._ledger, self._ref, self._policy)
        if old == self._ref.digest:
            return self._unchanged()
        approved = approval.require(
            self._ledger,
            approval.request(admitted, self._target.name, self._policy),
            self._policy,
            trusted(self._workspace, self._policy.signatures, "approver"),
            builders=admitted.builders,
            author=admitted.author,
            now=self._workspace.clock.now(),
        )
        cutover.require_model(self._ledger, self._target.name, self._ref.repository)
        failpoint.hit("deploy.keep.before")
        registry = self._workspace.registry(self._ref.repository)
        release = kept.keep(registry, self._ref, self._target.home, admitted.signers)
        failpoint.hit("deploy.keep.after")
        self._target.ensure()
        move = Move(self._ref.repository, self._target.name, old, self._ref.digest)
        return self._change(move, release, admitted, approved)

    def _unchanged(self) -> Report:
        """Say that nothing was to be done, after making sure the target agrees."""
        release = kept.reopen(self._target.home, self._ref.digest)
        brought_back = cutover.converge(self._target, release)
        state = self._target.state()
        self._measurements |= {"unchanged": True, "brought_back": brought_back, "url": state.url}
        self._facts["canary"] = {"outcome": "skip", "reason": "this release is live already"}
        return self._report([])

    def _change(
        self, move: Move, release: Release, admitted: Admission, approved: Approved
    ) -> Report:
        """Carry the change through the journal, undoing it unless it was decided."""
        record = self._record(move, admitted, approved)
        about = {
            "model": move.model,
            "target": move.target,
            "old": move.old,
            "package": move.new,
            "record": record,
        }
        journal = Journal.begin(self._ledger, "deploy", move.subject, about)
        try:
            finding = self._prove(journal, move, release)
            if finding is None:
                body = {"operation": journal.key, "canary": self._facts["canary"]}
                cutover.decide(journal, self._ledger, move, "promote", body)
        except BaseException as err:
            self._undo(journal, move, f"{type(err).__name__}: {err}")
            raise
        if finding is not None:
            self._undo(journal, move, finding.message)
            return self._report([finding])
        self._finish(journal, move, record)
        return self._report([])

    def _prove(self, journal: Journal, move: Move, release: Release) -> Finding | None:
        """Load the candidate and let it prove itself; return what speaks against it."""
        golden = cutover.load(journal, self._target, release)
        self._facts["golden_cases"] = golden.cases
        if golden.failures:
            self._facts["canary"] = {"outcome": "skip", "reason": "golden cases failed"}
            return self._finding(
                "golden-failed",
                f"{len(golden.failures)} of {golden.cases} golden cases do not match on the target:"
                f" {'; '.join(golden.failures[:3])}",
                "Compare the target's device with the matrix of the gate, then release again.",
            )
        if move.old is None:
            reason = "the first deployment of a model has nothing to compare with"
            self._facts["canary"] = {"outcome": "skip", "reason": reason}
            return None
        analysis = self._canary(journal, Pair(move.old, move.new))
        self._facts["canary"] = analysis.to_dict()
        return self._judge(analysis)

    def _canary(self, journal: Journal, pair: Pair) -> Analysis:
        """Let the candidate answer a share of the requests for a while."""
        demand = self._policy.canary
        timeout_s = self._options.timeout_s
        failpoint.hit("deploy.canary.before")
        with journal.effect("canary", Inverse("restore")):
            analysis = observe(
                self._target,
                pair,
                plan_of(self._policy, self._options),
                Patience(demand.lease_s, demand.timeout_s if timeout_s is None else timeout_s),
                pump=self._options.pump,
                clock=self._workspace.clock,
                progress=self._workspace.progress,
            )
            failpoint.hit("deploy.canary.inside")
        failpoint.hit("deploy.canary.after")
        return analysis

    def _judge(self, analysis: Analysis) -> Finding | None:
        if analysis.outcome == "pass":
            return None
        reasons = "; ".join(analysis.reasons)
        if analysis.outcome == "fail":
            return self._finding(
                "canary-failed",
                f"the candidate is worse than the live release: {reasons}",
                "The live release was restored. Compare both in `caisson lineage`, then fix it.",
            )
        return self._finding(
            "canary-inconclusive",
            f"the canary could not decide with {analysis.answers} answers of the candidate,"
            f" {analysis.needed} needed: {reasons}",
            "The live release was restored. Deploy again under more traffic or for a longer time.",
        )

    def _undo(self, journal: Journal, move: Move, note: str) -> None:
        """Take everything back, unless the pointer has moved: then the next command completes."""
        pointer = self._ledger.pointer(move.model, move.target)
        if pointer is not None and pointer.digest == move.new:
            return
        require_undone(journal.undo(cutover.acts(self._target)), move.subject)
        journal.close("undone", note[:500])

    def _finish(self, journal: Journal, move: Move, record: Mapping[str, Any]) -> None:
        """Carry out what was decided."""
        try:
            cutover.switch(journal, self._target, move.new)
            drained = cutover.retire(journal, self._target, move.old, self._options.drain_s)
        except CaissonError as err:
            raise RefusedError(
                f"the ledger says {move.new} is live, but the target was not switched: {err}",
                location=self._target.name,
                remedy="Deploy it again, which completes the switch, or `caisson rollback`.",
            ) from err
        cutover.record(self._ledger, move, journal.key, record)
        journal.close("done")
        self._measurements |= {"drained": drained, "url": self._target.state().url}

    def _record(self, move: Move, admitted: Admission, approved: Approved) -> dict[str, Any]:
        """Return the body of the deployment's record; all of it is known before it begins."""
        self._facts |= {"previous": move.old, "approval": approved.to_dict()}
        return {
            "package": move.new,
            "previous": move.old,
            "set_digest": self._ref.set_digest,
            "statement": admitted.statement,
            "key_ids": list(admitted.key_ids),
            "achieved_level": admitted.facts.achieved_level,
            "waivers": [dict(waiver) for waiver in admitted.waivers],
            "policy": self._policy.digest,
            "approval": approved.to_dict(),
            "by": self._options.by,
        }

    def _finding(self, rule: str, message: str, remedy: str) -> Finding:
        return Finding(
            rule=f"deploy.{rule}",
            subject=str(self._ref),
            location=self._target.name,
            severity="high",
            message=message,
            remedy=remedy,
            evidence=dict(self._facts["canary"]),
        )

    def _report(self, findings: list[Finding]) -> Report:
        return conclude(
            STAGE,
            f"{self._ref.repository}/{self._target.name}",
            findings,
            facts=self._facts,
            measurements=self._measurements,
        )
