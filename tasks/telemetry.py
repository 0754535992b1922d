"""The variables that keep our libraries quiet; set before any of them is imported.

``flows/__init__`` applies them to this process and ``tasks/child`` to every process it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

OFF: Mapping[str, str] = MappingProxyType(
    {
        "DO_NOT_TRACK": "true",
        "GX_ANALYTICS_ENABLED": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "ORT_DISABLE_TELEMETRY": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }
)
