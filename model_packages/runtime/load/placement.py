"""Stage 3: on which device, with how many threads, and does it fit there?"""

from __future__ import annotations

import os
from typing import Any

from contracts.base.errors import DeviceUnavailable
from model_packages.runtime.backends.interface import SessionOptions
from model_packages.runtime.load.model import ModelSpec
from model_packages.runtime.memory import budget

DEVICE = "cpu"


def decide(spec: ModelSpec, weights: int, free: int) -> tuple[SessionOptions, dict[str, Any]]:
    """Choose device and threads, and predict the memory.

    Args:
        spec: The model.
        weights: Bytes of its weights.
        free: Bytes of memory that can still be taken.

    Raises:
        DeviceUnavailable: If the model cannot run on a device of this machine.
        OutOfMemory: If it will not fit.
    """
    devices = spec.manifest.hardware.devices
    if not any(name == DEVICE or name.startswith(f"{DEVICE}-") for name in devices):
        raise DeviceUnavailable(
            "model names no device of this machine",
            expected=DEVICE,
            found=", ".join(devices) or "none",
            remedy="Add a cpu device to hardware.devices in manifest.json, or use such a machine.",
        )
    prediction = budget.predict(
        weights, spec.manifest.hardware.memory_mb, spec.settings.memory_mb, free
    )
    threads = min(spec.settings.threads, os.cpu_count() or 1)
    figures = {"device": DEVICE, "threads": threads, **vars(prediction)}
    return SessionOptions(threads=threads, device=DEVICE), figures
