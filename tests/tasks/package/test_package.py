"""The package stage."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.base.digest import Digest
from contracts.base.errors import DigestMismatch, InputError
from contracts.base.report import Report
from contracts.objects import content
from model_packages.oci.store import LayoutStore
from model_packages.oci.unpack import open_package
from tasks.package.package import exists, package, reference_of
from tasks.workspace import Workspace
from tests.fakes import packages


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    code = packages.write_runtime(tmp_path / "checkout")
    return Workspace(tmp_path / "Heim mit Ümlaut", code).prepare()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return packages.write_source(tmp_path / "source")


def run(workspace: Workspace, source: Path) -> Report:
    return package(workspace, content.put_tree(workspace.objects, source), "team/tiny")


def test_a_good_source_becomes_a_package(workspace: Workspace, source: Path) -> None:
    """The report names the package, which opens with the facts of its graph."""
    report = run(workspace, source)
    assert report.verdict == "pass"
    assert report.findings == ()
    reference = reference_of(report)
    assert report.subject == str(reference)
    assert report.facts["layout"] == "objects/packages/team/tiny"
    assert report.facts["cases"] == ["valid_01", "valid_02"]
    assert exists(workspace, report)
    tree = open_package(
        workspace.packages("team/tiny"), reference.digest, workspace.objects_path / "unpacked"
    )
    assert tree.graph == report.facts["graph"]
    assert tree.manifest.to_dict() == report.facts["manifest"]
    assert list(workspace.tmp.iterdir()) == []


def test_the_same_source_gives_the_same_report(
    workspace: Workspace, source: Path, tmp_path: Path
) -> None:
    """Two builds in two homes agree on everything that is digested."""
    other = Workspace(tmp_path / "other", workspace.root).prepare()
    assert run(workspace, source).digest == run(other, source).digest


def drop_licence(source: Path) -> None:
    packages.edit_json(source / "manifest.json", license=None)


def test_a_missing_licence_is_left_to_the_audit(workspace: Workspace, source: Path) -> None:
    """Packaging does not judge licences."""
    drop_licence(source)
    assert run(workspace, source).verdict == "pass"


def break_manifest(source: Path) -> None:
    packages.edit_json(source / "manifest.json", name=None)


def break_settings(source: Path) -> None:
    (source / "config.yaml").write_text("max_batch_size: none\n")


def break_model(source: Path) -> None:
    (source / "model.onnx").write_bytes(b"junk")


def break_cases(source: Path) -> None:
    (source / "test_cases" / "valid_output_02.json").unlink()


def rename_input(source: Path) -> None:
    plain = packages.manifest()
    plain["inputs"][1]["name"] = "length"
    packages.write_json(source / "manifest.json", plain)


def shrink_memory(source: Path) -> None:
    packages.edit_json(source / "manifest.json", hardware={"devices": ["cpu"], "memory_mb": 65})


def hide_pickle(source: Path) -> None:
    (source / "docs" / "data.csv").write_bytes(b"\x80\x04.")


def remove_health_check(source: Path) -> None:
    (source / "health_check.py").unlink()


SPOILERS: dict[Callable[[Path], None], set[str]] = {
    break_manifest: {"package.manifest-invalid"},
    break_settings: {"package.config-invalid"},
    break_model: {"package.model-invalid"},
    break_cases: {"package.test-cases-invalid"},
    rename_input: {"package.interface", "package.case-mismatch"},
    shrink_memory: {"package.memory"},
    hide_pickle: {"package.pickle"},
    remove_health_check: {"package.file-missing"},
}


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_spoiled_source_is_refused_for_its_reason(
    workspace: Workspace, source: Path, spoil: Callable[[Path], None]
) -> None:
    """Each mistake is found by its own rule, and nothing is built or left behind."""
    spoil(source)
    report = run(workspace, source)
    assert report.verdict == "fail"
    assert {finding.rule for finding in report.findings} == SPOILERS[spoil]
    assert all(finding.remedy for finding in report.findings)
    assert "package_digest" not in report.facts
    assert not workspace.packages("team/tiny").exists()
    assert list(workspace.tmp.iterdir()) == []


def test_all_mistakes_are_found_at_once(workspace: Workspace, source: Path) -> None:
    """A person corrects a source in one go, and no passing folder is named."""
    for spoil in (break_settings, break_model, break_cases, hide_pickle, remove_health_check):
        spoil(source)
    report = run(workspace, source)
    assert len(report.findings) == 5
    assert not any(str(workspace.tmp) in str(finding.to_dict()) for finding in report.findings)


def test_one_changed_byte_of_the_source_is_refused(workspace: Workspace, source: Path) -> None:
    """A stored source that was tampered with is not built."""
    tree = content.put_tree(workspace.objects, source)
    stored = content.put_file(workspace.objects, source / "model.onnx")
    path = workspace.objects_path / content.key_of(stored)
    data = path.read_bytes()
    os.chmod(path, 0o644)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(DigestMismatch):
        package(workspace, tree, "tiny")
    assert list(workspace.tmp.iterdir()) == []


def test_malformed_requests_are_refused(workspace: Workspace) -> None:
    """A wrong name or an unknown source is an input error."""
    with pytest.raises(InputError, match="not a repository name"):
        package(workspace, Digest("sha256:" + "0" * 64), "../tiny")
    with pytest.raises(InputError):
        package(workspace, Digest("sha256:" + "0" * 64), "tiny")


def test_a_report_that_names_no_package_has_no_reference(
    workspace: Workspace, source: Path
) -> None:
    """A failed report cannot be released by mistake."""
    break_model(source)
    with pytest.raises(InputError):
        reference_of(run(workspace, source))


def test_a_damaged_package_does_not_count_as_built(workspace: Workspace, source: Path) -> None:
    """Reuse verifies every byte, and building again repairs."""
    report = run(workspace, source)
    store = LayoutStore(workspace.packages("team/tiny"))
    layer = store.read_json(store.find(reference_of(report).digest))["manifests"][0]
    store.blob(layer["digest"]).write_bytes(b"damaged")
    with pytest.raises(DigestMismatch):
        exists(workspace, report)
    assert run(workspace, source).digest == report.digest
    assert exists(workspace, report)


def test_the_stage_runs_once(workspace: Workspace, source: Path) -> None:
    """The second run of the stage reuses the record of the first."""
    from tasks.package import steps

    (workspace.root / "tasks" / "package").mkdir(parents=True)
    (workspace.root / "tasks" / "package" / "package.py").write_text("x")
    tree = content.put_tree(workspace.objects, source)
    first = steps.build_package.function(workspace, tree, "tiny")
    second = steps.build_package.function(workspace, tree, "tiny")
    assert "unchanged" not in first.measurements
    assert second.measurements["unchanged"] is True
    assert second.digest == first.digest
