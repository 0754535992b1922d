"""What a slot did: answers, errors by kind, and where the time went, as histograms."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from contracts.base.errors import InputError

# 16 steps in each doubling: a percentile is at most 6.25 % above the true value.
_STEP_BITS = 4
_STEPS = 1 << _STEP_BITS
QUANTILES = {"p50_us": 0.50, "p90_us": 0.90, "p95_us": 0.95, "p99_us": 0.99, "p999_us": 0.999}


@dataclass
class Histogram:
    """Counts of durations in microseconds, in steps that grow with the value.

    Attributes:
        counts: Entries of each step.
        total_us: Sum of all entries.
        maximum_us: Largest entry.
    """

    counts: Counter[int] = field(default_factory=Counter)
    total_us: int = 0
    maximum_us: int = 0

    @property
    def count(self) -> int:
        """Number of entries."""
        return self.counts.total()

    def record(self, seconds: float) -> None:
        """Add one duration."""
        value = max(0, int(seconds * 1e6))
        self.counts[_step(value)] += 1
        self.total_us += value
        self.maximum_us = max(self.maximum_us, value)

    def quantile_us(self, share: float) -> int:
        """Return the upper end of the step that holds the quantile; 0 if there is no entry."""
        rank = max(1, math.ceil(share * self.count))
        for step in sorted(self.counts):
            rank -= self.counts[step]
            if rank <= 0:
                return min(_upper(step), self.maximum_us)
        return 0

    def in_buckets(self, bounds_us: Sequence[float]) -> tuple[int, ...]:
        """Return the entries up to each bound, and those above the last, as counts of buckets.

        A step that spans a bound counts in the higher bucket.
        """
        buckets = [0] * (len(bounds_us) + 1)
        for step, count in self.counts.items():
            buckets[bisect.bisect_left(bounds_us, _upper(step))] += count
        return tuple(buckets)

    def since(self, earlier: Histogram) -> Histogram:
        """Return what was added after an earlier copy of this histogram."""
        return Histogram(
            self.counts - earlier.counts, self.total_us - earlier.total_us, self.maximum_us
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with the usual quantiles."""
        return {
            "count": self.count,
            "total_us": self.total_us,
            "maximum_us": self.maximum_us,
            "steps": {str(step): self.counts[step] for step in sorted(self.counts)},
            **{name: self.quantile_us(share) for name, share in QUANTILES.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Histogram:
        """Read plain data back.

        Raises:
            InputError: If it is not a histogram.
        """
        try:
            counts = Counter({int(step): int(count) for step, count in data["steps"].items()})
            return cls(counts, int(data["total_us"]), int(data["maximum_us"]))
        except (AttributeError, KeyError, TypeError, ValueError) as err:
            raise InputError("not a histogram", found=repr(data)[:100]) from err


@dataclass
class SlotStatistics:
    """What one slot did since it was loaded.

    Attributes:
        answers: Requests answered with an inference.
        errors: Requests that ended in an error, by its code.
        faults: Errors that are not the client's: statuses of 500 and above.
        rows: Rows computed.
        batches: Runs of the graph.
        latency: From the whole request to its answer.
        queue: Waiting for the model, for each request.
        compute: Runs of the graph, for each run.
    """

    answers: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    faults: int = 0
    rows: int = 0
    batches: int = 0
    latency: Histogram = field(default_factory=Histogram)
    queue: Histogram = field(default_factory=Histogram)
    compute: Histogram = field(default_factory=Histogram)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "answers": self.answers,
            "errors": dict(sorted(self.errors.items())),
            "faults": self.faults,
            "rows": self.rows,
            "batches": self.batches,
            "latency": self.latency.to_dict(),
            "queue": self.queue.to_dict(),
            "compute": self.compute.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SlotStatistics:
        """Read plain data back.

        Raises:
            InputError: If it is not what a slot reports.
        """
        try:
            return cls(
                answers=int(data["answers"]),
                errors=Counter(data["errors"]),
                faults=int(data["faults"]),
                rows=int(data["rows"]),
                batches=int(data["batches"]),
                latency=Histogram.from_dict(data["latency"]),
                queue=Histogram.from_dict(data["queue"]),
                compute=Histogram.from_dict(data["compute"]),
            )
        except (KeyError, TypeError, ValueError) as err:
            raise InputError("not the statistics of a slot", found=repr(data)[:100]) from err

    def since(self, earlier: SlotStatistics) -> SlotStatistics:
        """Return what happened after an earlier copy of these statistics."""
        return SlotStatistics(
            answers=self.answers - earlier.answers,
            errors=self.errors - earlier.errors,
            faults=self.faults - earlier.faults,
            rows=self.rows - earlier.rows,
            batches=self.batches - earlier.batches,
            latency=self.latency.since(earlier.latency),
            queue=self.queue.since(earlier.queue),
            compute=self.compute.since(earlier.compute),
        )


def _step(value: int) -> int:
    shift = value.bit_length() - _STEP_BITS - 1
    if shift <= 0:
        return value
    return (shift << _STEP_BITS) + (value >> shift)


def _upper(step: int) -> int:
    shift = (step >> _STEP_BITS) - 1
    if shift <= 0:
        return step
    return (((step & (_STEPS - 1)) + _STEPS + 1) << shift) - 1
