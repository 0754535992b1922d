"""The bill of materials: CycloneDX with the model, its data and all it runs on.

The library builds components and the dependency graph; the model card, which it does not know
yet, is added to the JSON. No time, host or random number enters, so equal input gives equal bytes.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from contracts.base import canonical, digest
from contracts.base.errors import InputError
from tasks.compliance.closure import Library
from tasks.compliance.rule import Subject

VERSIONS = ("1.6", "1.7")


def build(subject: Subject) -> bytes:
    """Return the CycloneDX 1.6 bill of materials of a package, as canonical JSON.

    Raises:
        InputError: If the result is not strictly valid, which says what is wrong.
    """
    from cyclonedx.model.bom import Bom  # noqa: PLC0415 - loaded only where a bill is made
    from cyclonedx.output.json import JsonV1Dot6  # noqa: PLC0415 - see above

    bom = Bom(serial_number=_serial(subject))
    model = _model(subject)
    bom.metadata.component = model
    parts = [_library(item) for item in subject.libraries]
    data = [_data(subject, index) for index in range(len(subject.manifest.data))]
    for part in [*parts, *data]:
        bom.components.add(part)
    by_name = {item.name: part for item, part in zip(subject.libraries, parts, strict=True)}
    needed = {name for item in subject.libraries for name in item.requires}
    roots = [part for name, part in by_name.items() if name not in needed]
    bom.register_dependency(model, [*roots, *data])
    for item in subject.libraries:
        bom.register_dependency(
            by_name[item.name], [by_name[name] for name in item.requires if name in by_name]
        )
    content = json.loads(JsonV1Dot6(bom).output_as_string())
    content["metadata"].pop("timestamp", None)
    content["metadata"].pop("tools", None)
    content["metadata"]["component"]["modelCard"] = _card(subject)
    problems = validate(canonical.dumps(content))
    if problems:
        raise InputError("bill of materials is not valid", found=problems[:500])
    return canonical.dumps(content)


def validate(document: bytes, version: str = "1.6") -> str:
    """Return what a strict validator says against a bill of materials; empty if nothing."""
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415 - see build
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415 - see build

    schema = SchemaVersion.from_version(version)
    error = JsonStrictValidator(schema).validate_str(document.decode("utf-8"))
    return "" if error is None else str(error)


def _serial(subject: Subject) -> uuid.UUID:
    """Name the bill after the package and what it runs on."""
    content = [subject.package.to_dict(), [item.to_dict() for item in subject.libraries]]
    return uuid.UUID(digest.of_json(content).removeprefix("sha256:")[:32], version=4)


def _model(subject: Subject) -> Any:
    from cyclonedx.model import HashAlgorithm, HashType, Property  # noqa: PLC0415 - see build
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415 - see build
    from cyclonedx.model.contact import OrganizationalContact  # noqa: PLC0415 - see build

    manifest = subject.manifest
    package = subject.package
    return Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        name=manifest.name,
        version=manifest.version,
        description=manifest.description or None,
        bom_ref=f"model:{manifest.name}@{manifest.version}",
        licenses=_licenses(manifest.license),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=package.set_digest[7:])],
        authors=[OrganizationalContact(name=item.name) for item in manifest.authors],
        properties=[
            Property(name="caisson:package-digest", value=package.digest),
            Property(name="caisson:claimed-level", value=manifest.compliance_level),
        ],
    )


def _library(item: Library) -> Any:
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415 - see build
    from packageurl import PackageURL  # noqa: PLC0415 - comes with cyclonedx

    url = PackageURL("pypi", name=item.name, version=item.version or None)
    return Component(
        type=ComponentType.LIBRARY,
        name=item.name,
        version=item.version or None,
        bom_ref=str(url),
        purl=url,
        licenses=_licenses(item.license.expression),
    )


def _data(subject: Subject, index: int) -> Any:
    from cyclonedx.model import Property  # noqa: PLC0415 - see build
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415 - see build

    source = subject.manifest.data[index]
    contract = [Property(name="caisson:contract", value=source.contract)] if source.contract else []
    return Component(
        type=ComponentType.DATA,
        name=source.name,
        bom_ref=f"data:{index}:{source.name}",
        licenses=_licenses(source.license),
        properties=contract,
    )


def _licenses(expression: str) -> list[Any]:
    from cyclonedx.contrib.license.factories import LicenseFactory  # noqa: PLC0415 - see build

    return [LicenseFactory().make_from_string(expression)] if expression else []


def _card(subject: Subject) -> dict[str, Any]:
    manifest = subject.manifest
    training = manifest.training
    card: dict[str, Any] = {
        "bom-ref": f"card:{manifest.name}@{manifest.version}",
        "modelParameters": {
            "approach": {"type": "supervised"} if training else {},
            "inputs": [{"format": f"{i.name}: {i.datatype}"} for i in manifest.inputs],
            "outputs": [{"format": f"{i.name}: {i.datatype}"} for i in manifest.outputs],
            "datasets": [{"ref": f"data:{i}:{d.name}"} for i, d in enumerate(manifest.data)],
        },
        "considerations": {
            "useCases": [text for text in [manifest.intended_use] if text],
            "technicalLimitations": [text for text in [manifest.limitations] if text],
        },
        "properties": [],
    }
    if training:
        facts = {
            "definition": training.definition,
            "feature-version": training.feature_version,
            "seed": str(training.seed),
        }
        card["properties"] = [
            {"name": f"caisson:training-{name}", "value": value}
            for name, value in facts.items()
            if value
        ]
    return card
