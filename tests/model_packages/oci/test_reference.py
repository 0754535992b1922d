"""References to packages."""

from __future__ import annotations

from typing import Any

import pytest

from contracts.base import digest
from contracts.base.errors import InputError
from model_packages.oci.reference import PackageRef, check_repository

REFERENCE = PackageRef("caisson/flight-delay", digest.of_bytes(b"a"), digest.of_bytes(b"b"))


def test_a_reference_reads_back_equal() -> None:
    """It travels between stages as plain data."""
    assert PackageRef.from_dict(REFERENCE.to_dict()) == REFERENCE
    assert str(REFERENCE) == f"caisson/flight-delay@{REFERENCE.digest}"


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "Upper", "../a", "a..b", "a b", "x" * 201, None, "a/.b"]
)
def test_names_outside_the_oci_grammar_are_refused(name: Any) -> None:
    """A repository name cannot leave its folder."""
    with pytest.raises(InputError, match="not a repository name"):
        check_repository(name)


@pytest.mark.parametrize("name", ["a", "a/b", "a.b_c__d---e", "0"])
def test_names_of_the_oci_grammar_are_taken(name: str) -> None:
    """What the distribution specification allows is allowed."""
    assert check_repository(name) == name


def test_malformed_references_are_refused() -> None:
    """A reference from outside is read strictly."""
    with pytest.raises(InputError, match="do not match"):
        PackageRef.from_dict({**REFERENCE.to_dict(), "tag": "latest"})
    with pytest.raises(InputError, match="not a digest"):
        PackageRef.from_dict({**REFERENCE.to_dict(), "digest": "sha256:1"})
