"""The rule table: one file a rule, one line here.

Import strings keep a rule's libraries unloaded until it runs; ``rules()`` loads them all.
"""

from __future__ import annotations

import importlib

from tasks.compliance.rule import Rule

TABLE = (
    "bill_of_materials",
    "data_licences",
    "dependency_licences",
    "documentation",
    "external_data",
    "graph_valid",
    "model_licence",
    "no_pickle",
    "no_secrets",
    "operator_domains",
    "package_integrity",
    "personal_data",
)


def rules() -> tuple[Rule, ...]:
    """Return every rule, in the order of the table."""
    loaded = [importlib.import_module(f"tasks.compliance.rules.{name}") for name in TABLE]
    return tuple(module.RULE for module in loaded)
