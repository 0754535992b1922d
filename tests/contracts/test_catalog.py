"""Finding published contracts."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.base.errors import ContractInvalid, InputError
from contracts.base.version import Version
from contracts.catalog import Catalog
from tests.fakes import batches


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    for number in ("1.0.0", "1.10.0", "1.2.0"):
        batches.write(tmp_path / f"shop/orders/{number}.contract.json", version=number)
    (tmp_path / "shop/orders/notes.features.json").write_text("{}")
    return Catalog(tmp_path)


def test_latest_is_by_number_not_by_letters(catalog: Catalog) -> None:
    """1.10.0 comes after 1.2.0."""
    assert catalog.names() == ["shop/orders"]
    assert catalog.versions("shop/orders") == [
        Version(1, 0, 0),
        Version(1, 2, 0),
        Version(1, 10, 0),
    ]
    assert catalog.load("shop/orders").version == Version(1, 10, 0)
    assert catalog.load("shop/orders@1.2.0").version == Version(1, 2, 0)


@pytest.mark.parametrize(
    ("identity", "hint"),
    [
        ("shop/orders@9.0.0", "1.10.0"),
        ("shop/returns", "shop/orders"),
        ("shop/orders@new", "semantic version"),
        ("orders", "owner/source"),
        ("../etc/passwd", "owner/source"),
        ("shop/../x", "owner/source"),
    ],
)
def test_unknown_contract_is_told_with_what_exists(
    catalog: Catalog, identity: str, hint: str
) -> None:
    """A name that leads nowhere gets the names that lead somewhere."""
    with pytest.raises(InputError, match=hint):
        catalog.load(identity)


def test_empty_catalog_says_so(tmp_path: Path) -> None:
    """Without contracts there is nothing to offer."""
    with pytest.raises(InputError, match="empty"):
        Catalog(tmp_path).load("shop/orders")


def test_file_must_hold_what_its_name_says(catalog: Catalog) -> None:
    """A file that was copied under another name is refused."""
    path = catalog.path("shop/orders", Version(1, 2, 0))
    batches.write(path, version="1.3.0")
    with pytest.raises(ContractInvalid, match=r"1\.3\.0"):
        catalog.load("shop/orders@1.2.0")


def test_file_must_be_named_after_a_version(catalog: Catalog) -> None:
    """A contract file with another name is not silently left out."""
    batches.write(catalog.root / "shop/orders/latest.contract.json")
    with pytest.raises(ContractInvalid, match="latest"):
        catalog.load("shop/orders")


def test_earlier_are_all_others(catalog: Catalog) -> None:
    """Every version but its own counts for a comparison."""
    contract = catalog.load("shop/orders@1.2.0")
    assert [str(item.version) for item in catalog.earlier(contract)] == ["1.0.0", "1.10.0"]
