"""JSON as the database has it, and as text: read, masked, written."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from django.db.models import TextField
from django.db.models.functions import Cast, Left

from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.text.json_reading import UNREADABLE, read_json
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
    value = read_json(text, number=Number)
    return Unreadable() if value is UNREADABLE else value


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


LONGEST: Final = 4 * 1024 * 1024  # characters that a page reads


def stored(job: QueuedJob | ArchivedJob, limit: int = LONGEST) -> dict[str, str | None]:
    """The texts of ``data``, ``metadata`` and ``result``; of a longer one, one
    character too many. Raises the model's ``DoesNotExist`` if the job has moved to the
    other table, or was deleted, since its row was read."""
    names = ["data", "metadata"]
    if isinstance(job, ArchivedJob):
        names.append("result")
    row = type(job)._base_manager.filter(pk=job.pk)
    texts = {f"{name}_text": Left(Cast(name, TextField()), limit + 1) for name in names}
    values = row.annotate(**texts).values(*texts).get()
    return {name: values.get(f"{name}_text") for name in ("data", "metadata", "result")}


def value_of(text: str | None, limit: int = LONGEST) -> Any:
    """The value of such a text; ``None`` for none, ``Unreadable`` if it is too long."""
    if text is None:
        return None
    return parsed(text) if len(text) <= limit else Unreadable()
