"""For every rule one package that keeps it and at least one that breaks it.

A case gets a fresh, sound subject whose folder it may spoil, and returns the subject to judge.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from contracts.base import digest
from model_packages.format import inventory, manifest
from model_packages.oci.reference import PackageRef
from tasks import policy as policies
from tasks.compliance.closure import Library
from tasks.compliance.licences import Classified
from tasks.compliance.rule import Subject
from tests.fakes import packages

ROOT = Path(__file__).resolve().parents[3]
Case = Callable[[Subject], Subject]
SOUND = Library(
    "numpy", "2.4.6", (), Classified("BSD-3-Clause", ("Permissive",), "allowed", "Permissive")
)
COLUMNS = {"nyc/flights@1.0.0": {"tailnum": "pseudonymous", "dest": "none"}}


def subject(folder: Path, **options: Any) -> Subject:
    """Return a subject that keeps every rule."""
    source = packages.write_source(folder, packages.Options(**options))
    page = source / "docs" / "model_card.md"
    page.write_text("# Tiny\n\n" + "It adds two numbers, and here is what that means. " * 6)
    files = inventory.read(source)
    return Subject(
        package=PackageRef("tiny", digest.of_bytes(b"index"), files.set_digest),
        folder=source,
        files=files.entries,
        manifest=manifest.load(source / "manifest.json"),
        reports={},
        policy=policies.load(ROOT / "infra/policies", "local"),
        libraries=(SOUND,),
        columns=COLUMNS,
    )


def again(before: Subject, **changes: Any) -> Subject:
    """Read the folder again, as the audit of a rebuilt package would."""
    files, _ = inventory.survey(before.folder)
    package = PackageRef("tiny", before.package.digest, files.set_digest)
    loaded = manifest.load(before.folder / "manifest.json")
    return dataclasses.replace(
        before, files=files.entries, package=package, manifest=loaded, **changes
    )


def _manifest(**fields: Any) -> Case:
    def spoil(sound: Subject) -> Subject:
        packages.edit_json(sound.folder / "manifest.json", **fields)
        return again(sound)

    return spoil


def _file(path: str, data: bytes) -> Case:
    def spoil(sound: Subject) -> Subject:
        (sound.folder / path).write_bytes(data)
        return again(sound)

    return spoil


def _changed_byte(sound: Subject) -> Subject:
    path = sound.folder / "docs" / "usage.md"
    path.write_bytes(path.read_bytes().replace(b"Tiny", b"tiny"))
    return dataclasses.replace(again(sound), package=sound.package)


def _libraries(*items: Library) -> Case:
    return lambda sound: dataclasses.replace(sound, libraries=items)


def _columns(columns: Mapping[str, Mapping[str, str] | None]) -> Case:
    return lambda sound: dataclasses.replace(sound, columns=columns)


def _graph(change: Callable[[Any], None]) -> Case:
    def spoil(sound: Subject) -> Subject:
        import onnx

        model = onnx.load(str(sound.graph))
        change(model)
        sound.graph.write_bytes(model.SerializeToString(deterministic=True))
        return again(sound)

    return spoil


def _climbing(model: Any) -> None:
    import onnx

    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../etc/passwd")


def _custom(model: Any) -> None:
    model.graph.node[-1].domain = "com.example"
    model.opset_import.add(domain="com.example", version=1)


def _dangling(model: Any) -> None:
    model.graph.node[0].input[0] = "nobody"


def _old(model: Any) -> None:
    model.opset_import[0].version = 9


def _future(model: Any) -> None:
    model.ir_version = 99


def _archive() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("model/data.pkl", b"\x80\x02.")
    return stream.getvalue()


def _keep(sound: Subject) -> Subject:
    return sound


BUSINESS = Classified(
    "BUSL-1.1", ("Source-available",), "undecided", "Source-available needs a decision"
)
MISSING = Library("uvloop", "", (), Classified("", (), "unknown", "not installed here"))
_SOURCE = {"name": "made up", "license": "CC0-1.0", "contract": "nyc/flights@1.0.0"}

PASS: Mapping[str, Mapping[str, Case]] = {
    "bill-of-materials": {"sound": _keep, "untrained": _manifest(training=None)},
    "data-licences": {"sound": _keep},
    "dependency-licences": {
        "sound": _keep,
        "decided": _libraries(dataclasses.replace(
            SOUND, license=Classified("MPL-2.0", ("Copyleft Limited",), "decided", "allowed"))),
    },
    "documentation": {"sound": _keep},
    "external-data": {"sound": _keep},
    "graph-valid": {"sound": _keep},
    "model-licence": {
        "sound": _keep,
        "choice": _manifest(license="GPL-3.0-only OR MIT"),
        "exception": _manifest(license="Apache-2.0 WITH LLVM-exception"),
    },
    "no-pickle": {"sound": _keep, "text": _file("docs/pickles.md", b"How to pickle cucumbers.")},
    "no-secrets": {
        "sound": _keep,
        "placeholder": _file("docs/use.md", b'password = "<your password here>"\n'),
    },
    "operator-domains": {"sound": _keep},
    "package-integrity": {"sound": _keep},
    "personal-data": {"sound": _keep},
}  # fmt: skip

FAIL: Mapping[str, Mapping[str, Case]] = {
    "bill-of-materials": {"not-installed": _libraries(SOUND, MISSING)},
    "data-licences": {
        "unstated": _manifest(data=[{**_SOURCE, "license": ""}]),
        "restricted": _manifest(data=[{**_SOURCE, "license": "CC-BY-NC-4.0"}]),
        "no-data": _manifest(data=[]),
    },
    "dependency-licences": {
        "undecided": _libraries(dataclasses.replace(SOUND, license=BUSINESS)),
        "unknown": _libraries(MISSING),
    },
    "documentation": {
        "no-limits": _manifest(limitations=""),
        "nothing-said": lambda sound: again(_file("docs/model_card.md", b"# Tiny\n")(sound)),
    },
    "external-data": {
        "climbs-out": _graph(_climbing),
        "no-graph": _file("model.onnx", b"not a graph"),
    },
    "graph-valid": {
        "truncated": lambda sound: _file("model.onnx", sound.graph.read_bytes()[:-20])(sound),
        "dangling-input": _graph(_dangling),
        "old-operators": _graph(_old),
        "future-format": _graph(_future),
    },
    "model-licence": {
        "missing": _manifest(license=None),
        "blank": _manifest(license="  "),
        "free-text": _manifest(license="Do what you like"),
        "copyleft": _manifest(license="AGPL-3.0-only"),
        "source-available": _manifest(license="BUSL-1.1"),
    },
    "no-pickle": {
        "by-content": _file("docs/notes.txt", pickle.dumps({"a": 1}, protocol=4)),
        "by-name": _file("docs/weights.pkl", b"harmless"),
        "protocol-0": _file("docs/old.txt", b"cos\nsystem\n(S'true'\ntR."),
        "in-archive": _file("docs/archive.txt", _archive()),
        "damaged-archive": _file("docs/archive.txt", _archive()[:30]),
    },
    "no-secrets": {
        "key": _file("docs/key.txt", b"-----BEGIN EC " + b"PRIVATE KEY-----\nMHc=\n"),
        "cloud": _file("docs/a.md", b"Use " + b"AKIA" + b"ABCDEFGHIJKLMNOP today."),
        "password": _file("docs/a.json", b'{"password": "correct-horse"}'),
        "address": _file("docs/a.md", b"see https" + b"://me:hunter2@example.org/"),
    },
    "operator-domains": {
        "custom": _graph(_custom),
        "no-graph": _file("model.onnx", b"\x00\x01"),
    },
    "package-integrity": {
        "changed-byte": _changed_byte,
        "undeclared": lambda sound: dataclasses.replace(
            _file("extra.bin", b"1")(sound), package=sound.package),
    },
    "personal-data": {
        "unclassed": _columns({"nyc/flights@1.0.0": {"tailnum": ""}}),
        "unknown-contract": _columns({"nyc/flights@1.0.0": None}),
        "no-contract": _manifest(data=[{**_SOURCE, "contract": ""}]),
        "no-data": _manifest(data=[]),
    },
}  # fmt: skip
