"""What changed between two versions of a contract, seen by those who read the data.

A change is ``major`` if a consumer that trusted the old promise can break on the new one:
something is gone, renamed, of another type, or promised less strictly. It is ``minor`` if more is
promised or offered, and ``patch`` if only words changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from contracts import schema
from contracts.base.version import Bump
from contracts.rules import Rule
from contracts.terms import ON_VIOLATION, PERSONAL_DATA, Contract, ContractColumn

_ORDER: tuple[Bump, ...] = ("none", "patch", "minor", "major")
_WORDS = ("description", "contact", "consumers", "fuse")


@dataclass(frozen=True)
class Change:
    """One difference between two contracts.

    Attributes:
        path: What changed, such as ``columns.amount.type``.
        bump: The version step it demands.
        message: What was and what is, in words.
    """

    path: str
    bump: Literal["major", "minor", "patch"]
    message: str


def compare(old: Contract, new: Contract) -> tuple[Change, ...]:
    """Return every change from one contract to another, gravest first."""
    changes = [
        *_column_changes(old, new),
        *_rule_changes(old, new),
        *_freshness_changes(old, new),
        *_term_changes(old, new),
    ]
    return tuple(sorted(changes, key=lambda item: (-_ORDER.index(item.bump), item.path)))


def required(changes: tuple[Change, ...]) -> Bump:
    """Return the smallest version step that changes allow."""
    return max((change.bump for change in changes), key=_ORDER.index, default="none")


def allowed(old: Contract, new: Contract) -> bool:
    """Tell whether the step from one version to another is large enough for what changed."""
    if new.version <= old.version:
        return False
    step = required(compare(old, new))
    if step == "major":
        return new.version.major > old.version.major
    if step == "minor":
        return (new.version.major, new.version.minor) > (old.version.major, old.version.minor)
    return True


def _column_changes(old: Contract, new: Contract) -> Iterator[Change]:
    before = {column.name: column for column in old.columns}
    after = {column.name: column for column in new.columns}
    for name in sorted(before.keys() | after.keys()):
        path = f"columns.{name}"
        if name not in after:
            yield Change(path, "major", f"column {name} is gone")
        elif name not in before:
            yield Change(path, "minor", f"column {name} ({after[name].type}) is new")
        else:
            yield from _one_column(path, before[name], after[name])
    if old.key != new.key:
        gone = f"key was {', '.join(old.key) or 'none'}, is {', '.join(new.key) or 'none'}"
        yield Change("key", "minor" if not old.key else "major", gone)


def _one_column(path: str, old: ContractColumn, new: ContractColumn) -> Iterator[Change]:
    before, after = schema.spelled(old.column), schema.spelled(new.column)
    if before != after:
        yield Change(f"{path}.type", "major", f"type was {before}, is {after}")
    if old.nullable != new.nullable:
        bump: Literal["major", "minor"] = "major" if new.nullable else "minor"
        word = "may now be" if new.nullable else "is no longer"
        yield Change(f"{path}.nullable", bump, f"{old.name} {word} null")
    if old.unit != new.unit:
        message = f"unit was {old.unit or 'none'}, is {new.unit or 'none'}"
        yield Change(f"{path}.unit", "major" if old.unit else "minor", message)
    if old.personal_data != new.personal_data:
        stricter = PERSONAL_DATA.index(new.personal_data) > PERSONAL_DATA.index(old.personal_data)
        message = f"personal data was {old.personal_data}, is {new.personal_data}"
        yield Change(f"{path}.personal_data", "major" if stricter else "minor", message)
    if old.description != new.description:
        yield Change(f"{path}.description", "patch", "description changed")


def _rule_changes(old: Contract, new: Contract) -> Iterator[Change]:
    before = {rule.id: rule for rule in old.rules}
    after = {rule.id: rule for rule in new.rules}
    for name in sorted(before.keys() | after.keys()):
        path = f"rules.{name}"
        if name not in after:
            yield Change(path, "major", f"rule {name} is gone")
        elif name not in before:
            yield Change(path, "minor", f"rule {name} is new")
        elif before[name] != after[name]:
            yield _one_rule(path, before[name], after[name])


def _one_rule(path: str, old: Rule, new: Rule) -> Change:
    if (old.kind, old.columns) != (new.kind, new.columns):
        return Change(path, "major", "the rule promises something else under the same id")
    if _blocks(old) != _blocks(new):
        word = "now blocks" if _blocks(new) else "no longer blocks"
        return Change(path, "minor" if _blocks(new) else "major", f"a violation {word}")
    if old.pattern != new.pattern:
        return Change(path, "major", f"pattern was {old.pattern}, is {new.pattern}")
    if _loosened(old, new):
        return Change(path, "major", f"looser: was {_limits(old)}, is {_limits(new)}")
    if _limits(old) != _limits(new):
        return Change(path, "minor", f"stricter: was {_limits(old)}, is {_limits(new)}")
    return Change(path, "patch", "wording or severity changed")


def _blocks(rule: Rule) -> bool:
    return rule.severity not in ("low", "info")


def _loosened(old: Rule, new: Rule) -> bool:
    if set(new.values) - set(old.values):
        return True
    lower = old.minimum is not None and (new.minimum is None or _less(new.minimum, old.minimum))
    upper = old.maximum is not None and (new.maximum is None or _less(old.maximum, new.maximum))
    return lower or upper


def _less(first: float | str, second: float | str) -> bool:
    if isinstance(first, str) or isinstance(second, str):
        return str(first) < str(second)  # both are UTC text of one form, so this orders them
    return first < second


def _limits(rule: Rule) -> str:
    if rule.values:
        return f"one of {', '.join(sorted(map(str, rule.values)))}"
    return f"{rule.minimum} to {rule.maximum}"


def _freshness_changes(old: Contract, new: Contract) -> Iterator[Change]:
    before, after = old.freshness, new.freshness
    if before == after:
        return
    if before is None:
        yield Change("freshness", "minor", "freshness is now promised")
    elif after is None:
        yield Change("freshness", "major", "freshness is no longer promised")
    else:
        same_time = (before.column, before.clock) == (after.column, after.clock)
        looser = after.sla_ms > before.sla_ms or after.ahead_ms > before.ahead_ms
        message = f"was {before.sla_ms} ms on {before.column}, is {after.sla_ms} ms"
        yield Change("freshness", "major" if looser or not same_time else "minor", message)


def _term_changes(old: Contract, new: Contract) -> Iterator[Change]:
    if old.name != new.name:
        yield Change("source", "major", f"was {old.name}, is {new.name}")
    for name in ("license", "purpose", "format"):
        if getattr(old, name) != getattr(new, name):
            yield Change(name, "major", f"was {getattr(old, name)}, is {getattr(new, name)}")
    if old.on_violation != new.on_violation:
        weaker = ON_VIOLATION.index(new.on_violation) > ON_VIOLATION.index(old.on_violation)
        message = f"was {old.on_violation}, is {new.on_violation}"
        yield Change("on_violation", "major" if weaker else "minor", message)
    for name in ("location", "lineage_anchor", "retention_days"):
        if getattr(old, name) != getattr(new, name):
            yield Change(name, "minor", f"was {getattr(old, name)}, is {getattr(new, name)}")
    for name in _WORDS:
        if getattr(old, name) != getattr(new, name):
            yield Change(name, "patch", f"{name} changed")
