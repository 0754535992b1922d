"""Which package is meant: one small value that travels between stages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.base import digest as digests
from contracts.base.digest import Digest
from contracts.base.errors import InputError

# The grammar of repository names in the OCI distribution specification 1.1.
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_LONGEST_NAME = 200


@dataclass(frozen=True)
class PackageRef:
    """One package, exactly.

    Attributes:
        repository: Where it lives in a registry, such as ``flight-delay``.
        digest: Digest of its OCI index; the identity of a deployment.
        set_digest: Digest of the files under ``/model``, without image or runtime.
    """

    repository: str
    digest: Digest
    set_digest: Digest

    def __post_init__(self) -> None:
        """Refuse values that could not name a package.

        Raises:
            InputError: If the repository or a digest is malformed.
        """
        check_repository(self.repository)
        digests.parse(self.digest, where="package digest")
        digests.parse(self.set_digest, where="set digest")

    def __str__(self) -> str:
        """Return ``repository@digest``."""
        return f"{self.repository}@{self.digest}"

    def to_dict(self) -> dict[str, str]:
        """Return plain data."""
        return {
            "repository": self.repository,
            "digest": self.digest,
            "set_digest": self.set_digest,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PackageRef:
        """Read plain data back.

        Raises:
            InputError: If a field is missing, unknown or malformed.
        """
        if set(data) != {"repository", "digest", "set_digest"}:
            raise InputError(
                "fields of a package reference do not match",
                expected="digest, repository, set_digest",
                found=", ".join(sorted(map(str, data))),
            )
        return cls(**data)


def check_repository(name: str) -> str:
    """Return ``name`` if it can be a repository.

    Raises:
        InputError: If it breaks the grammar of the OCI distribution specification.
    """
    fits = isinstance(name, str) and len(name) <= _LONGEST_NAME and _REPOSITORY.fullmatch(name)
    if not fits:
        raise InputError(
            "not a repository name",
            expected="lower-case letters, digits and . _ - in parts divided by /",
            found=repr(name)[:100],
        )
    return name
