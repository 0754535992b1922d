"""Registered releases, as the ledger knows them."""

from __future__ import annotations

from contracts.base import digest
from contracts.base.errors import RefusedError
from flows.context import Context
from model_packages.oci.reference import PackageRef


def candidate(here: Context, model: str, package: str | None) -> PackageRef:
    """Return a registered release of a model.

    Args:
        here: The run's context.
        model: Name of the model.
        package: Digest of the release; the newest registered if None.

    Raises:
        RefusedError: If none, or not this one, is registered.
    """
    records = [item for item in here.ledger.records("candidate") if item.body["model"] == model]
    if package is not None:
        wanted = digest.parse(package, where="package")
        records = [item for item in records if item.subject == wanted]
    if not records:
        raise RefusedError(
            f"no release of {model} is registered" + (f" as {package}" if package else ""),
            location=str(here.workspace.home),
            remedy=f"Run `caisson release {model}` first.",
        )
    content = digest.parse(records[-1].body["set_digest"], where="candidate set digest")
    return PackageRef(model, digest.parse(records[-1].subject, where="candidate"), content)
