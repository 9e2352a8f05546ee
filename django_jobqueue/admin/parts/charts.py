"""Charts as shapes that a template draws: stacked bars, lines and sparklines.

Coordinates are text, so that no locale writes them otherwise. Text is not part of the
drawings, which are stretched to the width of the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from typing import Final, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString

HEIGHT: Final = 100.0
STEP: Final = 10.0  # from bar to bar
BAR: Final = 8.0  # the width of one
LEAST: Final = 1.5  # height of what is not zero, so that it is seen
SPARK_HEIGHT: Final = 20.0
DECADE: Final = 10.0


class Part(NamedTuple):
    """A part of a bar."""

    style: str  # class of the shape
    y: str
    height: str


class Bar(NamedTuple):
    """A bar of parts, from the base up, and what it says when pointed at."""

    x: str
    parts: Sequence[Part]
    title: str


class Line(NamedTuple):
    """A line with gaps, and the dots of what stands alone."""

    style: str
    path: str


class Mark(NamedTuple):
    """A moment that something happened at: an upright line."""

    style: str
    x: str
    title: str


class Chart(NamedTuple):
    """A drawing with the labels of its axes, greatest and first one first."""

    width: str
    summary: str
    y_labels: Sequence[str]
    x_labels: Sequence[str]
    bars: Sequence[Bar] = ()
    lines: Sequence[Line] = ()
    marks: Sequence[Mark] = ()

    @property
    def rules(self) -> list[str]:
        """Where the horizontal lines of the labels are."""
        gaps = max(1, len(self.y_labels) - 1)
        return [_text(HEIGHT * place / gaps) for place in range(gaps + 1)]


class Spark(NamedTuple):
    """A tiny chart: all of it, and the part that failed."""

    width: str
    all: str  # path
    failed: str
    summary: str


def bars(
    columns: Sequence[tuple[str, Sequence[tuple[str, int]]] | None], most: float
) -> list[Bar]:
    """A bar for each column: its title, and kinds and counts from the base up. None is
    a gap. ``most`` is the top of the axis."""
    return [
        Bar(_text(index * STEP + 1), list(_parts(column[1], most)), column[0])
        for index, column in enumerate(columns)
        if column is not None
    ]


class Linear:
    """An axis from zero up."""

    def __init__(self, most: float) -> None:
        self.most = most

    def y(self, value: float) -> float:
        """The place of a value."""
        return HEIGHT * (1 - min(1.0, value / self.most))


def line(style: str, values: Sequence[float | None], scale: Decades | Linear) -> Line:
    """A line through these values, with a gap where a value is None."""
    moves: list[str] = []
    before = False
    for index, value in enumerate(values):
        if value is not None:
            x, y = _text(index * STEP + STEP / 2), _text(scale.y(value))
            moves.append(f"{'L' if before else 'M'}{x} {y}h0")
        before = value is not None
    return Line(style, "".join(moves))


def mark(style: str, place: float, columns: int, title: str) -> Mark:
    """A line where ``place``, 0 to 1, is between the first column and the last."""
    return Mark(style, _text(place * columns * STEP), title)


def width_of(columns: int) -> str:
    """The width of a drawing with so many columns."""
    return _text(columns * STEP)


def spark(columns: Sequence[Sequence[int]], summary: str, most: int = 0) -> Spark:
    """The sparkline of pairs: how many finished, and how many of them failed. ``most``
    is the top of a scale that several share."""
    most = max([1, most, *(all for all, failed in columns)])
    return Spark(
        width=width_of(len(columns)),
        all=_spark([all for all, failed in columns], most),
        failed=_spark([failed for all, failed in columns], most),
        summary=summary,
    )


def top(most: float) -> int:
    """A round number that is not less: 1, 2 or 5 with zeros; at least 2."""
    if most <= 2:
        return 2
    unit: float = 10 ** floor(log10(most))
    return int(next(unit * n for n in (1, 2, 5, 10) if unit * n >= most))


class Decades:
    """A logarithmic axis over whole powers of ten."""

    def __init__(self, values: Iterable[float | None]) -> None:
        positive = [value for value in values if value]
        self.low = floor(log10(min(positive, default=1.0)) + 1e-9)
        self.high = max(ceil(log10(max(positive, default=1.0)) - 1e-9), self.low + 1)

    @property
    def marks(self) -> list[float]:
        """The powers of ten, greatest first."""
        return [DECADE**n for n in range(self.high, self.low - 1, -1)]

    def y(self, value: float) -> float:
        """The place of a value."""
        share = (log10(max(value, DECADE**self.low)) - self.low) / (
            self.high - self.low
        )
        return HEIGHT * (1 - min(1.0, share))


def _parts(counts: Sequence[tuple[str, int]], most: float) -> Iterable[Part]:
    base = HEIGHT
    for style, count in counts:
        if count:
            height = min(base, max(LEAST, HEIGHT * count / most))
            base -= height
            yield Part(style, _text(base), _text(height))


def _spark(counts: Sequence[int], most: int) -> str:
    # A page has a hundred of these, which were a third of its size: each bar goes up
    # from the base, to a whole pixel, and back down.
    scale, base = SPARK_HEIGHT / most, f"{SPARK_HEIGHT:.0f}"
    down = f"h{BAR:.0f}V{base}"
    return "".join(
        f"M{index * STEP + 1:.0f} {base}"
        f"V{SPARK_HEIGHT - max(1.0, scale * count):.0f}{down}"
        for index, count in enumerate(counts)
        if count
    )


def _text(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def sparkline(spark: Spark, style: str = "retried") -> SafeString:
    """A tiny drawing, whose summary is its text; ``style`` is of what did not fail."""
    return format_html(
        '<svg class="jq-spark" role="img" viewBox="0 0 {} 20" '
        'preserveAspectRatio="none"><title>{}</title>'
        '<path class="jq-is-{}" d="{}"/><path class="jq-is-failed" d="{}"/></svg>',
        spark.width,
        spark.summary,
        style,
        spark.all,
        spark.failed,
    )
