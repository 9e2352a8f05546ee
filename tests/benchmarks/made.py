"""Results of runs that were never made."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.results import Entry, Results


def results(quick: bool = False) -> Results:
    """Of a run without a trial."""
    return Results(
        date="2026-01-02",
        machine={"cores": "2"},
        versions={"Django": "6.1"},
        server={"server_version": "18.4", "fsync": "on"},
        quick=quick,
        rounds=3,
        seconds=600.0,
    )


def add(
    to: Results, case: str, system: str, *rounds: Mapping[str, float | None]
) -> None:
    """The trials of a system in a case, which is written ``drain/one``."""
    question, _, name = case.partition("/")
    to.entries += [
        Entry(question=question, case=name, system=system, round=i, values=values)
        for i, values in enumerate(rounds)
    ]
