"""The data a snapshot is computed from: delivered batches and the contracts they fulfil."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from contracts import schema
from contracts.base import digest
from contracts.base.digest import Digest
from contracts.base.errors import BundleInvalid, ContractInvalid, DigestMismatch
from contracts.features.definition import FeatureDefinition


@dataclass(frozen=True)
class InputFile:
    """One file of a batch, and the digest it had when the batch was judged."""

    path: Path
    sha256: Digest


@dataclass(frozen=True)
class InputBatch:
    """One delivered batch, by its identity and its files."""

    name: str
    digest: Digest
    files: tuple[InputFile, ...]


@dataclass(frozen=True)
class InputData:
    """All batches of one input, and the contract they fulfil.

    Attributes:
        contract: Identity of the contract, ``owner/source@1.0.0``.
        schema_hash: Canonical schema that the contract promises.
        batches: The batches, in any order.
    """

    contract: str
    schema_hash: Digest
    batches: tuple[InputBatch, ...]

    @property
    def ordered(self) -> tuple[InputBatch, ...]:
        """The batches sorted by name."""
        return tuple(sorted(self.batches, key=lambda batch: batch.name))

    @property
    def files(self) -> list[Path]:
        """The files of all batches, in one order."""
        return sorted(file.path for batch in self.batches for file in batch.files)


def check(definition: FeatureDefinition, inputs: Mapping[str, InputData]) -> None:
    """Refuse data that does not fit a definition or its contracts.

    Raises:
        BundleInvalid: If an input is missing, foreign or of another contract, a batch is given
            twice, or a file is not Parquet.
        ContractInvalid: If a file has another schema than its contract promises.
    """
    expected = {item.name: item.contract for item in definition.inputs}
    found = {name: item.contract for name, item in inputs.items() if item.batches}
    if expected != found:
        raise BundleInvalid(
            "inputs do not fit the definition",
            expected=", ".join(f"{name}: {value}" for name, value in sorted(expected.items())),
            found=", ".join(f"{name}: {value}" for name, value in sorted(found.items())),
            location=definition.name,
        )
    for item in inputs.values():
        names = [batch.name for batch in item.batches]
        if len(set(names)) != len(names):
            raise BundleInvalid("a batch is given twice", found=", ".join(sorted(names)))
        for batch in item.batches:
            for file in batch.files:
                _check_schema(item, batch, file.path)


def confirm(inputs: Mapping[str, InputData]) -> None:
    """Prove that no file changed while it was read.

    Raises:
        DigestMismatch: If one has another digest than when its batch was judged.
    """
    for item in inputs.values():
        for batch in item.batches:
            for file in batch.files:
                found = digest.of_file(file.path)
                if found != file.sha256:
                    raise DigestMismatch(
                        f"batch {batch.name} changed while it was read",
                        expected=file.sha256,
                        found=found,
                        location=str(file.path),
                        remedy="Deliver batches whole: write aside, then rename the folder.",
                    )


def _check_schema(item: InputData, batch: InputBatch, path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    try:
        columns = schema.from_arrow(parquet.read_schema(path))
    except (pyarrow.ArrowException, OSError) as err:
        raise BundleInvalid(f"not a Parquet file: {str(err)[:200]}", location=str(path)) from err
    found = schema.schema_hash(columns)
    if found != item.schema_hash:
        raise ContractInvalid(
            f"batch {batch.name} has another schema than its contract promises",
            expected=item.schema_hash,
            found=found,
            location=f"{item.contract}: {path.name}",
            remedy="Run `caisson contract check` on the batch to see the columns that differ.",
        )
