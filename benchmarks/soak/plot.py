"""Curves over time as one SVG, readable on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

Points = Sequence[tuple[float, float]]

WIDTH: Final = 760
HEIGHT: Final = 150  # of a panel's field
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 30, 30  # around the field
LINES: Final = 4  # across the field, at most
COLOURS: Final = ("#2a78d6", "#d1652a", "#2f9e5f", "#9457c2")
STYLE: Final = """
text { font: 12px system-ui, sans-serif; fill: #333; }
.title { font-weight: 600; }
.rule { stroke: #8886; stroke-width: 1; }
.curve { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
@media (prefers-color-scheme: dark) { text { fill: #ccc; } }
"""


@dataclass(frozen=True)
class Panel:
    """A field with one unit and some curves; x is in minutes."""

    title: str
    curves: Mapping[str, Points]


def svg(panels: Sequence[Panel]) -> str:
    """The panels below one another."""
    step = TOP + HEIGHT + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
        f'{step * len(panels)}" role="img">',
        f"<style>{STYLE}</style>",
    ]
    for index, panel in enumerate(panels):
        parts.append(f'<g transform="translate({LEFT} {index * step + TOP})">')
        parts += _panel(panel)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def steps(highest: float) -> list[float]:
    """Round values from 0 to the first one that is not below the highest."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / LINES
    power = 10 ** math.floor(math.log10(rough))
    step = next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= rough)
    return [i * step for i in range(math.ceil(highest / step - 1e-9) + 1)]


def _panel(panel: Panel) -> Iterator[str]:
    points = [point for curve in panel.curves.values() for point in curve]
    across = steps(max((y for _, y in points), default=0.0))
    along = steps(max((x for x, _ in points), default=0.0))
    right, top = max((x for x, _ in points), default=1.0) or 1.0, across[-1]
    width = WIDTH - LEFT - RIGHT
    yield f'<text class="title" x="0" y="-10">{escape(panel.title)}</text>'
    for value in across:
        y = HEIGHT * (1 - value / top)
        yield f'<line class="rule" x1="0" x2="{width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="-8" y="{y + 4:.1f}" text-anchor="end">{value:,.4g}</text>'
    for value in along:
        if value <= right:
            x = width * value / right
            yield (
                f'<text x="{x:.1f}" y="{HEIGHT + 18}" text-anchor="middle">'
                f"{value:,.4g} min</text>"
            )
    for curve, colour in zip(panel.curves.values(), COLOURS, strict=False):
        path = " ".join(
            f"{width * x / right:.1f},{HEIGHT * (1 - y / top):.1f}" for x, y in curve
        )
        yield f'<polyline class="curve" stroke="{colour}" points="{path}"/>'
    yield from _names(panel, width)


def _names(panel: Panel, width: float) -> Iterator[str]:
    """The names of the curves in their colours, from the right."""
    if len(panel.curves) < 2:
        return
    x = width
    named = list(zip(panel.curves, COLOURS, strict=False))
    for name, colour in reversed(named):
        yield (
            f'<text x="{x}" y="-10" text-anchor="end" style="fill: {colour}">'
            f"{escape(name)}</text>"
        )
        x -= 8 * len(name) + 14
