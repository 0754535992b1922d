"""What publishes a feature version: a small object, made only after the bundle was verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from contracts.base import canonical, clock, digest
from contracts.base.digest import Digest
from contracts.base.errors import BundleInvalid
from contracts.features import archive, bundle
from contracts.objects.interface import ObjectMissing, ObjectStore
from contracts.reading import Problem, Reader

PREFIX = "features"
_LIMIT = 64 * 2**10
_NOTHING = Digest(f"sha256:{'0' * 64}")


@dataclass(frozen=True)
class Pointer:
    """What publishes a version: it exists if and only if the bundle was verified.

    Attributes:
        definition: Name of the feature definition.
        version: The feature version.
        root: Identity of the bundle.
        as_of: Logical time of the data.
        rows: Rows of the bundle.
        archive: Key of the archive.
        size: Its bytes.
        sha256: Digest of its bytes.
    """

    definition: str
    version: str
    root: Digest
    as_of: datetime
    rows: int
    archive: str
    size: int
    sha256: Digest

    def dumps(self) -> bytes:
        """Return the pointer object."""
        plain = {**vars(self), "as_of": clock.to_text(self.as_of), "format_version": 0}
        return canonical.dumps(plain)


def key_of(definition: str, version: str) -> str:
    """Return the key of the object that publishes a version."""
    return f"{PREFIX}/{definition}/{bundle.check_version(version)}.json"


def archive_key(definition: str, version: str) -> str:
    """Return the key of a version's archive."""
    return f"{PREFIX}/{definition}/{version}/{bundle.archive_name(version)}"


def published(store: ObjectStore, definition: str = "") -> Iterator[Pointer]:
    """Yield the published versions of one definition, or of all, oldest first.

    Raises:
        BundleInvalid: If a pointer is malformed.
    """
    prefix = f"{PREFIX}/{definition}/" if definition else f"{PREFIX}/"
    for key in store.keys(prefix):
        name, _, version = key.removeprefix(f"{PREFIX}/").removesuffix(".json").rpartition("/")
        if key.endswith(".json") and bundle.is_version(version):
            yield read(store, name, version)


def read(store: ObjectStore, definition: str, version: str) -> Pointer:
    """Return what publishes a version.

    Raises:
        ObjectMissing: If the version is not published.
        BundleInvalid: If the pointer is malformed or belongs to another version.
    """
    key = key_of(definition, version)
    try:
        raw = canonical.loads(store.get(key, limit=_LIMIT), where=key)
    except ObjectMissing as err:
        raise ObjectMissing(
            f"feature version {version} of {definition} is not published",
            location=key,
            remedy="Run `caisson features list` to see what is, or make the snapshot.",
        ) from err
    problems: list[Problem] = []
    pointer = _pointer(Reader(raw, "", problems))
    own = (pointer.definition, pointer.version, pointer.archive)
    if not problems and own != (definition, version, archive_key(definition, version)):
        problems.append(Problem("pointer", f"{definition} {version}", " ".join(own)))
    if not problems and not version.endswith(f"-{digest.short(pointer.root)}"):
        problems.append(Problem("root", f"one that makes {version}", pointer.root))
    if problems:
        raise BundleInvalid("; ".join(map(str, problems)), location=key)
    return pointer


def _pointer(reader: Reader) -> Pointer:
    reader.integer("format_version", 0, 0)
    pointer = Pointer(
        definition=reader.text("definition"),
        version=reader.text("version"),
        root=reader.parsed("root", digest.parse, _NOTHING),
        as_of=reader.parsed("as_of", clock.from_text, datetime.min.replace(tzinfo=UTC)),
        rows=reader.integer("rows", 0, 2**53 - 1),
        archive=reader.text("archive"),
        size=reader.integer("size", 0, archive.LIMIT),
        sha256=reader.parsed("sha256", digest.parse, _NOTHING),
    )
    reader.finish()
    return pointer
