"""The page of the documentation: ``page.md``, filled with the results of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from string import Template
from typing import Final

from benchmarks import fairness, feature_costs, fleet, lanes, limits
from benchmarks.admin_review import page as admin_review
from benchmarks.figures import number
from benchmarks.questions import QUESTIONS
from benchmarks.questions.base import Aim, Case, Question
from benchmarks.results import Results
from benchmarks.soak.page import section
from benchmarks.systems import ALL, OURS
from benchmarks.tables import (
    NOTHING,
    in_words,
    line,
    ours_alone,
    overview,
    prose,
    rounds_apart,
    table,
    times_better,
    took_part,
)

TEMPLATE: Final = Path(__file__).with_name("page.md")
NONE: Final = "Nothing."
NOT_MEASURED: Final = "Not measured in this run."
UNEXPLAINED: Final = "Why is not known."


def page(results: Results) -> str:
    """The whole page."""
    return Template(TEMPLATE.read_text()).substitute(
        admin=admin_review.section(),
        aims=_reached(results),
        missed=_list(_missed(results)),
        apart=f"{100 * rounds_apart(results):.0f}",
        fairness=fairness.section(),
        features=feature_costs.section(),
        fleet=fleet.section(),
        in_short=_in_short(results),
        lanes=lanes.section(),
        limits=limits.section(),
        questions="\n\n".join(_section(q, results) for q in QUESTIONS),
        left_out=_list(_left_out(results)),
        made_with=_made_with(results),
        settings=_list(
            f"**{system.name}:** {system.settings} It keeps {system.keeps}."
            for system in ALL
        ),
        soak=section(),
        minutes=max(1, round(results.seconds / 60)),
    )


def tables(results: Results) -> str:
    """The tables alone, for the terminal."""
    parts = []
    for question in QUESTIONS:
        for case in question.cases:
            rows = table(question, case, results)
            if rows:
                parts.append(f"{question.title}: {case.title}\n\n" + "\n".join(rows))
    if not results.quick:
        parts.append(_aims(results))
    return "\n\n".join(parts)


def _section(question: Question, results: Results) -> str:
    parts = [f"## {question.title}", prose(question.asked)]
    rows, alone = overview(question, results), ours_alone(question, results)
    if rows:
        parts.append("\n".join(rows))
    if alone:
        parts.append(prose(alone))
    if not rows and not alone:
        parts.append(NOT_MEASURED)
    return "\n\n".join([*parts, prose(question.why)])


def _aims(results: Results) -> str:
    """All that we aim at, and whether it was reached."""
    rows = [
        line(("", "what we aim at", "measured", "")),
        line(("---", "---", "---:", "---")),
    ]
    rows += [
        line((question.title, aim.text, *_verdict(aim, figure)))
        for question, aim, figure in _measured(results)
    ]
    return "\n".join(rows)


def _measured(results: Results) -> Iterator[tuple[Question, Aim, float | None]]:
    """All aims; None for what was not measured."""
    for question in QUESTIONS:
        for aim in question.aims:
            yield question, aim, aim.figure(results)


def _verdict(aim: Aim, figure: float | None) -> tuple[str, str]:
    if figure is None:
        return NOTHING, "not measured"
    return number(figure), "reached" if aim.is_reached(figure) else "**not reached**"


def _reached(results: Results) -> str:
    """How many aims were reached."""
    figures = [(aim, figure) for _, aim, figure in _measured(results)]
    reached = sum(f is not None and aim.is_reached(f) for aim, f in figures)
    unknown = sum(figure is None for _, figure in figures)
    rest = f"; {unknown} were not measured" if unknown else ""
    return f"{reached} of {len(figures)} targets were reached{rest}."


def _missed(results: Results) -> list[str]:
    """What was not reached, and why."""
    return [
        f"**{question.title}. {aim.text}:** {number(figure)}. "
        f"{aim.reason or UNEXPLAINED}"
        for question, aim, figure in _measured(results)
        if figure is not None and not aim.is_reached(figure)
    ]


def _in_short(results: Results) -> str:
    rows = [
        line(("", OURS.name, "best other one", f"{OURS.name} is")),
        line(("---", "---:", "---:", "---:")),
    ]
    for question in QUESTIONS:
        for case in question.cases:
            where = f"{question.name}/{case.name}"
            times = _comparisons(question, case, results)
            if times:
                best = min(times, key=lambda name: times[name])
                ours, theirs = (
                    number(results.median(where, name, case.leads) or 0)
                    for name in (OURS.name, best)
                )
                cells = (_what(question, case), ours, f"{theirs} ({best})")
                verdict = in_words(times[best]).replace("worse", "**worse**")
                rows.append(line((*cells, verdict)))
    return "\n".join(rows)


def _left_out(results: Results) -> Iterator[str]:
    """The systems that could not be run, and the trials that came to nothing."""
    for name, what in results.left_out.items():
        yield f"{name}: {what}."
    for trial in results.failed:
        yield f"failed: {trial}."


def _comparisons(question: Question, case: Case, results: Results) -> dict[str, float]:
    """How many times better we are than each of the others that can be compared."""
    times = {
        system.name: times_better(question, case, system, results)
        for system in took_part(case, results)
        if system is not OURS
    }
    return {name: value for name, value in times.items() if value is not None}


def _what(question: Question, case: Case) -> str:
    """The leading figure of a case, in words."""
    (figure,) = (column.title for column in case.columns if column.key == case.leads)
    return f"{question.title}, {case.title[0].lower()}{case.title[1:]} ({figure})"


def _made_with(results: Results) -> str:
    server = dict(results.server)
    facts = {
        "date": results.date,
        **results.machine,
        "PostgreSQL": server.pop("server_version"),
        **results.versions,
        **{f"`{name}`": value for name, value in server.items()},
        "rounds": f"{results.rounds} at most",
    }
    return prose("; ".join(f"{name}: {value}" for name, value in facts.items()) + ".")


def _list(items: Iterable[str]) -> str:
    return "\n".join(prose(f"- {item}", "  ") for item in items) or NONE
