"""config.yaml: the limits a package runs under (SPEC.md, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from contracts.base import files
from contracts.base.errors import InputError, ManifestInvalid
from model_packages.format.fields import Fields, refuse

LIMIT = 64 * 2**10
_MAXIMUM_DEPTH = 8


@dataclass(frozen=True)
class Settings:
    """Limits of one slot.

    Attributes:
        max_batch_size: Most rows joined into one run of the graph.
        timeout_ms: Longest a request may wait and run.
        memory_mb: Memory the slot may take, in MiB.
        threads: Threads of one run.
        gpu_memory_mb: Memory on an accelerator, in MiB; 0 where none is used.
        queue_size: Most requests that wait.
    """

    max_batch_size: int
    timeout_ms: int
    memory_mb: int
    threads: int = 1
    gpu_memory_mb: int = 0
    queue_size: int = 256

    def to_dict(self) -> dict[str, int]:
        """Return plain data."""
        return dict(vars(self))


def load(path: Path) -> Settings:
    """Read a settings file.

    Raises:
        InputError: If it cannot be read or is larger than 64 KiB.
        ManifestInvalid: With every problem in it.
    """
    return parse(files.read_bounded(path, LIMIT), where=str(path))


def parse(data: bytes, *, where: str = "config.yaml") -> Settings:
    """Read settings from YAML.

    Raises:
        InputError: If there are too many bytes.
        ManifestInvalid: With every problem in them.
    """
    problems: list[str] = []
    fields = Fields(_read_yaml(data, where), "config", problems)
    settings = Settings(
        max_batch_size=fields.integer("max_batch_size", minimum=1, maximum=65_536),
        timeout_ms=fields.integer("timeout_ms", minimum=1, maximum=3_600_000),
        memory_mb=fields.integer("memory_mb", minimum=1),
        threads=fields.integer("threads", 1, minimum=1, maximum=1024),
        gpu_memory_mb=fields.integer("gpu_memory_mb", 0),
        queue_size=fields.integer("queue_size", 256, minimum=1, maximum=1_000_000),
    )
    fields.close()
    refuse(problems, where)
    return settings


class _Strict(yaml.SafeLoader):
    """Plain YAML without references, tags, depth and repeated names.

    So the size of a file bounds what it becomes, and only its own texts decide the types.
    """

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse references to other nodes, tags, and nesting that no setting has."""
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("references (*name) are not allowed")
        event = self.peek_event()  # type: ignore[no-untyped-call] # the stubs leave it open
        if getattr(event, "tag", None) is not None:
            raise yaml.YAMLError("tags (!name) are not allowed")
        self.depth += 1
        if self.depth > _MAXIMUM_DEPTH:
            raise yaml.YAMLError(f"nested deeper than {_MAXIMUM_DEPTH} levels")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Refuse a name that is given twice."""
        names = [name.value for name, _ in node.value]
        repeated = sorted({str(name) for name in names if names.count(name) > 1})
        if repeated:
            raise yaml.YAMLError(f"names given twice: {', '.join(repeated)}")
        return super().construct_mapping(node, deep)


def _read_yaml(data: bytes, where: str) -> Any:
    if len(data) > LIMIT:
        raise InputError(
            "document is too large",
            expected=f"at most {LIMIT} bytes",
            found=f"{len(data)} bytes",
            location=where,
        )
    try:
        return yaml.load(data, Loader=_Strict)  # noqa: S506 - _Strict is a SafeLoader
    except (yaml.YAMLError, ValueError) as err:
        raise ManifestInvalid(f"not readable as YAML: {err}", location=where) from err
