"""The one door of MLflow: runs, inputs and the model registry on SQLite, artifacts in a folder.

MLflow is a view of the ledger. What is logged twice is logged once: a release is found by its
package digest and its ledger record. Aliases are set from the ledger, never read from here.

MLflow cuts long tags silently and refuses a dataset digest over 36 characters: the first 36
hexadecimal digits of ours are its digest, the whole one is in the source and in a tag.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from contracts.base import canonical, digest, failpoint, files
from contracts.base.digest import Digest
from contracts.base.errors import UnavailableError
from contracts.base.report import Report
from tasks import template
from tasks.ledger.record import Pointer
from tasks.lineage.record import Release, Source
from tasks.workspace import Workspace

DIGEST_LENGTH = 36

_DATABASE = "mlflow.db"
# MLflow gives its unused default experiment a place in the working directory.
_FORGET = "UPDATE experiments SET artifact_location = 'mlruns/0'"
_MARK = "caisson."
_DONE = f"{_MARK}complete"


def uri(workspace: Workspace) -> str:
    """Return the address of MLflow's database."""
    return f"sqlite:///{workspace.mlflow.absolute() / _DATABASE}"


def artifacts(workspace: Workspace) -> str:
    """Return the address of MLflow's artifacts."""
    return (workspace.mlflow / "artifacts").absolute().as_uri()


class Store:
    """MLflow of one home folder."""

    def __init__(self, workspace: Workspace) -> None:
        """Name the home folder; MLflow is imported with the first call."""
        self._workspace = workspace

    def log(self, release: Release) -> dict[str, Any]:
        """Log a release: a run with a run for each stage, its inputs, and a model version.

        Returns:
            ``run_id``, ``version`` and ``unchanged``.

        Raises:
            UnavailableError: If MLflow cannot be used.
        """
        with self._client() as client:
            experiment = self._experiment(client, release.model)
            run_id = _finished(client, experiment, release)
            unchanged = run_id is not None
            if run_id is None:
                failpoint.hit("lineage.run.before")
                run_id = _log_run(client, experiment, release)
                failpoint.hit("lineage.run.after")
            version = _register(client, release, run_id)
            return {"run_id": run_id, "version": version, "unchanged": unchanged}

    def reconcile(self, model: str, candidate: Digest | None, pointers: Sequence[Pointer]) -> int:
        """Make the aliases of a model say what the ledger says.

        Args:
            model: Name of the model.
            candidate: Its newest candidate.
            pointers: What is live of it, a pointer a target.

        Returns:
            How many aliases were changed.

        Raises:
            UnavailableError: If MLflow cannot be used.
        """
        wanted = _aliases(candidate, pointers)
        with self._client() as client:
            name = _registered(model)
            if not client.search_registered_models(f"name = '{name}'"):
                return 0
            versions = _versions(client, name)
            target = {key: versions[value] for key, value in wanted.items() if value in versions}
            aliases = client.get_registered_model(name).aliases
            current = {alias: str(number) for alias, number in aliases.items()}
            stale = sorted(current.keys() - target.keys())
            for alias in stale:
                client.delete_registered_model_alias(name, alias)
            changed = sorted(alias for alias in target if current.get(alias) != target[alias])
            for alias in changed:
                client.set_registered_model_alias(name, alias, target[alias])
            return len(changed) + len(stale)

    def aliases(self, model: str) -> dict[str, str]:
        """Return the package digest of each alias, for pages and tests."""
        with self._client() as client:
            name = _registered(model)
            numbers = {number: value for value, number in _versions(client, name).items()}
            found = client.get_registered_model(name).aliases
            return {alias: numbers[str(number)] for alias, number in found.items()}

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        """Give the client to one process at a time, and turn its errors into ours."""
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        address = uri(self._workspace)
        self._workspace.mlflow.mkdir(parents=True, exist_ok=True)
        with files.locked(self._workspace.locks / "mlflow"):
            try:
                made = self._workspace.mlflow / _DATABASE
                keep = not made.exists() and not template.restore("mlflow", made)
                client = MlflowClient(tracking_uri=address, registry_uri=address)
                if keep:
                    template.keep("mlflow", made, forget=[_FORGET])
                yield client
            except (MlflowException, SQLAlchemyError, OSError) as err:
                raise UnavailableError(
                    f"MLflow cannot be used: {err}",
                    location=address,
                    remedy="The ledger has the release; the same `caisson release` again logs it.",
                ) from err

    def _experiment(self, client: Any, name: str) -> str:
        found = client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        return str(client.create_experiment(name, artifact_location=artifacts(self._workspace)))


