"""JSON from jobs as text: pretty, without secrets, bounded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from django_jobqueue.admin.display import visible
from django_jobqueue.redaction import mask_data, mask_text

LONGEST: Final = 64 * 1024  # characters shown of a value
LONGEST_STRING: Final = 2_000
STEP: Final = "  "


class Unreadable:
    """In place of a JSON value that PostgreSQL holds and Python cannot read."""


@dataclass(frozen=True, slots=True)
class JsonText:
    """A JSON value for people."""

    text: str
    note: str = ""


def parsed(text: str) -> Any:
    """The value of this text; ``Unreadable`` if it is nested too deeply, or has a
    number with thousands of digits, which no enqueue lets through but plain SQL does.
    """
    try:
        return json.loads(text)
    except (RecursionError, ValueError):
        return Unreadable()


def of_value(value: Any, sensitive: Iterable[str]) -> JsonText:
    """The value with its secrets masked."""
    if isinstance(value, Unreadable):
        return JsonText("", _("Python cannot read this value: see it with SQL."))
    try:
        masked = _with_texts_masked(mask_data(value, sensitive))
        text = json.dumps(masked, indent=2, ensure_ascii=False)
    except RecursionError:
        return JsonText("", _("Nested too deeply to be shown."))
    return _bounded(visible(text))


def of_shape(value: Any) -> JsonText:
    """Only keys and types, for users who may not see the values."""
    if isinstance(value, Unreadable):
        return of_value(value, ())
    try:
        text = visible("".join(_shape(value, "")))
    except RecursionError:
        text = _type(value)
    bounded = _bounded(text)
    note = _("Values are hidden: you may see only keys and types.")
    return JsonText(bounded.text, f"{note} {bounded.note}".strip())


def _bounded(text: str) -> JsonText:
    if len(text) <= LONGEST:
        return JsonText(text)
    note = _("The first %(shown)s of %(all)s characters.")
    counts = {"shown": f"{LONGEST:,}", "all": f"{len(text):,}"}
    return JsonText(text[:LONGEST], note % counts)


def _with_texts_masked(value: Any) -> Any:
    """What looks like a credential is masked under any key; long texts are cut."""
    if isinstance(value, str):
        if len(value) > LONGEST_STRING:
            cut = _("… (%(count)s characters)") % {"count": f"{len(value):,}"}
            return mask_text(value[:LONGEST_STRING]) + cut
        return mask_text(value)
    if isinstance(value, dict):
        return {key: _with_texts_masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_texts_masked(item) for item in value]
    return value


def _shape(value: Any, indent: str) -> Iterator[str]:
    inner = indent + STEP
    if isinstance(value, dict) and value:
        yield "{\n"
        for key, item in value.items():
            yield f"{inner}{json.dumps(key, ensure_ascii=False)}: "
            yield from _shape(item, inner)
            yield "\n"
        yield f"{indent}}}"
    elif isinstance(value, list) and value:
        yield f"[{len(value)} × "
        yield from _shape(value[0], indent)
        yield "]"
    else:
        yield _type(value)


def _type(value: Any) -> str:
    if value is None:
        return _("nothing")
    if isinstance(value, bool):
        return _("true or false")
    if isinstance(value, int | float):
        return _("number")
    if isinstance(value, str):
        return _("text")
    return _("empty")
