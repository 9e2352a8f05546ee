"""The JSON of one job as PostgreSQL writes it.

By its text, since Django's field raises for what Python cannot read, and loses digits
of numbers.
"""

from __future__ import annotations

from typing import Any, Final

from django.db.models import TextField
from django.db.models.functions import Cast, Left

from django_jobqueue.admin.parts.json_text import Unreadable, parsed
from django_jobqueue.models import ArchivedJob, QueuedJob

LONGEST: Final = 4 * 1024 * 1024  # characters that a page reads


def stored(job: QueuedJob | ArchivedJob, limit: int = LONGEST) -> dict[str, str | None]:
    """The texts of ``data``, ``metadata`` and ``result``; of a longer one, one
    character too many."""
    names = ["data", "metadata"]
    if isinstance(job, ArchivedJob):
        names.append("result")
    row = type(job)._base_manager.filter(pk=job.pk)
    texts = {f"{name}_text": Left(Cast(name, TextField()), limit + 1) for name in names}
    found = row.annotate(**texts).values(*texts).first() or {}
    return {name: found.get(f"{name}_text") for name in ("data", "metadata", "result")}


def value_of(text: str | None, limit: int = LONGEST) -> Any:
    """The value of such a text; ``None`` for none, ``Unreadable`` if it is too long."""
    if text is None:
        return None
    return parsed(text) if len(text) <= limit else Unreadable()
