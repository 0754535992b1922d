"""Plots as inline SVG: equal bytes for equal data, colours taken from the page's style sheet.

The one door of matplotlib. Figures are drawn without pyplot, so no global state is kept.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from tasks.pages.document import CalibrationPoint, ErrorBar, Interval, LatencySeries

# Stand-ins that the page's style sheet replaces, so that one SVG serves light and dark.
_COLOURS = {
    "#010101": "var(--ink)",
    "#020202": "var(--quiet)",
    "#030303": "var(--line)",
    "#040404": "var(--accent)",
    "#050505": "var(--second)",
    "#060606": "var(--fail)",
    "#070707": "var(--card)",
}
_INK, _QUIET, _LINE, _ACCENT, _SECOND, _FAIL, _CARD = _COLOURS
_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.color": _INK,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _QUIET,
    "axes.axisbelow": True,
    "xtick.color": _LINE,
    "ytick.color": _LINE,
    "xtick.labelcolor": _QUIET,
    "ytick.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _LINE,
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.labelcolor": _INK,
}
_WIDTH = 6.4


def importance(rows: Sequence[Interval]) -> str:
    """Draw importance with intervals, the most important feature on top."""

    def draw(axes: Any) -> None:
        places = range(len(rows), 0, -1)
        values = [row.value for row in rows]
        axes.hlines(places, [row.low for row in rows], [row.high for row in rows], _ACCENT, lw=2.2)
        axes.plot(values, list(places), "o", color=_ACCENT, ms=5.5)
        axes.axvline(0, color=_QUIET, lw=0.9)
        axes.set_yticks(list(places), [_shorten(row.name) for row in rows])
        axes.set_ylim(0.4, len(rows) + 0.6)
        axes.set_xlabel("mean change of the answer when the input is shuffled")
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0)

    return _draw("importance", 0.9 + 0.27 * len(rows), draw)


def errors(rows: Sequence[ErrorBar]) -> str:
    """Draw each output's error as a bar against its limit, on a logarithmic axis."""
    floor = min([row.error for row in rows if row.error > 0] + [row.limit for row in rows]) / 10
    floor = floor or 1e-12

    def draw(axes: Any) -> None:
        places = list(range(len(rows), 0, -1))
        widths = [max(row.error, floor * 1.2) - floor for row in rows]
        colours = [_ACCENT if row.error <= row.limit else _FAIL for row in rows]
        axes.barh(places, widths, left=floor, height=0.42, color=colours)
        for place, row in zip(places, rows, strict=True):
            axes.vlines(row.limit, place - 0.36, place + 0.36, _INK, lw=2)
        axes.plot([], [], "|", color=_INK, ms=11, mew=2, label="limit")
        axes.set_xscale("log")
        axes.set_xlim(floor, max([row.error for row in rows] + [row.limit for row in rows]) * 3)
        axes.set_yticks(places, [_shorten(row.name) for row in rows])
        axes.set_ylim(0.4, len(rows) + 0.6)
        axes.set_xlabel("largest error against the reference")
        axes.grid(axis="x")
        axes.tick_params(length=0, which="both")
        axes.spines["left"].set_visible(False)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderpad=0)

    return _draw("errors", 1.25 + 0.36 * len(rows), draw)


def latencies(series: Sequence[LatencySeries]) -> str:
    """Draw latency percentiles, one line a measurement."""
    names = sorted({place for line in series for place, _ in line.percentiles})

    def draw(axes: Any) -> None:
        styles = [(_ACCENT, "o", "-"), (_SECOND, "s", "--"), (_QUIET, "^", ":"), (_INK, "D", "-.")]
        for index, line in enumerate(series):
            colour, marker, dash = styles[index % len(styles)]
            places = [names.index(place) for place, _ in line.percentiles]
            values = [value for _, value in line.percentiles]
            axes.plot(
                places, values, dash, marker=marker, color=colour, lw=2, ms=5, label=line.name
            )
            axes.annotate(
                f"{values[-1]:.3g} ms", (places[-1], values[-1]), xytext=(7, 0),
                textcoords="offset points", va="center", fontsize=9, color=_INK,
            )  # fmt: skip
        axes.set_xticks(range(len(names)), [f"p{name:g}" for name in names])
        axes.set_xlim(-0.25, len(names) - 0.25)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("milliseconds")
        axes.grid(axis="y")
        axes.tick_params(length=0)
        axes.legend(loc="upper left", borderpad=0)

    return _draw("latencies", 3.0, draw)


def calibration(points: Sequence[CalibrationPoint]) -> str:
    """Draw predicted against observed frequency; the size of a point follows its rows."""
    largest = max(point.count for point in points) or 1
    end = max([point.predicted for point in points] + [point.observed for point in points])
    end = min(1.0, end * 1.12 + 0.02)

    def draw(axes: Any) -> None:
        axes.plot([0, end], [0, end], "--", color=_QUIET, lw=1.2, label="perfect")
        predicted = [point.predicted for point in points]
        observed = [point.observed for point in points]
        sizes = [18 + 90 * point.count / largest for point in points]
        axes.plot(predicted, observed, color=_ACCENT, lw=1.6)
        axes.scatter(predicted, observed, sizes, color=_ACCENT, edgecolors=_CARD, zorder=3)
        axes.set_xlim(0, end)
        axes.set_ylim(0, end)
        axes.set_xlabel("predicted probability")
        axes.set_ylabel("observed frequency")
        axes.grid()
        axes.tick_params(length=0)
        axes.legend(loc="upper left", borderpad=0)

    return _draw("calibration", 3.2, draw)


def _draw(name: str, height: float, draw: Callable[[Any], None]) -> str:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context({**_STYLE, "svg.hashsalt": f"caisson-{name}"}):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        draw(axes)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(stream.getvalue(), name)


def _inline(svg: str, name: str) -> str:
    """Cut the file's head, give ids a prefix, and hand colours over to the style sheet."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"|<svg height="[^"]*" ', r"<svg \1", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg)
    for stand_in, variable in _COLOURS.items():
        svg = svg.replace(stand_in, variable)
    svg = re.sub(r"font(?:-family)?: ?[^;\"]*'DejaVu Sans'[^;\"]*", _font, svg)
    return svg.replace(
        "<svg ", f'<svg class="plot" role="img" aria-labelledby="caption-{name}" ', 1
    ).strip()


def _font(match: re.Match[str]) -> str:
    """Keep a text's size, and let the page choose the face."""
    size = re.search(r"([\d.]+px)", match[0])
    return f"font-size: {size[1]}" if size else "font-style: normal"


def _shorten(name: str) -> str:
    return name if len(name) <= 30 else f"{name[:29]}…"
