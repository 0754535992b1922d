"""How the trust of a package is measured, and the limits it is held to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from contracts.base.errors import InputError


@dataclass(frozen=True)
class TrustOptions:
    """How much is tried, and what is demanded.

    Attributes:
        rows: Hold-out rows used.
        seed: Of every random choice.
        repeats: Shuffles of each input.
        bootstraps: Resamples of the rows.
        splits: Halvings on which the drift detector must keep quiet.
        smallest_tau: Least median of Kendall's tau between rankings of resampled rows.
        largest_sensitivity: Most relative change of the answers within ``radius``.
        radius: Step of the sensitivity check, in standard deviations.
        leak_share: Part of all losses of ranking quality that makes an input a suspect ...
        leak_auc: ... if it alone ranks the rows this well.
        leak_auc_alone: Ranking quality of one input alone that is a leak whatever else.
        licence_decision: Why alibi-detect may run here, from the policy; empty: it does not run.
        wall_s: Longest the measuring process may take.
    """

    rows: int = 2000
    seed: int = 7
    repeats: int = 3
    bootstraps: int = 200
    splits: int = 20
    smallest_tau: float = 0.7
    largest_sensitivity: float = 0.1
    radius: float = 0.02
    leak_share: float = 0.5
    leak_auc: float = 0.8
    leak_auc_alone: float = 0.95
    licence_decision: str = ""
    wall_s: float = 120.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense.

        Raises:
            InputError: If a count is too small.
        """
        smallest = {"rows": 20, "repeats": 1, "bootstraps": 2, "splits": 1}
        wrong = [name for name, least in smallest.items() if getattr(self, name) < least]
        if wrong:
            raise InputError(
                f"options of trust are too small: {', '.join(wrong)}",
                expected=", ".join(f"{name} >= {least}" for name, least in smallest.items()),
                found=", ".join(str(getattr(self, name)) for name in wrong),
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)
