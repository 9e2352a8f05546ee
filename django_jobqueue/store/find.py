"""Finds one job in both tables at once, so that a move between them hides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final
from uuid import UUID

from django_jobqueue.store.columns import TYPES
from django_jobqueue.store.connection import Database
from django_jobqueue.store.fitting_names import FITS, fitting
from django_jobqueue.store.rows import Job, tags_of
from django_jobqueue.text.json_reading import read_json

# What a job has when it is over, and what a queued one has there.
_ENDED: Final = {
    "finished_at": "NULL::timestamptz",
    "worker": "coalesce(worker.name, '')",
    "result": "NULL",
    "error_class": "''",
    "error_message": "''",
    "fingerprint": "NULL::uuid",
}
_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    **{name: read_json for name, of in TYPES.items() if of == "jsonb"},
    "result": read_json,
    "tags": tags_of,
}
# The fields of a Job that are columns of both tables, and those.
FIELDS: Final = [
    *(one.name for one in fields(Job) if one.name in TYPES),
    *_ENDED,
]


def _column(name: str) -> str:
    return f"job.{name}::text" if name in _READERS else f"job.{name}"


QUEUED: Final = f"""
SELECT {", ".join(_ENDED.get(name, _column(name)) for name in FIELDS)}
  FROM jobqueue_queuedjob AS job
  LEFT JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
"""
ARCHIVED: Final = f"""
SELECT {", ".join(map(_column, FIELDS))}
  FROM jobqueue_archivedjob AS job
"""
FIND: Final = f"""
{QUEUED} WHERE job.id = %(id)s
UNION ALL
{ARCHIVED} WHERE job.id = %(id)s
"""

KNOWN_NAMES: Final = f"""
SELECT name FROM jobqueue_jobtype AS type
 WHERE {FITS} ORDER BY name
"""


def find(db: Database, id: UUID) -> Job | None:
    """The job with this id, queued or archived; None if there is none."""
    rows = db.fetch(FIND, {"id": id})
    return job_of(rows[-1]) if rows else None


def job_of(row: Sequence[Any]) -> Job:
    """The job of a row of ``QUEUED`` or ``ARCHIVED``."""
    values = dict(zip(FIELDS, row, strict=True))
    for name, read in _READERS.items():
        if values.get(name) is not None:
            values[name] = read(values[name])
    return Job(**{**values, "tags": values["tags"] or ()})


def known_names(db: Database, patterns: Sequence[str] = ()) -> list[str]:
    """The names of the job types that have a row, of those that one of these patterns
    fits; without patterns of all."""
    return [name for (name,) in db.fetch(KNOWN_NAMES, fitting(patterns))]