def _finished(client: Any, experiment: str, release: Release) -> str | None:
    """Return the run that logged a release; one that was interrupted is taken away."""
    runs = client.search_runs(
        [experiment],
        f"tags.`{_MARK}package_digest` = '{release.package_digest}' AND tags.`{_MARK}stage` ="
        " 'release'",
    )
    for run in runs:
        tags = run.data.tags
        if tags.get(f"{_MARK}ledger_record") != release.tags["ledger_record"]:
            continue
        if tags.get(_DONE) == "true":
            return str(run.info.run_id)
        for child in _children(client, experiment, run.info.run_id):
            client.delete_run(child)
        client.delete_run(run.info.run_id)
    return None


def _children(client: Any, experiment: str, run_id: str) -> list[str]:
    runs = client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{run_id}'")
    return [str(run.info.run_id) for run in runs]


def _log_run(client: Any, experiment: str, release: Release) -> str:
    from mlflow.entities import LoggedModelOutput, LoggedModelStatus

    tags = {f"{_MARK}{name}": value for name, value in release.tags.items()}
    name = f"{release.model} {digest.short(release.package_digest)}"
    run = client.create_run(experiment, run_name=name, tags={**tags, f"{_MARK}stage": "release"})
    run_id = str(run.info.run_id)
    client.log_inputs(run_id, datasets=[_dataset(source) for source in release.sources])
    failpoint.hit("lineage.run.inside")
    for report in release.reports:
        _log_stage(client, experiment, run_id, report)
    model = client.create_logged_model(
        experiment,
        name=_registered(release.model),
        source_run_id=run_id,
        model_type="oci-package",
        tags={"package_digest": release.package_digest},
    )
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, 0)])
    client.finalize_logged_model(model.model_id, LoggedModelStatus.READY)
    client.set_tag(run_id, _DONE, "true")
    client.set_terminated(run_id)
    return run_id


def _log_stage(client: Any, experiment: str, parent: str, report: Report) -> None:
    from mlflow.entities import Metric

    tags = {
        "mlflow.parentRunId": parent,
        f"{_MARK}stage": report.stage,
        f"{_MARK}verdict": report.verdict,
        f"{_MARK}report_digest": report.digest,
        f"{_MARK}subject": report.subject,
    }
    run = client.create_run(experiment, run_name=report.stage, tags=tags)
    run_id = run.info.run_id
    stamp = int(run.info.start_time)
    numbers = {**_numbers("fact", report.facts), **_numbers("measured", report.measurements)}
    metrics = [Metric(name, value, stamp, 0) for name, value in sorted(numbers.items())]
    client.log_batch(run_id, metrics=metrics[:500])
    client.log_text(run_id, canonical.dumps(report.to_dict()).decode(), "report.json")
    client.set_terminated(run_id, "FAILED" if report.verdict == "fail" else "FINISHED")


def _numbers(prefix: str, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of plain data by their path, for metrics."""
    found: dict[str, float] = {}
    for name, value in values.items():
        path = f"{prefix}.{name}"
        if isinstance(value, Mapping):
            found |= _numbers(path, value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[_plain(path)] = float(value)
    return found


def _plain(name: str) -> str:
    """Keep the characters that MLflow allows in the name of a metric."""
    return "".join(letter if letter.isalnum() or letter in "_-. /" else "_" for letter in name)[
        :250
    ]


def _dataset(source: Source) -> Any:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    content = {**source.facts, "name": source.name, "sha256": source.digest}
    entity = Dataset(
        name=source.name,
        digest=source.digest.removeprefix("sha256:")[:DIGEST_LENGTH],
        source_type="caisson",
        source=canonical.dumps(content).decode(),
    )
    tags = [
        InputTag("mlflow.data.context", source.kind),
        InputTag(f"{_MARK}sha256", source.digest),
    ]
    return DatasetInput(entity, tags)


def _register(client: Any, release: Release, run_id: str) -> str:
    """Return the model version of a package, made if it is missing."""
    name = _registered(release.model)
    if not client.search_registered_models(f"name = '{name}'"):
        client.create_registered_model(name)
    found = _versions(client, name).get(release.package_digest)
    if found is not None:
        return found
    failpoint.hit("lineage.version.before")
    made = client.create_model_version(
        name, source=release.source, run_id=run_id, tags=release.tags
    )
    return str(made.version)


def _registered(model: str) -> str:
    """Return the name of a model in MLflow, which allows neither slash nor dot in it."""
    return model.replace("/", "--").replace(".", "-")


def _versions(client: Any, name: str) -> dict[str, str]:
    """Return the number of each package's model version."""
    found = client.search_model_versions(f"name = '{name}'")
    return {
        item.tags["package_digest"]: str(item.version)
        for item in sorted(found, key=lambda item: -int(item.version))
        if "package_digest" in item.tags
    }


def _aliases(candidate: Digest | None, pointers: Sequence[Pointer]) -> dict[str, Digest]:
    found = {"candidate": candidate} if candidate else {}
    for pointer in pointers:
        found[f"live-{pointer.target}"] = pointer.digest
        if pointer.previous:
            found[f"previous-{pointer.target}"] = pointer.previous
    return found
