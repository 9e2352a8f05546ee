"""Results as Markdown: medians, ranges, and how many times better we are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Final

from benchmarks.figures import Summary, number, spread
from benchmarks.questions.base import Better, Case, Question
from benchmarks.results import Results
from benchmarks.systems import OURS
from benchmarks.systems.base import System

NOTHING: Final = "–"  # a system that has no such figure
SAME: Final = 1.05  # within this factor two medians count as the same
WIDTH: Final = 115  # characters of a line of prose


def line(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def prose(text: str, indent: str = "") -> str:
    """A paragraph; what follows its first line is indented."""
    return fill(
        text,
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(question: Question, case: Case, results: Results) -> list[str]:
    """The table of a case; empty if it was not measured."""
    rows = [
        _row(question, case, system, results) for system in took_part(case, results)
    ]
    rows = [row for row in rows if row]
    if not rows:
        return []
    titles = ["", *(column.title for column in case.columns)]
    if len(case.systems) > 1:
        titles.append("django_jobqueue is")
    rule = ["---", *["---:"] * (len(titles) - 1)]
    return [line(cells) for cells in (titles, rule, *rows)]


def took_part(case: Case, results: Results) -> list[System]:
    """The systems of the case that were measured."""
    seen = {entry.system for entry in results.entries}
    return [system for system in case.systems if system.name in seen]


def times_better(
    question: Question, case: Case, other: System, results: Results
) -> float | None:
    """How many times better we are than the other one, by the figure that leads.

    None if there is nothing to compare, because one of the two has no such figure.
    """
    where = f"{question.name}/{case.name}"
    ours = results.median(where, OURS.name, case.leads)
    theirs = results.median(where, other.name, case.leads)
    if not ours or not theirs:
        return None
    return ours / theirs if case.better is Better.HIGH else theirs / ours


def in_words(times: float) -> str:
    """``2.1 × better``, ``1.3 × worse``, or about the same."""
    if 1 / SAME <= times <= SAME:
        return "about the same"
    return f"{number(times)} × better" if times >= 1 else f"{number(1 / times)} × worse"


def _row(
    question: Question, case: Case, system: System, results: Results
) -> Sequence[str]:
    where = f"{question.name}/{case.name}"
    cells = [
        _cell(results.values(where, system.name, column.key), case.never)
        for column in case.columns
    ]
    if all(cell == NOTHING for cell in cells):
        return ()
    return [system.name, *cells, *_comparison(question, case, system, results)]


def _comparison(
    question: Question, case: Case, system: System, results: Results
) -> Iterator[str]:
    if len(case.systems) > 1:
        times = times_better(question, case, system, results)
        yield "" if system is OURS or times is None else in_words(times)


def _cell(values: Sequence[float | None], never: str) -> str:
    if not values:
        return NOTHING
    known = [value for value in values if value is not None]
    if not known:
        return never
    text = spread(Summary.of(known))
    missed = len(values) - len(known)
    return f"{text}; {missed} × {never}" if missed else text
