"""Which package source a flow is about."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.errors import InputError, ManifestInvalid, RefusedError
from contracts.base.report import Report, conclude
from contracts.objects import content
from flows import sources
from flows.context import Context
from tests.fakes import packages, world
from tests.fakes.packages import Options

REFERENCE = digest.of_bytes(b"reference")


def stored(here: Context, folder: Path, **options: object) -> Digest:
    """Put a package source of the tiny model into the object store."""
    source = packages.write_source(folder, Options(**options))  # type: ignore[arg-type] # plain data
    return content.put_tree(here.workspace.objects, source)


def trained(tree: Digest, options: Options | None = None, **changes: object) -> Report:
    """The report of a training of the tiny model."""
    options = options or Options()
    facts = {
        "model": options.name,
        "source_tree": tree,
        "reference_digest": REFERENCE,
        "feature_version": options.feature_version,
        "holdout_version": options.holdout_version,
        **changes,
    }
    return conclude("train", "tiny", [], facts=facts, measurements={"seconds": 3})


def test_a_digest_names_a_source(here: Context, tmp_path: Path) -> None:
    """A tree in the object store is opened by its digest; without training it has no reference."""
    tree = stored(here, tmp_path / "a")
    found = sources.resolve(here, "tiny", tree)
    assert (found.tree, found.manifest.name, found.reference) == (tree, "tiny", None)
    assert found.training.feature_version == Options().feature_version


def test_a_folder_names_a_source(here: Context, tmp_path: Path) -> None:
    """A folder is stored first, so the same files are the same source."""
    folder = packages.write_source(tmp_path / "with space")
    found = sources.resolve(here, "tiny", str(folder))
    assert found.tree == content.put_tree(here.workspace.objects, folder)
    with pytest.raises(InputError):
        sources.resolve(here, "tiny", str(tmp_path / "absent"))


def test_without_a_name_the_newest_trained_counts(here: Context, tmp_path: Path) -> None:
    """What was trained last is released next; a model never trained is refused with what to do."""
    with pytest.raises(RefusedError, match="Run `caisson train tiny` first"):
        sources.resolve(here, "tiny", None)
    for number in (1, 2):
        tree = stored(here, tmp_path / str(number), version=f"1.0.{number}")
        sources.remember(here, trained(tree))
    found = sources.resolve(here, "tiny", None)
    assert found.manifest.version == "1.0.2"
    assert found.reference == REFERENCE


def test_another_models_source_is_refused(here: Context, tmp_path: Path) -> None:
    """A source whose manifest names another model is not taken for this one."""
    tree = stored(here, tmp_path / "a", name="other")
    with pytest.raises(ManifestInvalid, match="expected tiny, got other"):
        sources.resolve(here, "tiny", tree)


def test_an_unknown_or_malformed_digest_is_an_input_error(here: Context, tmp_path: Path) -> None:
    """What is no digest, what is not stored, and a tree that is no source are said plainly."""
    with pytest.raises(InputError, match="source"):
        sources.resolve(here, "tiny", "sha256:12")
    with pytest.raises(InputError):
        sources.resolve(here, "tiny", digest.of_bytes(b"never stored"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x").write_text("x")
    with pytest.raises(ManifestInvalid, match=r"no manifest\.json"):
        sources.resolve(here, "tiny", str(tmp_path / "empty"))


def test_a_source_that_names_no_versions_is_refused(here: Context, tmp_path: Path) -> None:
    """What cannot be traced to its data is not judged."""
    tree = stored(here, tmp_path / "a", manifest={"training": None})
    with pytest.raises(ManifestInvalid, match="names no feature version"):
        _ = sources.resolve(here, "tiny", tree).training


def test_changed_weights_are_compared_with_what_was_trained(here: Context, tmp_path: Path) -> None:
    """A source of the same versions keeps the reference of their training, whatever its graph."""
    sources.remember(here, trained(stored(here, tmp_path / "a")))
    changed = stored(here, tmp_path / "b", weight=3.0)
    assert sources.resolve(here, "tiny", changed).reference == REFERENCE
    elsewhere = stored(here, tmp_path / "c", feature_version="20130101-0123456789ab")
    assert sources.resolve(here, "tiny", elsewhere).reference is None


def test_a_training_is_remembered_once(here: Context, tmp_path: Path) -> None:
    """The same result again writes nothing; its report can be read back without measurements."""
    report = trained(stored(here, tmp_path / "a"))
    sources.remember(here, report)
    sources.remember(here, replace(report, measurements={"seconds": 9}))
    (record,) = here.ledger.records("trained", "tiny")
    data = content.get_bytes(here.workspace.objects, record.body["report"], limit=2**20)
    assert Report.from_dict(json.loads(data)).digest == report.digest
    sources.remember(here, trained(Digest(record.body["source_tree"]), reference_digest=None))
    assert len(here.ledger.records("trained", "tiny")) == 2
    assert sources.resolve(here, "tiny", None).reference is None


def test_training_takes_the_callers_versions_or_the_manifests(here: Context) -> None:
    """Versions given win over the manifest's; a model without either cannot be trained."""
    said = sources.training_of(here, world.MODEL)
    assert said.feature_version == Options().feature_version
    given = sources.training_of(here, world.MODEL, "20200101-0123456789ab", None)
    assert given.feature_version == "20200101-0123456789ab"
    assert given.holdout_version == said.holdout_version


def test_training_without_versions_is_refused(here: Context) -> None:
    """Neither the caller nor the manifest names them: the error says how to get some."""
    world.publish_model(here, "bare", feature_version="", holdout_version="")
    with pytest.raises(ManifestInvalid, match="names no feature version"):
        sources.training_of(here, "bare")
    with pytest.raises(ManifestInvalid, match="names no feature version"):
        sources.training_of(here, "bare", "20200101-0123456789ab")
    with pytest.raises(InputError, match="missing"):
        sources.training_of(here, "unknown")


def test_a_model_without_training_is_not_trained_here(here: Context) -> None:
    """A manifest without that section says so."""
    path = world.publish_model(here, "given")
    packages.edit_json(path, training=None)
    with pytest.raises(ManifestInvalid, match="not trained here"):
        sources.training_of(here, "given")


def test_files_published_after_training_are_named(here: Context, tmp_path: Path) -> None:
    """Who edits a published file and releases what was trained before is told so."""
    folder = here.models / Options().name
    packages.write_source(folder, Options())
    source = sources.Source(
        content.put_tree(here.workspace.objects, folder),
        sources.manifests.load(folder / "manifest.json"),
        None,
    )
    assert sources.changed_since(here, Options().name, source) == []
    with (folder / "config.yaml").open("a") as stream:
        stream.write("# a word\n")
    (folder / "docs" / "new.md").write_text("new")
    assert sources.changed_since(here, Options().name, source) == ["config.yaml", "docs/new.md"]
