"""config.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.base.errors import InputError, ManifestInvalid
from model_packages.format import settings

GOOD = b"max_batch_size: 8\ntimeout_ms: 100\nmemory_mb: 64\n"


def test_settings_have_defaults(tmp_path: Path) -> None:
    """Three limits must be given, the others have a default."""
    path = tmp_path / "config.yaml"
    path.write_bytes(GOOD)
    read = settings.load(path)
    assert read.to_dict() == {
        "max_batch_size": 8,
        "timeout_ms": 100,
        "memory_mb": 64,
        "threads": 1,
        "gpu_memory_mb": 0,
        "queue_size": 256,
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"max_batch_size: 0\ntimeout_ms: 1\nmemory_mb: 1\n", "1 to 65536"),
        (GOOD + b"color: red\n", "unknown field"),
        (GOOD + b"threads: yes\n", "whole number"),
        (GOOD + b"max_batch_size: 9\n", "given twice: max_batch_size"),
        (b"a: &x [1]\nb: *x\n", "not allowed"),
        (b"!!python/object/apply:os.system [id]\n", "tags"),
        (b"!!map [1]\n", "tags"),
        (GOOD + b'threads: !!int ""\n', "tags"),
        (GOOD + b"threads: 0x_\n", "not readable as YAML"),
        (GOOD + b"? [a]\n: 1\n", "not readable as YAML"),
        (GOOD + b"<<: 1\n", "not readable as YAML"),
        (GOOD + b"1: 1\n", "unknown field"),
        (b"[1", "not readable as YAML"),
        (b"- 1\n", "expected an object, got list"),
        (b"", "expected an object, got nothing"),
        (b"\xff\xfe\x00", "not readable as YAML"),
        (b"[" * 60_000, "nested deeper"),
    ],
)
def test_malformed_settings_are_refused(text: bytes, words: str) -> None:
    """Settings are strict: no unknown names, no repetition, no references, no objects."""
    with pytest.raises(ManifestInvalid, match=words):
        settings.parse(text)


def test_settings_over_the_limit_are_not_parsed() -> None:
    """A large file is refused by its size."""
    with pytest.raises(InputError, match="too large"):
        settings.parse(b"#" * (settings.LIMIT + 1))


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    """Whatever the file holds, the answer is settings or one typed error."""
    try:
        settings.parse(GOOD + data)
    except InputError:
        return
