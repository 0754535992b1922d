"""Ask alibi-detect whether two samples differ; run by the python of its own environment.

``<environment>/bin/python -I tasks/trust/outliers.py request.json``. The request names two arrays
(``reference``, ``test``: .npy files, rows by columns), the ``level`` before correction, and the
``answer`` file. Imports nothing but the standard library, numpy and alibi_detect.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """Return KSDrift's opinion as plain data."""
    from alibi_detect.cd import KSDrift

    reference = np.load(request["reference"], allow_pickle=False)
    test = np.load(request["test"], allow_pickle=False)
    detector = KSDrift(reference, p_val=float(request["level"]), correction="bonferroni")
    data = detector.predict(test, drift_type="batch", return_p_val=True)["data"]
    return {
        "version": importlib.metadata.version("alibi-detect"),
        "is_drift": bool(data["is_drift"]),
        "level": float(data["threshold"]),
        "p_values": [float(value) for value in np.atleast_1d(data["p_val"])],
    }


def main(path: str) -> None:
    """Answer one request file."""
    request = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        answer = ask(request)
    except (ImportError, OSError, ValueError, KeyError) as err:
        answer = {"error": {"code": "unavailable", "message": f"{type(err).__name__}: {err}"}}
    Path(request["answer"]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
