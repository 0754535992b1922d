"""Rule: nothing in the package runs code when it is loaded."""

from __future__ import annotations

import zipfile
from pathlib import Path

from tasks.compliance.requirements import Outcome
from tasks.compliance.rule import Rule, Subject, broken, held

_SUFFIXES = {".pkl", ".pickle", ".pt", ".pt2", ".pth", ".joblib", ".dill", ".npy", ".npz", ".ckpt"}
_PROTOCOLS = {2, 3, 4, 5}
_TEXT_OPCODES = (b"cos\n", b"cposix\n", b"c__builtin__\n", b"cbuiltins\n", b"(dp", b"(lp")


def check(subject: Subject) -> Outcome:
    """Look at every file's name and first bytes; nothing is unpickled."""
    problems = []
    for entry in subject.files:
        kind = _kind(subject.folder / entry.path)
        if kind:
            problems.append((entry.path, f"is {kind}, which can run code when it is loaded"))
    return broken(problems) if problems else held(f"{len(subject.files)} files looked at")


def _kind(path: Path) -> str:
    if path.suffix.lower() in _SUFFIXES:
        return f"a {path.suffix} file"
    with path.open("rb") as stream:
        start = stream.read(16)
    if len(start) > 1 and start[0] == 0x80 and start[1] in _PROTOCOLS:
        return f"a pickle of protocol {start[1]}"
    if start.startswith(_TEXT_OPCODES):
        return "a pickle of protocol 0"
    if start.startswith(b"PK\x03\x04"):
        return _archive(path)
    return ""


def _archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return "a damaged archive"
    inside = [name for name in names if Path(name).suffix.lower() in _SUFFIXES]
    return f"an archive with {inside[0]}" if inside else "an archive"


RULE = Rule(
    id="no-pickle",
    level="L1",
    title="No file runs code when it is loaded",
    severity="critical",
    remedy="Deliver weights in model.onnx; keep checkpoints outside the package.",
    check=check,
)
