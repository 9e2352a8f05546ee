"""Parses the values of a search: numbers, durations, moments, ids, values of data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from django_jobqueue.search.errors import SearchError
from django_jobqueue.search.selection import ValueType
from django_jobqueue.search.tokens import Token
from django_jobqueue.text import timezones
from django_jobqueue.text.durations import duration_of

Comparison = tuple[str, Any]  # an operator and a value

RANGE: Final = ".."
DAY: Final = timedelta(days=1)
MOMENTS: Final = "2026-11-20, 2026-11-20T14:30, today, -2h"
DURATIONS: Final = "500ms, 20s, 1h30m"

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MOMENT: Final = re.compile(
    r"[0-9-]{10}[T ][0-9]{2}:[0-9]{2}(?P<second>:[0-9]{2}(?P<fraction>\.[0-9]+)?)?"
    r"(Z|[+-][0-9:]{2,5})?"
)
_OFFSET: Final = re.compile(r"[+-](?=[0-9])")
_WORDS: Final = {"true": True, "false": False, "null": None}
_FLAGS: Final = {"yes": True, "true": True, "no": False, "false": False}


def comparisons(
    value_type: ValueType, token: Token, now: datetime
) -> Sequence[Comparison]:
    """The comparisons that a value of this kind means. Raises SearchError."""
    if value_type in _ORDERED:
        return _ordered(value_type, token, now)
    if token.operator != "=":
        error = _("“%(name)s:” cannot be compared by %(operator)s.")
        raise SearchError(error % {"name": token.name, "operator": token.operator})
    return [("=", _EQUAL[value_type](token))]


def _ordered(value_type: ValueType, token: Token, now: datetime) -> list[Comparison]:
    """With an operator, or from one value to another."""
    read = _ORDERED[value_type]
    first, is_range, last = token.value.partition(RANGE)
    if is_range and token.operator == "=":
        if not first or not last:
            error = _("“%(text)s” has no upper end; write > or <.")
            raise SearchError(error % {"text": token.text})
        (start, _start), (_end, end) = read(first, now), read(last, now)
        return [(">=", start), _until(value_type, end)]
    start, end = read(token.value, now)
    return _compared(value_type, token, start, end)


def _compared(
    value_type: ValueType, token: Token, start: Any, end: Any
) -> list[Comparison]:
    """A value that is a span of time is compared by its ends."""
    if value_type is ValueType.NUMBER or (start == end and token.operator != "="):
        return [(token.operator, start)]
    if start == end:
        error = _("Write “%(name)s:>%(value)s” or “%(name)s:<%(value)s”.")
        raise SearchError(error % {"name": token.name, "value": token.value})
    return {
        "=": [(">=", start), ("<", end)],
        ">": [(">=", end)],
        ">=": [(">=", start)],
        "<": [("<", start)],
        "<=": [("<", end)],
    }[token.operator]


def _until(value_type: ValueType, end: Any) -> Comparison:
    return ("<" if value_type is ValueType.MOMENT else "<=", end)


def _number(text: str, now: datetime) -> tuple[int, int]:
    if not _NUMBER.fullmatch(text):
        raise SearchError(_("“%(text)s” is not a whole number.") % {"text": text})
    return int(text), int(text)


def _milliseconds(text: str, now: datetime) -> tuple[int, int]:
    length = duration_of(text)
    if length is None:
        error = _("“%(text)s” is not a duration. Write one like these: %(examples)s.")
        raise SearchError(error % {"text": text, "examples": DURATIONS})
    whole = length // timedelta(milliseconds=1)
    return whole, whole


def _moment(text: str, now: datetime) -> tuple[datetime, datetime]:
    """From when to when it is: a day, a minute, a second, or one moment."""
    try:
        return _days(text, now) or _relative(text, now) or _written(text)
    except (ValueError, OverflowError):
        error = _("“%(text)s” is not a time. Write one like these: %(examples)s.")
        raise SearchError(error % {"text": text, "examples": MOMENTS}) from None


def _days(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    today = timezones.local(now).date()
    named = {"today": today, "yesterday": today - DAY}
    day = named.get(text.lower())
    if day is None and len(text) == len("2026-11-20"):
        day = date.fromisoformat(text)
    return None if day is None else (_midnight(day), _midnight(day + DAY))


def _relative(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    if text.lower() == "now":
        return now, now
    length = duration_of(text[1:]) if _OFFSET.match(text) else None
    if length is None:
        return None
    at = now - length if text[0] == "-" else now + length
    return at, at


def _written(text: str) -> tuple[datetime, datetime]:
    """A date and a time, to the minute, to the second, or exact."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    at = datetime.fromisoformat(text)
    at = timezones.aware(at)
    at.astimezone(UTC)  # raises at the ends of time
    if match["fraction"]:
        return at, at
    return at, at + timedelta(seconds=1 if match["second"] else 60)


def _midnight(day: date) -> datetime:
    return timezones.aware(datetime.combine(day, datetime.min.time()))


def _text(token: Token) -> str:
    return token.value


def _id(token: Token) -> UUID:
    try:
        return UUID(token.value.strip().removeprefix("job_"))
    except ValueError:
        error = _("“%(text)s” is not a job ID; “%(name)s:” needs a whole one.")
        raise SearchError(error % {"text": token.value, "name": token.name}) from None


def _flag(token: Token) -> bool:
    try:
        return _FLAGS[token.value.lower()]
    except KeyError:
        error = _("Write “%(name)s:yes” or “%(name)s:no”.")
        raise SearchError(error % {"name": token.name}) from None


def _json(token: Token) -> Any:
    """A number, true, false or null; anything else, and whatever is quoted, is text."""
    value = token.value
    if token.is_quoted:
        return value
    if value in _WORDS:
        return _WORDS[value]
    match = _JSON_NUMBER.fullmatch(value)
    if match is None:
        return value
    if match.group(1) is None and match.group(2) is None:
        return int(value)
    number = float(value)
    if not math.isfinite(number):
        raise SearchError(_("“%(text)s” is too large a number.") % {"text": value})
    return number


_ORDERED: Final[dict[ValueType, Callable[[str, datetime], tuple[Any, Any]]]] = {
    ValueType.NUMBER: _number,
    ValueType.MILLISECONDS: _milliseconds,
    ValueType.MOMENT: _moment,
}
_EQUAL: Final[dict[ValueType, Callable[[Token], Any]]] = {
    ValueType.TEXT: _text,
    ValueType.ID: _id,
    ValueType.FLAG: _flag,
    ValueType.JSON: _json,
}
