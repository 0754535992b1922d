"""How a package is verified."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from contracts.base.errors import InputError


@dataclass(frozen=True)
class VerifyOptions:
    """How much is compared and asked.

    Attributes:
        rows: Hold-out rows whose answers are compared.
        seed: Chooses the rows and the arrival times.
        arrivals_per_s: Mean rate of the open-loop load; arrivals are Poisson.
        load_s: How long it lasts; 0 leaves it out.
        latency_limit_ms: 99th percentile that fails; 0 takes the package's ``timeout_ms``.
        wall_s: Longest the measuring process may take.
    """

    rows: int = 2048
    seed: int = 7
    arrivals_per_s: float = 400.0
    load_s: float = 2.5
    latency_limit_ms: float = 0.0
    wall_s: float = 120.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense.

        Raises:
            InputError: If rows or rate are not positive, or a duration is negative.
        """
        if self.rows < 1 or self.arrivals_per_s <= 0 or self.load_s < 0 or self.wall_s <= 0:
            raise InputError("options of verify are out of range", found=repr(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)
