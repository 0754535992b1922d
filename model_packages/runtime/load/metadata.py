"""Stage 1: are these the promised files, and what do they say the model is?"""

from __future__ import annotations

from typing import Any

from contracts.base.errors import DigestMismatch, ManifestInvalid
from model_packages.format import cases, inventory, layout, manifest, settings
from model_packages.runtime.backends import tensors
from model_packages.runtime.load.model import ModelSpec, PackageSource


def read(source: PackageSource) -> tuple[ModelSpec, dict[str, Any]]:
    """Verify the files and read manifest, settings and cases.

    Raises:
        DigestMismatch: If any file differs from what was signed.
        ManifestInvalid: If a description is malformed or asks for what the engine lacks.
        InputError: If the folder cannot be read.
    """
    found = inventory.read(source.folder)
    if found.set_digest != source.set_digest:
        raise DigestMismatch(
            "files are not those of the package",
            expected=source.set_digest,
            found=found.set_digest,
            location=str(source.folder),
            remedy="Fetch the package again from the registry.",
        )
    spec = ModelSpec(
        manifest=manifest.load(source.folder / layout.MANIFEST),
        settings=settings.load(source.folder / layout.SETTINGS),
        cases=cases.load(source.folder / layout.CASES),
    )
    _require_fit(spec)
    figures = {"files": len(found.entries), "bytes": found.size, "cases": len(spec.cases)}
    return spec, figures


def _require_fit(spec: ModelSpec) -> None:
    problems = [
        f"{tensor.name}: datatype {tensor.datatype} is not supported by this engine"
        for tensor in spec.inputs + spec.outputs
        if not tensors.supported(tensor.datatype)
    ]
    problems += cases.mismatches(spec.manifest, spec.cases)
    if problems:
        raise ManifestInvalid(
            "; ".join(problems),
            location=spec.name,
            remedy="Correct manifest.json or test_cases/ and build the package again.",
        )
