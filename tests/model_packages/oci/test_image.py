"""The documents of a package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.base import digest
from contracts.base.errors import DigestMismatch, InputError, RegistryUnavailable
from model_packages.oci import image
from model_packages.oci.record import FIELD, PackageRecord
from tests.fakes import forgery, imagespec, packages
from tests.fakes.packages import BuiltPackage

Change = Callable[[dict[str, Any]], object]


def test_layouts_follow_the_image_specification(tmp_path: Path) -> None:
    """Every document of a signed package has the form the specification demands."""
    built, _ = packages.build_signed(tmp_path)
    seen = imagespec.check_layout(built.layout)
    assert sorted(set(seen)) == ["blob", "config", "index", "manifest"]
    assert seen.count("index") == 2


def test_a_record_reads_back_equal(built: BuiltPackage) -> None:
    """The table of contents survives its plain form."""
    record = image.read(built.store, built.reference.digest).record
    assert PackageRecord.from_dict(record.to_dict()) == record


def test_verification_reads_every_layer(built: BuiltPackage) -> None:
    """A changed layer is found without unpacking."""
    package = image.verify(built.store, built.reference.digest)
    path = built.store.blob(package.layers[1].digest)
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.raises(DigestMismatch, match="blob was changed"):
        image.verify(built.store, built.reference.digest)


def test_a_digest_that_is_not_shown_is_refused(built: BuiltPackage) -> None:
    """A package is there when the layout's index names it."""
    package = image.read(built.store, built.reference.digest)
    for other in (package.manifest.digest, digest.of_bytes(b"")):
        with pytest.raises(RegistryUnavailable, match="is not here"):
            image.read(built.store, other)
    with pytest.raises(InputError, match="not a digest"):
        image.read(built.store, digest.Digest("latest"))


def field(name: str, value: Any) -> Change:
    return lambda document: document.update({name: value})


def in_record(name: str, value: Any) -> Change:
    return lambda document: document[FIELD].update({name: value})


def repeat_file(document: dict[str, Any]) -> None:
    document[FIELD]["files"].append(document[FIELD]["files"][0])


def drop_file(document: dict[str, Any]) -> None:
    document[FIELD]["files"].pop()


def climb(document: dict[str, Any]) -> None:
    document[FIELD]["files"][0]["path"] = "../escaped"


def second_image(document: dict[str, Any]) -> None:
    document["manifests"] *= 2


FORGERIES: dict[str, tuple[dict[str, Any], str]] = {
    "index-of-something-else": ({"index": field("artifactType", "a/b")}, "not the index of"),
    "two-images": ({"index": second_image}, "exactly one image"),
    "no-images": ({"index": field("manifests", [])}, "exactly one image"),
    "index-schema": ({"index": field("schemaVersion", 1)}, "unexpected document"),
    "index-kind": ({"index": field("mediaType", "a/b")}, "unexpected document"),
    "manifest-kind": ({"manifest": field("mediaType", "a/b")}, "unexpected document"),
    "no-config": ({"manifest": field("config", None)}, "not a descriptor"),
    "no-layers": ({"manifest": field("layers", [])}, "not a list of layers"),
    "layer-kind": (
        {"manifest": lambda it: it["layers"][0].update(mediaType="a/b")},
        "unexpected media type",
    ),
    "fewer-layers": ({"manifest": lambda it: it["layers"].pop()}, "different layers"),
    "diff-ids": ({"config": field("rootfs", {})}, "different layers"),
    "labels": ({"config": field("config", {"Labels": {"a": 1}})}, "object of texts"),
    "no-record": ({"config": field(FIELD, None)}, "not a package record"),
    "record-format": ({"config": in_record("format_version", 1)}, "unknown package format"),
    "record-name": ({"config": in_record("name", 1)}, "name is malformed"),
    "record-files": ({"config": in_record("files", {})}, "not a list of files"),
    "record-set-digest": (
        {"config": in_record("set_digest", digest.of_bytes(b""))},
        "does not follow",
    ),
    "repeated-file": ({"config": repeat_file}, "repeat or are out of order"),
    "missing-file": ({"config": drop_file}, "does not follow"),
    "climbing-file": ({"config": climb}, "not a plain path"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_documents_are_refused(built: BuiltPackage, name: str) -> None:
    """Digests that fit do not make a malformed document acceptable."""
    changes, words = FORGERIES[name]
    forged = forgery.forge(built.store, built.reference.digest, **changes)
    with pytest.raises(InputError, match=words):
        image.read(built.store, forged)


def test_a_configuration_that_is_no_object_is_refused(built: BuiltPackage) -> None:
    """A configuration is read as what it must be."""

    def replace(document: dict[str, Any]) -> None:
        document["config"] = built.store.put(
            b"[]", "application/vnd.oci.image.config.v1+json"
        ).to_dict()

    forged = forgery.forge(built.store, built.reference.digest, manifest=replace)
    with pytest.raises(InputError, match="not an image configuration"):
        image.read(built.store, forged)
