"""Enqueue many jobs of one type, by COPY."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connections

from django_jobqueue.store.columns import OPTIONS
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.missing_tables import explaining
from django_jobqueue.store.queue.announcing import (
    NOTIFY_MANY,
    announced,
    announces,
    in_autocommit,
)
from django_jobqueue.store.queue.insert_statement import (
    DUE,
    FOLLOWERS_ARE_THERE,
    OF_TYPE,
    PARAMETERS,
    values_of,
)
from django_jobqueue.store.queue.new_job import NewJob

# The one look at the job type before many jobs are inserted.
_VALUES: Final = values_of()
_VALUES["followers"] = f"({_VALUES['followers']})::text"
PREPARE_MANY: Final = f"""
SELECT {", ".join(_VALUES[name] for name in OF_TYPE)},
       type.limit_name, type.limit_rule::text
  FROM jobqueue_jobtype AS type,
       LATERAL (SELECT {DUE.format(given=PARAMETERS)}) AS due (at)
 WHERE type.name = %(job_type)s {FOLLOWERS_ARE_THERE}
"""
COPY_MANY: Final = f"""
COPY jobqueue_queuedjob (
     id, job_type, {", ".join((*OF_TYPE, *OPTIONS))}, announce, data)
FROM STDIN
"""
COPY_CHUNK: Final = 1_000  # lines sent at once


def insert_many(
    db: DjangoDatabase, new: NewJob, ids: Sequence[UUID], texts: Sequence[str]
) -> bool:
    """Enqueue one job for each data, by COPY; False if there is no such job type.

    100,000 jobs take 1.6 to 2 s; most of it is the index and the foreign key's check.
    """
    prepared = prepare(db, new)
    if prepared is None:
        return False
    own = (new.options.get(name) for name in OPTIONS)
    values = (new.job_type, *prepared[: len(OF_TYPE)], *own)
    same = "\t".join(map(_copy_text, values))
    is_first, connection = announces(db, new.lane), connections[db.alias]
    with (
        explaining(db.alias),
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(COPY_MANY) as copy,
    ):
        for start in range(0, len(ids), COPY_CHUNK):
            part = slice(start, start + COPY_CHUNK)
            lines = [
                f"{id}\t{same}\tf\t{_copy_text(text)}\n"
                for id, text in zip(ids[part], texts[part], strict=True)
            ]
            if is_first and start == 0:
                lines[0] = lines[0].replace(f"{same}\tf", f"{same}\tt", 1)
            copy.write("".join(lines))
    if is_first:
        announced(db, new.lane)
    elif in_autocommit(db):
        db.run(NOTIFY_MANY, {"queue": prepared[0], "job_type": new.job_type})
    return True


def prepare(db: DjangoDatabase, new: NewJob) -> tuple[Any, ...] | None:
    """The queue, priority, ``run_after``, ``expires_at``, ``expires_in``, followers,
    ``created_at``, limit by key and its rule of many jobs; None if there is no such job
    type."""
    rows = db.fetch(PREPARE_MANY, new.params())
    return rows[0] if rows else None


def _copy_text(value: object) -> str:
    """A value in the text format of COPY."""
    if value is None:
        return r"\N"
    if isinstance(value, timedelta):
        return f"{value.total_seconds()} seconds"
    text = str(value)
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
