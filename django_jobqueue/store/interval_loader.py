"""Reads intervals in each style that a database or a role may ask for by
``IntervalStyle``; psycopg refuses all but one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.abc import Buffer
from psycopg.adapt import Loader

DAY: Final = 86_400.0
DATE: Final = {"Y": 365 * DAY, "M": 30 * DAY, "W": 7 * DAY, "D": DAY}  # as psycopg does
TIME: Final = {"H": 3_600.0, "M": 60.0, "S": 1.0}
WORDS: Final = {
    "year": DATE["Y"],
    "mon": DATE["M"],
    "day": DAY,
    "hour": TIME["H"],
    "min": TIME["M"],
    "sec": TIME["S"],
}
_ISO_PART = re.compile(r"(-?[\d.]+)([A-Z])")
_VERBOSE_PART = re.compile(r"(-?[\d.]+) ([a-z]+?)s?\b")


class AnyStyleLoader(Loader):
    """Of the text of an interval."""

    def load(self, data: Buffer) -> timedelta:
        """The time that PostgreSQL wrote like this, in whatever style."""
        text = bytes(data).decode()
        parts = {"P": _iso, "@": _verbose}.get(text[0], _sql)
        return sum((timedelta(seconds=part) for part in parts(text)), timedelta())


def read_each_style(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """A receiver of ``connection_created``: a connection of Django reads intervals, if
    psycopg would not."""
    if connection.vendor != "postgresql":
        return
    raw = connection.connection
    if raw.info.parameter_status("IntervalStyle") != "postgres":
        raw.adapters.register_loader("interval", AnyStyleLoader)


def _iso(text: str) -> Iterator[float]:
    """``P1Y2M-3DT4H5M6.7S``: iso_8601."""
    date, _, time = text[1:].partition("T")
    for part, units in ((date, DATE), (time, TIME)):
        for number, unit in _ISO_PART.findall(part):
            yield float(number) * units[unit]


def _verbose(text: str) -> Iterator[float]:
    """``@ 1 year 2 mons -3 days 4 hours 5 mins 6.7 secs ago``: postgres_verbose."""
    sign = -1 if text.endswith(" ago") else 1
    for number, word in _VERBOSE_PART.findall(text):
        yield sign * float(number) * WORDS[word]


def _sql(text: str) -> Iterator[float]:
    """``1-2``, ``-3 4:05:06.7`` or ``+1-2 -3 +4:05:06.7``: sql_standard. A sign holds
    until the next one."""
    sign = 1
    for token in text.split():
        if token[0] in "+-":
            sign = -1 if token[0] == "-" else 1
        numbers = token.lstrip("+-")
        if ":" in numbers:
            units, separator = (TIME["H"], TIME["M"], TIME["S"]), ":"
        else:
            units = (DATE["Y"], DATE["M"], 0.0) if "-" in numbers else (DAY, 0.0, 0.0)
            separator = "-"
        for number, unit in zip(numbers.split(separator), units, strict=False):
            yield sign * float(number) * unit
