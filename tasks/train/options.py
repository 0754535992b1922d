"""What a training run may be asked beside the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import digest
from contracts.base.errors import InputError
from model_packages.format import inventory


@dataclass(frozen=True)
class TrainOptions:
    """How a model is trained.

    Attributes:
        epochs: Passes over the rows; None is the model's own choice.
        rows: Most training rows; None is all.
        enforce_target: Whether a model below its manifest's ``target_metric`` fails the stage.
        published: Folder of published models; None is the checkout's.
        wall_s: Longest a run may take.
        memory_bytes: Most private memory of the run.
    """

    epochs: int | None = None
    rows: int | None = None
    enforce_target: bool = True
    published: Path | None = None
    wall_s: float = 600.0
    memory_bytes: int = 4 * 2**30

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense.

        Raises:
            InputError: If epochs or rows are given and not positive.
        """
        for name in ("epochs", "rows"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise InputError(
                    f"{name} is not a positive whole number",
                    expected="1 or more, or nothing",
                    found=repr(value),
                )

    def folder(self, root: Path, model: str) -> Path:
        """Return the folder of a published model.

        Raises:
            InputError: If there is none of that name.
        """
        base = self.published or root / "model_packages" / "published"
        known = sorted(path.name for path in base.iterdir()) if base.is_dir() else []
        if model not in known:
            raise InputError(
                "model is not published",
                expected=f"one of {', '.join(known) or 'none'}",
                found=repr(model),
                location=str(base),
                remedy="Add its folder, after model_packages/SPEC.md.",
            )
        return base / model

    def inputs(self, folder: Path) -> dict[str, Any]:
        """Return what the result depends on, as plain data."""
        return {
            "source": digest.parse(inventory.read(folder).set_digest),
            "epochs": self.epochs,
            "rows": self.rows,
            "enforce_target": self.enforce_target,
        }
