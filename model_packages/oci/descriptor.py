"""OCI descriptors and the media types and names we use (image-spec 1.1; SPEC.md, section 6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from contracts.base import digest as digests
from contracts.base.digest import Digest
from contracts.base.errors import InputError

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
EMPTY = "application/vnd.oci.empty.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PACKAGE = "application/vnd.caisson.package.v0+json"

TAG = "org.opencontainers.image.ref.name"
ROLE = "dev.caisson.layer"

_MEDIA_TYPE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}"
)
_LARGEST = 2**50


@dataclass(frozen=True)
class Descriptor:
    """What a blob is, by digest.

    Attributes:
        media_type: Kind of content.
        digest: Its sha256.
        size: Its bytes.
        annotations: Names and texts.
        artifact_type: Kind of artifact, where it is a manifest of one.
        platform: Operating system and architecture, where it is an image.
    """

    media_type: str
    digest: Digest
    size: int
    annotations: Mapping[str, str] = field(default_factory=dict)
    artifact_type: str = ""
    platform: Mapping[str, str] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        """The name it has in a layout's index; empty if none."""
        return self.annotations.get(TAG, "")

    def tagged(self, tag: str) -> Descriptor:
        """Return it with a name for a layout's index."""
        return replace(self, annotations={**self.annotations, TAG: tag})

    def to_dict(self) -> dict[str, Any]:
        """Return it as image-spec JSON."""
        data: dict[str, Any] = {
            "mediaType": self.media_type,
            "digest": self.digest,
            "size": self.size,
        }
        if self.artifact_type:
            data["artifactType"] = self.artifact_type
        if self.platform:
            data["platform"] = dict(self.platform)
        if self.annotations:
            data["annotations"] = dict(self.annotations)
        return data


def parse(data: Any, *, where: str = "") -> Descriptor:
    """Read image-spec JSON; fields we do not know are ignored, as the specification demands.

    Raises:
        InputError: If a field we know is missing or malformed.
    """
    if not isinstance(data, Mapping):
        raise InputError("not a descriptor", found=repr(data)[:80], location=where)
    media_type, size = data.get("mediaType"), data.get("size")
    if not isinstance(media_type, str) or not _MEDIA_TYPE.fullmatch(media_type):
        raise InputError("not a media type", found=repr(media_type)[:80], location=where)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _LARGEST:
        raise InputError("not a size", found=repr(size)[:80], location=where)
    artifact_type = data.get("artifactType", "")
    if not isinstance(artifact_type, str):
        raise InputError("artifactType is not text", location=where)
    return Descriptor(
        media_type=media_type,
        digest=digests.parse(data.get("digest", ""), where=where),
        size=size,
        annotations=texts(data.get("annotations"), where=where),
        artifact_type=artifact_type,
        platform=_platform(data.get("platform")),
    )


def _platform(data: Any) -> dict[str, str]:
    """Keep the texts of a platform; lists of features are nothing we look at."""
    items = data.items() if isinstance(data, Mapping) else ()
    return {name: text for name, text in items if isinstance(text, str)}


def texts(data: Any, *, where: str = "") -> dict[str, str]:
    """Read an object of texts; absent reads as empty.

    Raises:
        InputError: If it is anything else.
    """
    if data is None:
        return {}
    if not isinstance(data, Mapping) or not all(isinstance(text, str) for text in data.values()):
        raise InputError("expected an object of texts", found=repr(data)[:80], location=where)
    return dict(data)


def expect(descriptor: Descriptor, media_type: str, *, where: str = "") -> Descriptor:
    """Return the descriptor if it has the media type.

    Raises:
        InputError: If it has another.
    """
    if descriptor.media_type != media_type:
        raise InputError(
            "unexpected media type",
            expected=media_type,
            found=descriptor.media_type,
            location=where or descriptor.digest,
        )
    return descriptor
