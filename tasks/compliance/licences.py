"""Licences: SPDX expressions, their categories, and whether a policy lets them pass.

Categories come from the offline index of ``license-expression`` (ScanCode's), so nothing is
fetched. Free text of older wheels is translated by a closed table; what is not in it stays unknown.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tasks.policy import LicencePolicy

Ruling = Literal["allowed", "decided", "refused", "undecided", "unknown"]

_FREE_TEXT: Mapping[str, str] = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd 3-clause": "BSD-3-Clause",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "new bsd": "BSD-3-Clause",
    "python software foundation license": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
}
_BUSINESS_SOURCE = re.compile(r"business source license|busl|bsl 1\.1", re.IGNORECASE)


@dataclass(frozen=True)
class Classified:
    """A licence and what is known of it.

    Attributes:
        expression: SPDX expression; empty if it could not be read.
        categories: Categories of the licences in it, sorted.
        ruling: What the policy says.
        reason: Why.
    """

    expression: str
    categories: tuple[str, ...]
    ruling: Ruling
    reason: str

    @property
    def passes(self) -> bool:
        """Whether nothing more is needed."""
        return self.ruling in ("allowed", "decided")


def declared(metadata: Mapping[str, Any], classifiers: Sequence[str]) -> str:
    """Return the SPDX expression an installed distribution declares; empty if it has none.

    Args:
        metadata: ``License-Expression`` and ``License`` of the distribution, where present.
        classifiers: Its classifiers.
    """
    texts = [str(metadata.get("License-Expression") or ""), str(metadata.get("License") or "")]
    prefix = "License :: OSI Approved :: "
    named = [item.removeprefix(prefix) for item in classifiers if item.startswith(prefix)]
    if len(named) == 1:
        texts.append(named[0])
    for text in texts:
        if _BUSINESS_SOURCE.search(text[:200]):
            return "BUSL-1.1"
        plain = _FREE_TEXT.get(text.strip().lower(), text.strip())
        if plain and len(plain) < 300 and normal(plain):
            return normal(plain)
    return ""


def normal(expression: str) -> str:
    """Return an SPDX expression in its normal spelling; empty if it is not valid."""
    import license_expression  # noqa: PLC0415 - loaded only where licences are judged

    try:
        parsed = _licensing().parse(expression, validate=True, strict=True)
    except (license_expression.ExpressionError, AttributeError, TypeError):
        return ""
    return "" if parsed is None else str(parsed.render("{symbol.key}"))


def categories(expression: str) -> tuple[str, ...]:
    """Return the categories of the licences in a valid expression, sorted."""
    index = _categories()
    keys = _licensing().license_keys(expression, unique=True)
    return tuple(sorted({index.get(key, "Unknown") for key in keys}))


def classify(expression: str, component: str, use: str, policy: LicencePolicy) -> Classified:
    """Judge a component's licence for a use.

    Args:
        expression: What is declared; free text is unknown.
        component: Whose licence it is.
        use: ``run-time``, ``weights``, ``data`` or ``evaluation``.
        policy: Which categories pass and what was decided.
    """
    spelled = normal(expression) if expression else ""
    decision = policy.decision(component, spelled or expression, use)
    found = categories(spelled) if spelled else ()
    if decision is not None:
        reason = f"{decision.decision} by {decision.owner} on {decision.decided}: {decision.reason}"
        ruling: Ruling = "decided" if decision.decision == "allowed" else "refused"
        return Classified(spelled or expression, found, ruling, reason)
    if not spelled:
        return Classified("", (), "unknown", f"no SPDX expression: {expression[:80] or 'nothing'}")
    if _passes(spelled, policy.allowed):
        return Classified(spelled, found, "allowed", ", ".join(found))
    reason = f"{', '.join(found)} needs a decision"
    return Classified(spelled, found, "undecided", reason)


def _passes(expression: str, allowed: Sequence[str]) -> bool:
    """Whether a choice among the alternatives exists in which every licence is allowed."""
    index = _categories()
    parsed = _licensing().parse(expression)

    def holds(node: Any) -> bool:
        parts = [holds(item) for item in getattr(node, "args", ())]
        if parts:
            return any(parts) if type(node).__name__ == "OR" else all(parts)
        # An exception only ever adds permissions, so the licence it belongs to decides.
        symbol = getattr(node, "license_symbol", node)
        return index.get(symbol.key, "Unknown") in allowed

    return holds(parsed)


@functools.cache
def _licensing() -> Any:
    import license_expression  # noqa: PLC0415 - loaded only where licences are judged

    return license_expression.get_spdx_licensing()


@functools.cache
def _categories() -> dict[str, str]:
    import license_expression  # noqa: PLC0415 - loaded only where licences are judged

    index: dict[str, str] = {}
    for item in license_expression.get_license_index():
        for key in [item.get("spdx_license_key"), *item.get("other_spdx_license_keys", [])]:
            if key:
                index[key] = item["category"]
    return index
