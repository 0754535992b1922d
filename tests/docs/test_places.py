"""Documents point only at what is there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs import documents

# What a name of a file looks like; other dotted or slashed words are not taken for one.
_ENDINGS = r"(?:py|md|json|toml|yaml|yml|txt|lock|j2|css|png|svg|db|sql)"
_FILE = re.compile(rf"^[\w.-]+(?:/[\w.-]+)*\.{_ENDINGS}$|^[\w.-]+(?:/[\w.-]+)*/$")
# Written while Caisson works: in a home folder, a target's folder or a package.
_MADE = re.compile(
    r"^(\.caisson|sources|objects|registry|targets|reports|keys|prefect|mlflow|locks|tmp)/|"
    r"^(ledger\.db|batch\.json|alerts\.jsonl|audit\.json|bom\.cdx\.json|state\.json|route\.json)$|"
    r"^(docs/metrics\.json|docs/OperatorKernels\.md|environments/)$"
)
# What a package holds is described there, not what the checkout holds.
_OF_PACKAGES = ("model_packages/SPEC.md", "model_packages/published/")


def test_every_link_leads_somewhere(root: Path) -> None:
    """A relative link points at a file or folder of the checkout."""
    broken = [
        f"{path.relative_to(root)}: {target}"
        for path in documents.listed(root)
        for target in documents.links(path)
        if not re.match(r"[a-z]+:|#", target)
        and not (path.parent / target.partition("#")[0]).exists()
    ]
    assert broken == []


def test_every_file_named_exists(root: Path) -> None:
    """A file or folder named in a sentence is in the checkout: there, beside it, or by its name."""
    names = {item.name for item in _all(root)}
    missing = [
        f"{path.relative_to(root)}: `{said}`"
        for path in documents.listed(root)
        if not str(path.relative_to(root)).startswith(_OF_PACKAGES)
        for said in documents.mentions(path)
        if _FILE.match(said) and not _MADE.match(said) and not _exists(root, path, said, names)
    ]
    assert missing == []


def test_the_picture_is_small(root: Path) -> None:
    """The picture in the README loads fast everywhere."""
    pictures = [item for item in documents.links(root / "README.md") if item.endswith(".png")]
    assert pictures
    assert all((root / item).stat().st_size <= 300_000 for item in pictures)


def _exists(root: Path, document: Path, said: str, names: set[str]) -> bool:
    name = said.rstrip("/")
    near = [root, document.parent, document.parent.parent]
    return any((place / name).exists() for place in near) or ("/" not in name and name in names)


def _all(root: Path) -> list[Path]:
    hidden = {".venv", ".caisson", ".git", "__pycache__"}
    return [
        item
        for room in root.iterdir()
        if room.name not in hidden
        for item in (room, *room.rglob("*"))
    ]
