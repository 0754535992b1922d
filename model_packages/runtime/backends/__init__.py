"""Backends: one file each, and one line here.

The table holds import strings, so that naming a backend loads nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from contracts.base.errors import InputError
from model_packages.runtime.backends.interface import Backend

TABLE: Mapping[str, str] = MappingProxyType(
    {
        "fake": "model_packages.runtime.backends.fake:FakeBackend",
        "onnx": "model_packages.runtime.backends.onnx:OnnxBackend",
    }
)


def create(name: str) -> Backend:
    """Return a new backend by its name.

    Raises:
        InputError: If no backend has that name.
    """
    if name not in TABLE:
        raise InputError("unknown backend", expected=", ".join(sorted(TABLE)), found=repr(name))
    module, _, attribute = TABLE[name].partition(":")
    backend: Backend = getattr(importlib.import_module(module), attribute)()
    return backend
