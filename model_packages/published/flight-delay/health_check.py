"""Answer the first golden case with the package's own graph: is this package in good health?

Run as ``python health_check.py [request.json]`` in a process of its own, beside model.onnx. It
exits with 0 if the answers lie within the stated tolerance, else 1, and writes
``{"healthy", "checked", "problems"}`` to the request's ``answer`` file, or to standard output.
Without ONNX Runtime it checks only that the files are whole.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

try:
    import numpy as np
    import onnxruntime
except ImportError:
    onnxruntime = None

ROOT = Path(__file__).resolve().parent


def read(name: str) -> Any:
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def feeds(request: dict[str, Any]) -> dict[str, Any]:
    """Turn a request into arrays: text as objects, numbers as 32-bit floats, null as NaN."""
    return {
        tensor["name"]: np.array(tensor["data"], dtype=object)
        if tensor["datatype"] == "BYTES"
        else np.array(tensor["data"], dtype=float).astype(np.float32)
        for tensor in request["inputs"]
    }


def check_files() -> list[str]:
    wanted = ("manifest.json", "config.yaml", "model.onnx")
    return [f"{name} is missing or empty" for name in wanted if not _has_bytes(ROOT / name)]


def _has_bytes(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def check_answers() -> list[str]:
    """Run the graph on the golden requests and compare with the golden answers."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(ROOT / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    problems = []
    for path in sorted((ROOT / "test_cases").glob("valid_input_*.json")):
        golden = read(f"test_cases/{path.name.replace('input', 'output')}")
        answers = session.run(None, feeds(read(f"test_cases/{path.name}")))
        wanted = np.array(golden["outputs"][0]["data"])
        room = golden["tolerance"]["absolute"] + golden["tolerance"]["relative"] * np.abs(wanted)
        found = answers[0].astype(float)
        if found.shape != wanted.shape or (np.abs(found - wanted) > room).any():
            problems.append(f"{path.name}: expected {wanted.tolist()}, got {found.tolist()}")
    return problems


def main(arguments: list[str]) -> int:
    problems = check_files()
    checked = "files"
    if not problems and onnxruntime is not None:
        checked = "files and golden answers"
        problems = check_answers()
    answer = {"healthy": not problems, "checked": checked, "problems": problems}
    text = json.dumps(answer, sort_keys=True) + "\n"
    if arguments:
        request = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        Path(request["answer"]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
