"""Results as Markdown: medians, ranges, and how many times better we are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Final

from benchmarks.figures import Summary, number, percentile, spread
from benchmarks.questions import QUESTIONS
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


def overview(question: Question, results: Results) -> list[str]:
    """One table of what leads in each case that has several systems, by medians.

    In brackets: how many times better we are than the system of the row.
    """
    shown = [
        (case, key)
        for case in question.cases
        if len(case.systems) > 1 and table(question, case, results)
        for key in (case.leads, *case.also)
    ]
    if not shown:
        return []
    systems = dict.fromkeys(
        system for case, _ in shown for system in took_part(case, results)
    )
    rows = [
        [s.name, *(_brief(question, case, s, key, results) for case, key in shown)]
        for s in systems
    ]
    titles = ["", *(_heading(case, key) for case, key in shown)]
    rule = ["---", *["---:"] * len(shown)]
    return [
        line(cells)
        for cells in (titles, rule, *rows)
        if any(cell != NOTHING for cell in cells[1:])
    ]


def ours_alone(question: Question, results: Results) -> str:
    """The cases in which only we were measured, in words; empty if there are none."""
    parts = []
    for case in question.cases:
        where = f"{question.name}/{case.name}"
        found = results.median(where, OURS.name, case.leads)
        if len(case.systems) == 1 and found is not None:
            (title,) = (c.title for c in case.columns if c.key == case.leads)
            parts.append(f"{case.title}: {number(found)} {title}.")
    return " ".join(["Only django_jobqueue:", *parts]) if parts else ""


def rounds_apart(results: Results) -> float:
    """Of the figures that lead, nine in ten have rounds that are not farther apart
    than this share of their median."""
    found = []
    for question in QUESTIONS:
        for case in question.cases:
            for system in took_part(case, results):
                where = f"{question.name}/{case.name}"
                summary = results.summary(where, system.name, case.leads)
                if summary is not None and summary.median:
                    apart = summary.highest - summary.lowest
                    found.append(apart / summary.median)
    return percentile(found, 90) if found else 0.0


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


def _heading(case: Case, key: str) -> str:
    (title,) = (column.title for column in case.columns if column.key == key)
    return f"{case.title}: {title}" if key == case.leads else title


def _brief(
    question: Question, case: Case, system: System, key: str, results: Results
) -> str:
    """A median, and behind one that leads how many times better we are."""
    where = f"{question.name}/{case.name}"
    values = results.values(where, system.name, key)
    median = results.median(where, system.name, key)
    if median is None:
        return case.never if values and values == [None] * len(values) else NOTHING
    times = times_better(question, case, system, results)
    if system is OURS or key != case.leads or times is None:
        return number(median)
    return f"{number(median)} ({number(times)}×)"


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
