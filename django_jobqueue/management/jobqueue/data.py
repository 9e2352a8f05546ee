"""The data of a job, as a command line or a line of a file states it."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from django.core.management.base import CommandError

from django_jobqueue.domain.annotations import Annotations

UNKNOWN: Final = Annotations(None)  # of a handler that is not known here
ACCEPTED: Final = "Give one JSON object, or key=value pairs."


def data_of(words: list[str], annotations: Annotations = UNKNOWN) -> dict[str, Any]:
    """The data that these words of the command line state; ``annotations`` are those of
    the handler, if it is known. Raises CommandError."""
    if words == ["-"]:
        return object_of(sys.stdin.read())
    if len(words) == 1 and words[0].lstrip()[:1] in ("{", "["):
        return object_of(words[0])
    data: dict[str, Any] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign or not key:
            raise CommandError(f"{word!r} is no key=value pair. {ACCEPTED}")
        if key in data:
            raise CommandError(f"{key!r} is given twice.")
        data[key] = _value(key, text, annotations)
    return data


def object_of(text: str, accepted: str = ACCEPTED) -> dict[str, Any]:
    """The JSON object that this text is. Raises CommandError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"The data is not JSON: {error}. {accepted}") from None
    if not isinstance(data, dict):
        raise CommandError(
            f"The data must be an object, not {type(data).__name__}. {accepted}"
        )
    return data


def _value(key: str, text: str, annotations: Annotations) -> Any:
    """The text as JSON, unless it is none, or unless the parameter wants a text."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    wants_text = not annotations.misfits({key: text})
    return text if wants_text and annotations.misfits({key: value}) else value


def _no_constant(name: str) -> None:
    """Python's JSON has NaN and Infinity, which is text here."""
    raise ValueError(name)
