"""JSON from jobs, read and written so that every number stays as PostgreSQL has it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from django_jobqueue.text.redaction import mask_json

STEP: Final = "  "


class Number(str):
    """A number, by its digits: a float would lose some of them."""

    __slots__ = ()


class Unreadable:
    """In place of a JSON value that Python cannot read, or that is too large."""


def parsed(text: str) -> Any:
    """The value of this text, with its numbers as ``Number``; ``Unreadable`` if it is
    nested too deeply, which no enqueue lets through but plain SQL does."""
    try:
        return json.loads(text, parse_int=Number, parse_float=Number)
    except RecursionError:
        return Unreadable()


def masked(value: Any, sensitive: Iterable[str], secrets: Collection[str] = ()) -> Any:
    """The same value without its secrets: by key, by what texts look like, and
    ``secrets``, under whatever key they stand."""
    return mask_json(value, sensitive, secrets)


def written(value: Any) -> str:
    """The text of a value that ``parsed`` read, a line for each key and item."""
    return "".join(_written(value, "\n"))


def scalar(value: Any) -> str:
    """The text of a value that has no values inside."""
    if isinstance(value, Number):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _written(value: Any, line: str) -> Iterator[str]:
    """``line`` begins a line as deep as this value."""
    inner = line + STEP
    if isinstance(value, dict) and value:
        for number, (key, item) in enumerate(value.items()):
            yield f"{',' if number else '{'}{inner}{scalar(key)}: "
            yield from _written(item, inner)
        yield f"{line}}}"
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield f"{',' if number else '['}{inner}"
            yield from _written(item, inner)
        yield f"{line}]"
    else:
        yield scalar(value)
