"""Packages as a target keeps them: layout, signature and unpacked tree, checked at every use.

``<target>/packages/<hex>/`` is an OCI layout of its own with the package and its signatures;
``unpacked/`` beside it holds the files, and ``kept.json`` says who signed. So a rollback needs
nothing but the target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from contracts.base import digest, failpoint, files
from contracts.base.digest import Digest
from contracts.base.errors import InputError, SignatureInvalid, UnavailableError
from model_packages.oci import keys, push
from model_packages.oci.keys import PublicKey
from model_packages.oci.reference import PackageRef
from model_packages.oci.store import LayoutStore
from model_packages.oci.unpack import open_package
from model_packages.oci.verify import verify_signature
from tasks.release.targets.interface import Release

FILE = "kept.json"

_UNPACKED = "unpacked"


@dataclass(frozen=True)
class Signer:
    """Who signed what a target keeps.

    Attributes:
        role: In which role.
        key: The key.
    """

    role: str
    key: PublicKey

    def to_dict(self) -> dict[str, str]:
        """Return plain data for people: the role and the key's id."""
        return {"role": self.role, "key_id": self.key.key_id}


def folder(home: Path, package: Digest) -> Path:
    """Return where a target keeps a package."""
    return home / "packages" / digest.parse(package).removeprefix("sha256:")


def keep(registry: Path, ref: PackageRef, home: Path, signers: Iterable[Signer]) -> Release:
    """Copy a package from the registry to a target and verify the copy; doing it again repairs it.

    Args:
        registry: The layout the package was pushed to.
        ref: The package.
        home: Folder of the target.
        signers: Whose signatures were verified.

    Raises:
        RegistryUnavailable: If the registry does not show the package.
        IntegrityError: If anything was changed on the way.
    """
    place = folder(home, ref.digest)
    push.push(LayoutStore(registry), LayoutStore(place), ref.digest)
    failpoint.hit("kept.copy.after")
    content = {
        "format_version": 0,
        "package": ref.to_dict(),
        "signers": [{"role": item.role, "pem": item.key.pem.decode()} for item in signers],
    }
    files.write_json(place / FILE, content)
    failpoint.hit("kept.record.after")
    return reopen(home, ref.digest)


def reopen(home: Path, package: Digest, key_ids: Iterable[str] | None = None) -> Release:
    """Return a package a target keeps, after checking its signatures and every byte again.

    Args:
        home: Folder of the target.
        package: Which package.
        key_ids: Keys that must have signed, as the ledger recorded them; any of those kept if None.

    Raises:
        UnavailableError: If the target does not keep it.
        IntegrityError: If anything was changed since.
    """
    place = folder(home, package)
    if not (place / FILE).is_file():
        raise UnavailableError(
            f"target does not keep package {package}",
            location=str(place),
            remedy="Deploy it from the registry: `caisson deploy`.",
        )
    ref, signers = _read(place)
    wanted = {item.key.key_id for item in signers} if key_ids is None else set(key_ids)
    for key_id in sorted(wanted):
        matching = [item.key for item in signers if item.key.key_id == key_id]
        verify_signature(LayoutStore(place), package, matching)
    if not wanted or ref.digest != package:
        raise SignatureInvalid(
            "what the target recorded about the package is not about it",
            expected=package,
            found=ref.digest,
            location=str(place),
            remedy="Deploy it again from the registry.",
        )
    tree = open_package(place, package, place / _UNPACKED)
    return Release(ref.repository, package, ref.set_digest, place, tree.root)


def _read(place: Path) -> tuple[PackageRef, list[Signer]]:
    data = files.read_json(place / FILE)
    try:
        ref = PackageRef.from_dict(data["package"])
        signers = [
            Signer(item["role"], keys.parse_public(item["pem"].encode(), where=str(place)))
            for item in data["signers"]
        ]
    except (AttributeError, KeyError, TypeError) as err:
        raise InputError("not a record of a kept package", location=str(place / FILE)) from err
    return ref, signers
