"""The float module a package was exported from, run in single and in double precision.

The only file of this area that imports torch, inside its functions. The reference holds the module
over codes and raw numbers, and how texts become codes; so it also checks the preprocessing that
the package carries in its graph, by another way.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contracts.base import canonical
from contracts.base.errors import InputError

Array = NDArray[Any]

_ENCODING = "encoding.json"
_LIMIT = 2**24


class Reference:
    """A float module, opened."""

    def __init__(self, program: Any, encoding: Mapping[str, Any]) -> None:
        """Take an exported program and how columns are encoded."""
        self._program = program
        self._categorical = [(item["name"], item["values"]) for item in encoding["categorical"]]
        self._numeric = list(encoding["numeric"])
        self.output = str(encoding["output"])

    def run(self, inputs: Mapping[str, Array], *, double: bool) -> dict[str, Array]:
        """Return each output's values.

        Args:
            inputs: Texts and numbers by column name.
            double: Whether weights, numbers and arithmetic are in double precision.
        """
        import torch

        kind = torch.float64 if double else torch.float32
        numbers = np.stack([inputs[name] for name in self._numeric], axis=1)
        module = self._program.module()
        module.to(kind)
        with torch.no_grad():
            answer = module(
                torch.from_numpy(self._codes(inputs)), torch.from_numpy(numbers).to(kind)
            )
        return {self.output: answer.numpy()}

    def _codes(self, inputs: Mapping[str, Array]) -> NDArray[np.int64]:
        columns = []
        for name, values in self._categorical:
            place = {value: index for index, value in enumerate(values)}
            columns.append([place.get(text, len(values)) for text in inputs[name]])
        return np.array(columns, dtype=np.int64).T.copy()


def load(path: Path, *, threads: int = 1) -> Reference:
    """Open a reference.

    Raises:
        InputError: If the file is not an exported program with its encoding.
    """
    import torch

    torch.set_num_threads(threads)
    extra = {_ENCODING: ""}
    try:
        program = torch.export.load(path, extra_files=extra)
        return Reference(program, canonical.loads(extra[_ENCODING], limit=_LIMIT, where=str(path)))
    except (RuntimeError, OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as err:
        raise InputError(
            "not a reference model",
            expected="a program of torch.export.save with encoding.json",
            found=f"{type(err).__name__}: {err}"[:300],
            location=str(path),
            remedy="Train the package again.",
        ) from err
