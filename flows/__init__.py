"""The order of the work. Importing this package silences telemetry before any library is loaded.

It also spares every process 1.3 CPU seconds: jsonschema, which Prefect loads, would otherwise
build a grammar for the IRI format (``rfc3987_syntax``) that none of our schemas uses, and treats
the package as optional.
"""

import os
import sys

from tasks import telemetry

os.environ.update(telemetry.OFF)
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type] # None means: not there
