"""The demands of the OCI image specification 1.1 on the documents of a layout, as assertions."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

_DIGEST = re.compile(r"sha256:[a-f0-9]{64}")
_MEDIA_TYPE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_TAG = re.compile(r"[A-Za-z0-9]+([-._:@/+][A-Za-z0-9]+|--)*")
_KINDS = {
    "application/vnd.oci.image.index.v1+json": "index",
    "application/vnd.oci.image.manifest.v1+json": "manifest",
    "application/vnd.oci.image.config.v1+json": "config",
}


def check_layout(layout: Path) -> list[str]:
    """Check every document a layout leads to; return the kinds that were seen."""
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((layout / "index.json").read_text())
    seen: list[str] = []
    _index(layout, index, seen)
    for entry in index["manifests"]:
        tag = entry.get("annotations", {}).get("org.opencontainers.image.ref.name")
        assert tag is None or _TAG.fullmatch(tag), tag
    return seen


def _follow(layout: Path, descriptor: dict[str, Any], seen: list[str]) -> None:
    _descriptor(descriptor)
    data = (layout / "blobs" / "sha256" / descriptor["digest"][7:]).read_bytes()
    assert len(data) == descriptor["size"]
    assert f"sha256:{hashlib.sha256(data).hexdigest()}" == descriptor["digest"]
    kind = _KINDS.get(descriptor["mediaType"], "blob")
    seen.append(kind)
    if kind != "blob":
        document = json.loads(data)
        {"index": _index, "manifest": _manifest, "config": _config}[kind](layout, document, seen)


def _descriptor(descriptor: dict[str, Any]) -> None:
    assert _MEDIA_TYPE.fullmatch(descriptor["mediaType"])
    assert _DIGEST.fullmatch(descriptor["digest"])
    assert isinstance(descriptor["size"], int)
    assert descriptor["size"] >= 0
    _annotations(descriptor)
    platform = descriptor.get("platform")
    assert platform is None or {"architecture", "os"} <= set(platform)


def _annotations(document: dict[str, Any]) -> None:
    for name, text in document.get("annotations", {}).items():
        assert name
        assert isinstance(text, str)


def _index(layout: Path, index: dict[str, Any], seen: list[str]) -> None:
    assert index["schemaVersion"] == 2
    assert index["mediaType"] == "application/vnd.oci.image.index.v1+json"
    _annotations(index)
    for descriptor in index["manifests"]:
        _follow(layout, descriptor, seen)


def _manifest(layout: Path, manifest: dict[str, Any], seen: list[str]) -> None:
    assert manifest["schemaVersion"] == 2
    assert manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    _annotations(manifest)
    if manifest["config"]["mediaType"] == "application/vnd.oci.empty.v1+json":
        assert manifest["artifactType"]
    for descriptor in (manifest["config"], *manifest["layers"]):
        _follow(layout, descriptor, seen)
    if "subject" in manifest:
        _descriptor(manifest["subject"])


def _config(layout: Path, config: dict[str, Any], seen: list[str]) -> None:
    del layout, seen
    assert config["architecture"]
    assert config["os"]
    assert _TIME.fullmatch(config["created"])
    assert config["rootfs"]["type"] == "layers"
    assert all(_DIGEST.fullmatch(item) for item in config["rootfs"]["diff_ids"])
    assert len([item for item in config["history"] if not item.get("empty_layer")]) == len(
        config["rootfs"]["diff_ids"]
    )
    settings = config["config"]
    assert all("=" in item for item in settings["Env"])
    assert all(isinstance(text, str) for text in settings["Labels"].values())
    assert all(len(name) + len(text) <= 4096 for name, text in settings["Labels"].items())
