"""Fills a model card with what training measured."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from typing import Any

from contracts.base.errors import ManifestInvalid


def fill(template: str, values: Mapping[str, Any], *, where: str = "docs/model_card.md") -> str:
    """Return the card with each ``$name`` replaced.

    Args:
        template: The committed card.
        values: Plain values; nested ones are offered as ``outer_inner``, tables as rows of
            Markdown.
        where: The file, for messages.

    Raises:
        ManifestInvalid: If the card asks for something that was not measured.
    """
    try:
        return string.Template(template).substitute(dict(_flat(values)))
    except (KeyError, ValueError) as err:
        raise ManifestInvalid(
            "model card names something that was not measured",
            expected="names of metrics after a dollar sign; $$ for a dollar",
            found=str(err),
            location=where,
            remedy="Correct the card, or let train.py answer with that metric.",
        ) from err


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}_")
        elif isinstance(value, list):
            yield f"{prefix}{name}", "\n".join(_row(item) for item in value)
        else:
            yield f"{prefix}{name}", _text(value)


def _row(item: Any) -> str:
    cells = item.values() if isinstance(item, Mapping) else [item]
    return f"| {' | '.join(_text(cell) for cell in cells)} |"


def _text(value: Any) -> str:
    if value is None:
        return "not defined"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
