"""Stage 6: does the model answer as promised? Golden cases, and an input of ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from contracts.base.errors import IntegrityError
from model_packages.runtime.backends import tensors
from model_packages.runtime.backends.interface import Session
from model_packages.runtime.load import golden
from model_packages.runtime.load.memory import filled
from model_packages.runtime.load.model import ModelSpec

_REMEDY = "Verify the package on this machine (caisson gate), or deploy another release."
_ROWS = 2  # more than one, so that a graph which forgets its rows is noticed


def examine(spec: ModelSpec, session: Session) -> dict[str, Any]:
    """Run all checks.

    Raises:
        IntegrityError: If an answer has the wrong shape, type or values.
        BackendFailed: If the graph cannot be computed.
    """
    _require_ones(session)
    results = golden.run(session, spec.cases)
    failed = [result for result in results if not result.passed]
    if failed:
        raise IntegrityError(
            f"{len(failed)} of {len(results)} golden cases failed: "
            + "; ".join(f"{result.case}: {result.message}" for result in failed[:5]),
            location=spec.name,
            remedy=_REMEDY,
        )
    return {
        "cases": len(results),
        "worst_absolute": max((result.absolute for result in results), default=0.0),
        "worst_relative": max((result.relative for result in results), default=0.0),
    }


def _require_ones(session: Session) -> None:
    answers = session.run(filled(session.inputs, _ROWS))
    for spec, array in zip(session.outputs, answers, strict=True):
        wanted = tensors.dtype_of(spec.datatype)
        shape = [_ROWS, *spec.shape[1:]]
        fits = len(array.shape) == len(shape) and all(
            size in (-1, found) for size, found in zip(shape, array.shape, strict=True)
        )
        typed = array.dtype.kind in "OSU" if wanted.kind == "O" else array.dtype == wanted
        finite = array.dtype.kind != "f" or spec.nullable or bool(np.isfinite(array).all())
        if not (fits and typed and finite):
            raise IntegrityError(
                f"output {spec.name} of an input of ones is not as declared",
                expected=f"{spec.datatype} {shape}, finite",
                found=f"{array.dtype} {list(array.shape)}{'' if finite else ', not finite'}",
                location=spec.name,
                remedy=_REMEDY,
            )
