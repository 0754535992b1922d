"""Finds published contracts: ``<root>/<owner>/<source>/<version>.contract.json``."""

from __future__ import annotations

from pathlib import Path

from contracts import spec
from contracts.base import version
from contracts.base.errors import ContractInvalid, InputError
from contracts.base.version import Version
from contracts.terms import Contract


class Catalog:
    """The published contracts of a folder."""

    def __init__(self, root: Path) -> None:
        """Look below ``root``, such as ``contracts/published``."""
        self.root = root

    def names(self) -> list[str]:
        """Return the names of all sources with a contract, sorted."""
        found = self.root.glob(f"*/*/*{spec.SUFFIX}")
        return sorted({path.parent.relative_to(self.root).as_posix() for path in found})

    def versions(self, name: str) -> list[Version]:
        """Return the published versions of a source, oldest first.

        Raises:
            ContractInvalid: If a file there is not named after a version.
        """
        found = []
        for path in sorted((self.root / _checked(name)).glob(f"*{spec.SUFFIX}")):
            text = path.name.removesuffix(spec.SUFFIX)
            try:
                found.append(version.parse(text))
            except InputError as err:
                raise ContractInvalid(
                    "the file is not named after a version",
                    expected=f"1.0.0{spec.SUFFIX}",
                    found=path.name,
                    location=str(path),
                ) from err
        return sorted(found)

    def path(self, name: str, number: Version) -> Path:
        """Return where a version is, or would be."""
        return self.root / _checked(name) / f"{number}{spec.SUFFIX}"

    def load(self, identity: str) -> Contract:
        """Return a contract.

        Args:
            identity: ``owner/source@1.2.0``, or ``owner/source`` for the latest version.

        Raises:
            InputError: If there is none of that name or version.
            ContractInvalid: If its file is malformed, or names another contract.
        """
        name, _, text = identity.partition("@")
        known = self.versions(name)
        number = version.parse(text, where=identity) if text else (known[-1] if known else None)
        if number is None or number not in known:
            raise InputError(
                "there is no such contract",
                expected=_offer(name, known, self),
                found=identity,
                remedy="Publish it with `caisson contract publish`.",
            )
        path = self.path(name, number)
        contract = spec.load(path)
        if (contract.name, contract.version) != (name, number):
            raise ContractInvalid(
                "the file names another contract than its place does",
                expected=f"{name}@{number}",
                found=contract.identity,
                location=str(path),
            )
        return contract

    def earlier(self, contract: Contract) -> list[Contract]:
        """Return every published version of a contract's source but its own, oldest first."""
        return [
            self.load(f"{contract.name}@{number}")
            for number in self.versions(contract.name)
            if number != contract.version
        ]


def _offer(name: str, known: list[Version], catalog: Catalog) -> str:
    if known:
        return f"{name} in one of the versions {', '.join(map(str, known))}"
    return f"one of {', '.join(catalog.names()) or 'none, the catalog is empty'}"


def _checked(name: str) -> str:
    parts = name.split("/")
    if len(parts) != 2 or not all(spec.is_name(part) for part in parts):
        raise InputError("not the name of a source", expected="owner/source", found=repr(name))
    return name
