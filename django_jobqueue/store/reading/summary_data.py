"""Reads what lists and failure groups show of the data of jobs, and nothing large."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from django_jobqueue.search.selection import Table
from django_jobqueue.store.connection import Database

SMALL: Final = 4_000  # bytes as they are stored; the data of most jobs
LARGE: Final = 200_000  # bytes; of larger data nothing is read
MOST_JOBS: Final = 2_000  # newest ones of a failure group
LONGEST_VALUE: Final = 100  # characters of a value that is counted

# Data that PostgreSQL keeps beside the row are not fetched, only the keys asked for.
DATA: Final = """
SELECT job.id, CASE WHEN pg_column_size(job.data) <= %(small)s THEN job.data
                    WHEN pg_column_size(job.data) <= %(large)s THEN (
                      SELECT jsonb_object_agg(key, job.data -> key)
                        FROM unnest(%(keys)s::text[]) AS key
                       WHERE pg_column_size(job.data -> key) <= %(small)s)
               END::text
  FROM {table} AS job
 WHERE job.id = ANY (%(ids)s::uuid[])
"""
TABLES: Final = {
    Table.QUEUED: "jobqueue_queuedjob",
    Table.ARCHIVED: "jobqueue_archivedjob",
}

VALUES: Final = """
SELECT newest.job_type, one.key, one.value::text, count(*)
  FROM (SELECT job.job_type, job.data
          FROM jobqueue_archivedjob AS job
         WHERE job.fingerprint = %(fingerprint)s
         ORDER BY job.finished_at DESC, job.id DESC
         LIMIT %(most)s) AS newest
 CROSS JOIN LATERAL jsonb_each(
         CASE WHEN pg_column_size(newest.data) <= %(small)s
               AND jsonb_typeof(newest.data) = 'object' THEN newest.data END) AS one
 WHERE jsonb_typeof(one.value) IN ('string', 'number', 'boolean')
   AND length(one.value::text) <= %(longest)s
 GROUP BY 1, 2, 3
"""


def data_of(
    db: Database, table: Table, ids: Sequence[UUID], keys: Iterable[str]
) -> dict[UUID, str]:
    """The data of these jobs as JSON text; of larger ones only these keys, and nothing
    of those that are very large."""
    params = {"ids": list(ids), "keys": sorted(keys), "small": SMALL, "large": LARGE}
    rows = db.fetch(DATA.format(table=TABLES[table]), params)
    return {id: text for id, text in rows if text is not None}


def values_of_group(db: Database, fingerprint: UUID) -> list[tuple[Any, ...]]:
    """The values at the top of the data of a failure group's newest archived jobs: job
    type, key, value as JSON text, and the number of jobs."""
    params = {
        "fingerprint": fingerprint,
        "most": MOST_JOBS,
        "small": SMALL,
        "longest": LONGEST_VALUE,
    }
    return db.fetch(VALUES, params)
