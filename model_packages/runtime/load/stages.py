"""The order of the six stages; each failure names its stage, cause and remedy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from contracts.base.clock import Clock
from contracts.base.errors import CaissonError, LoadFailed
from model_packages.runtime.backends.interface import Backend, Session
from model_packages.runtime.load import graph, health, memory, metadata, placement, weights
from model_packages.runtime.load.model import LoadedModel, PackageSource, Stage, StageRecord
from model_packages.runtime.memory import budget

_REMEDY = "Check the package with caisson gate on this machine, and its disk and memory."


def ignore(stage: Stage) -> None:
    """Take no note of a stage that begins; the default where nobody watches."""
    del stage


@dataclass
class _Journal:
    """Times the stages and turns whatever goes wrong in one into its LoadFailed."""

    clock: Clock
    watch: Callable[[Stage], None]
    records: list[StageRecord] = field(default_factory=list)

    @contextlib.contextmanager
    def stage(self, name: Stage) -> Iterator[dict[str, Any]]:
        self.watch(name)
        figures: dict[str, Any] = {}
        started = self.clock.monotonic()
        try:
            yield figures
        except CaissonError as err:
            raise LoadFailed(
                err.message,
                stage=name,
                expected=err.expected,
                found=err.found,
                location=err.location,
                remedy=err.remedy or _REMEDY,
            ) from err
        except (OSError, MemoryError, ValueError) as err:
            raise LoadFailed(
                f"{type(err).__name__}: {err}",
                stage=name,
                remedy=_REMEDY,
            ) from err
        self.records.append(StageRecord(name, self.clock.monotonic() - started, figures))


def load(
    source: PackageSource,
    backend: Backend,
    clock: Clock,
    *,
    watch: Callable[[Stage], None] = ignore,
    free: Callable[[], int] = budget.available,
) -> LoadedModel:
    """Load a package.

    Args:
        source: Its files and digests.
        backend: What opens its graph.
        clock: For the seconds of each stage.
        watch: Told the name of each stage as it begins.
        free: Says how many bytes of memory can still be taken.

    Returns:
        A model that answered its golden cases.

    Raises:
        LoadFailed: Naming the stage, what was expected and found, and the remedy.
    """
    journal = _Journal(clock, watch)
    backend.prepare()
    before = budget.resident()
    with journal.stage("metadata") as figures:
        spec, facts = metadata.read(source)
        figures.update(facts)
    with journal.stage("weights") as figures:
        size, facts = weights.survey(source.folder)
        figures.update(facts)
    with journal.stage("placement") as figures:
        options, facts = placement.decide(spec, size, free())
        figures.update(facts)
    with journal.stage("graph") as figures:
        session, facts = graph.build(backend, source.folder, spec, options)
        figures.update(facts)
    with _closing_on_failure(session):
        with journal.stage("memory") as figures:
            figures.update(memory.reserve(spec, session, before))
        with journal.stage("health") as figures:
            figures.update(health.examine(spec, session))
    return LoadedModel(source, spec, session, backend.platform, tuple(journal.records))


@contextlib.contextmanager
def _closing_on_failure(session: Session) -> Iterator[None]:
    try:
        yield
    except LoadFailed:
        session.close()
        raise
