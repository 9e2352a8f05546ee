"""Reads selected jobs page by page, the newest first, by a key instead of an offset."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.find import ARCHIVED, QUEUED, job_of
from django_jobqueue.store.rows import Job
from django_jobqueue.store.selection import condition
from django_jobqueue.store.time_budget import in_time

Key = tuple[datetime, UUID]  # of the last job of the page before

# The inner statement walks an index in its order; the outer one sorts one page. Queued
# jobs are in the order of their ids, which is that of their making.
ARCHIVED_PAGE: Final = """
{archived} WHERE job.id = ANY (ARRAY(
  SELECT id FROM jobqueue_archivedjob
   WHERE ({condition})
     AND (finished_at, id) < (%(at)s::timestamptz, %(id)s::uuid)
   ORDER BY finished_at DESC, id DESC LIMIT %(limit)s))
 ORDER BY job.finished_at DESC, job.id DESC
"""
QUEUED_PAGE: Final = """
{queued} WHERE job.id = ANY (ARRAY(
  SELECT id FROM jobqueue_queuedjob
   WHERE ({condition}) AND id < %(id)s::uuid
   ORDER BY id DESC LIMIT %(limit)s))
 ORDER BY job.id DESC
"""
LAST_ID: Final = UUID(int=(1 << 128) - 1)


def job_page(
    db: DjangoDatabase,
    selection: Selection,
    *,
    after: Key | None,
    limit: int,
    milliseconds: int,
) -> list[Job] | None:
    """The next jobs of this selection; None if that takes longer than it may."""
    at, id = after or ("infinity", LAST_ID)
    params: dict[str, Any] = {"at": at, "id": id, "limit": limit}

    def placeholder(value: Any) -> str:
        name = f"value_{len(params)}"
        params[name] = value
        return f"%({name})s"

    where = condition(selection, placeholder)
    if selection.table is Table.ARCHIVED:
        statement = ARCHIVED_PAGE.format(archived=ARCHIVED, condition=where)
    else:
        statement = QUEUED_PAGE.format(queued=QUEUED, condition=where)
    rows = in_time(db, milliseconds, lambda: db.fetch(statement, params))
    return None if rows is None else [job_of(row) for row in rows]
