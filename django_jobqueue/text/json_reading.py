"""The one reader of JSON that comes from a row: it never raises."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final

UNREADABLE: Final = "Python cannot read this value: see it with SQL."
DEEPEST: Final = 200  # levels; of results, those of data have fewer
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')


def read_json(text: str | bytes, number: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text of the database, for whoever shows, copies or counts it.

    PostgreSQL keeps what Python does not read, and plain SQL may have written it. A
    number that has too many digits is read as a string of these, and a value that is
    nested too deeply as ``UNREADABLE``: its text may have secrets. No handler is called
    with these: an attempt reads strictly, and fails. ``number`` reads numbers by their
    digits.
    """
    if isinstance(text, bytes):
        text = text.decode()
    if _is_deep(text):
        return UNREADABLE
    try:
        return json.loads(
            text, parse_int=number or _integer, parse_float=number or _float
        )
    except (ValueError, RecursionError):
        return UNREADABLE


def object_of(text: str | None) -> dict[str, Any] | None:
    """The object that a JSON text of the database is; None if it is none."""
    value = None if text is None else read_json(text)
    return value if isinstance(value, dict) else None


def repeated_key(pairs: Sequence[tuple[str, Any]]) -> str | None:
    """The first key of an object that is there twice."""
    counts = Counter(key for key, _value in pairs)
    return next((key for key, count in counts.items() if count > 1), None)


def _integer(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # sys.set_int_max_str_digits()
        return digits


def _float(digits: str) -> float | str:
    number = float(digits)
    return number if isfinite(number) else digits


def _is_deep(text: str) -> bool:
    if text.count("{") + text.count("[") <= DEEPEST:
        return False
    depth = 0
    for match in _TOKENS.finditer(text):
        token = match[0]
        if token in "[{":
            depth += 1
            if depth > DEEPEST:
                return True
        elif token in "]}":
            depth -= 1
    return False
