"""The one door to Prefect below the flows: a stage is a Prefect task whose reuse is ours.

Prefect gives order, states and artifacts. Its own result cache stays off (design.md, 9.3): what
may be reused is decided in ``tasks/reuse.py``, and shows here as a state named ``Unchanged``.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Generic, ParamSpec

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.states import Completed, Failed

from contracts.base.report import Report

Parameters = ParamSpec("Parameters")

# When which stage worked, in seconds of the monotonic clock; what lies between is the engine's.
worked: list[tuple[str, float, float]] = []


class Stage(Generic[Parameters]):
    """A function that makes a Report, and the Prefect task that runs it.

    Attributes:
        name: Name of the stage, as shown by Prefect.
        function: The plain function, for use without Prefect.
    """

    def __init__(self, name: str, function: Callable[Parameters, Report]) -> None:
        """Wrap a function; nothing runs and nothing is registered yet."""
        self.name = name
        self.function = function
        functools.update_wrapper(self, function)
        self._task = task(
            self._run, name=name, cache_policy=NO_CACHE, persist_result=False, tags=["stage"]
        )

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Report:
        """Run as a Prefect task of the present flow and return the report.

        Outside a flow the plain function runs, and no server is needed. A report that fails is
        returned, not raised: the flow decides what it blocks.
        """
        if FlowRunContext.get() is None:
            return self.function(*args, **kwargs)
        box: list[Report] = []
        self._task(_Call(self.function, args, kwargs, box))
        return box[0]

    def _run(self, call: _Call) -> Any:
        start = time.monotonic()
        try:
            report = call.function(*call.args, **call.kwargs)
        finally:
            worked.append((self.name, start, time.monotonic()))
        call.box.append(report)
        return _state(report)


class _Call:
    """One call, opaque to Prefect, which would otherwise copy and display every argument."""

    def __init__(
        self,
        function: Callable[..., Report],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        box: list[Report],
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.box = box


def stage(name: str) -> Callable[[Callable[Parameters, Report]], Stage[Parameters]]:
    """Make a function that returns a Report into a stage of the pipeline."""

    def wrap(function: Callable[Parameters, Report]) -> Stage[Parameters]:
        return Stage(name, function)

    return wrap


def _state(report: Report) -> Any:
    if report.verdict == "fail":
        first = report.findings[0].message if report.findings else report.reason
        return Failed(name="Refused", message=first[:500])
    if report.verdict == "skip":
        return Completed(name="Skipped", message=report.reason[:500])
    unchanged = bool(report.measurements.get("unchanged"))
    return Completed(name="Unchanged" if unchanged else "Passed", message=report.subject)
