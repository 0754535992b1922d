"""Whose signatures count for a target: the one trust root, outside every package.

``home`` trusts the keys this installation made for itself, which are demonstration keys. ``file``
trusts those in ``infra/trust/keys.json``, each with its role.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contracts.base import files
from contracts.base.errors import InputError
from model_packages.oci import keys
from model_packages.oci.keys import PublicKey
from tasks.policy import Role, SignatureDemand
from tasks.workspace import Workspace

FILE = "infra/trust/keys.json"

_LIMIT = 1 << 20
_FIELDS = frozenset({"role", "owner", "pem", "demo"})


def trusted(workspace: Workspace, demand: SignatureDemand, role: Role) -> list[PublicKey]:
    """Return the keys that count for a role.

    Raises:
        InputError: If the trust root is malformed.
    """
    if demand.trust == "home":
        path = workspace.keys / f"{role}.pub"
        return [keys.load_public(path)] if demand.demo_keys and path.is_file() else []
    path = workspace.root / FILE
    data = files.read_json(path, limit=_LIMIT)
    entries = data.get("keys") if isinstance(data, Mapping) else None
    if not isinstance(entries, list) or data.get("format_version") != 0:
        raise InputError("not a trust root", expected="format_version 0 and keys", location=FILE)
    chosen = [entry for entry in map(_entry, entries) if entry["role"] == role]
    return [
        keys.parse_public(entry["pem"].encode(), where=FILE)
        for entry in chosen
        if demand.demo_keys or not entry["demo"]
    ]


def _entry(entry: Any) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping) or set(entry) != _FIELDS:
        raise InputError(
            "entry of the trust root is malformed",
            expected=", ".join(sorted(_FIELDS)),
            found=repr(entry)[:100],
            location=FILE,
        )
    texts = all(isinstance(entry[name], str) for name in ("role", "owner", "pem"))
    if not texts or not isinstance(entry["demo"], bool):
        raise InputError("entry of the trust root is malformed", location=FILE)
    return entry
