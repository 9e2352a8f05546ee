"""Findings of the checks of ``jobqueue doctor``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from django_jobqueue.text import numbers

MOST_NAMED: Final = 5


class Level(StrEnum):
    """How a finding is to be taken."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Finding(NamedTuple):
    """The result of one check. ``id`` is stable, for programs."""

    id: str
    level: Level
    text: str
    advice: str = ""


Findings = Iterator[Finding]


def ok(id: str, text: str) -> Finding:
    """Something is right."""
    return Finding(id, Level.OK, text)


def note(id: str, text: str, advice: str = "") -> Finding:
    """Something to know."""
    return Finding(id, Level.NOTE, text, advice)


def problem(id: str, text: str, advice: str = "") -> Finding:
    """Something to mend."""
    return Finding(id, Level.PROBLEM, text, advice)


def shorten_list(names: Sequence[str]) -> str:
    """The first names, and how many there are beside them."""
    shown = ", ".join(names[:MOST_NAMED])
    left = len(names) - MOST_NAMED
    return f"{shown} and {numbers.number(left)} more" if left > 0 else shown
