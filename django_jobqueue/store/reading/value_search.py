"""Finds the keys of the data of jobs that have a value."""

from __future__ import annotations

from typing import Final

from django_jobqueue.search.selection import Table
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.selection import TABLES
from django_jobqueue.store.time_budget import in_time

MOST_JOBS: Final = 20_000  # the newest, that are looked at
MOST_BYTES: Final = 8_000  # of data; larger ones are passed over
MOST_KEYS: Final = 20
BUDGET: Final = 1_000  # milliseconds

# Keys at the top, and one level below.
KEYS: Final = """
SELECT found.path, count(*)
  FROM (SELECT CASE WHEN jsonb_typeof(data) = 'object' THEN data END AS data
          FROM {table}
         WHERE pg_column_size(data) <= %(bytes)s
         ORDER BY {order}
         LIMIT %(jobs)s) AS job
 CROSS JOIN LATERAL jsonb_each(job.data) AS top (key, value)
 CROSS JOIN LATERAL (
         SELECT ARRAY[top.key] AS path
          WHERE jsonb_typeof(top.value) IN ('string', 'number')
            AND top.value #>> '{{}}' = %(value)s
         UNION ALL
         SELECT ARRAY[top.key, below.key]
           FROM jsonb_each_text(CASE WHEN jsonb_typeof(top.value) = 'object'
                                     THEN top.value END) AS below
          WHERE below.value = %(value)s) AS found
 GROUP BY found.path
 ORDER BY count(*) DESC, found.path
 LIMIT %(most)s
"""
_ORDER: Final = {
    Table.QUEUED: "id DESC",
    Table.ARCHIVED: "finished_at DESC, id DESC",
}


def keys_with(
    db: DjangoDatabase, table: Table, value: str
) -> list[tuple[tuple[str, ...], int]] | None:
    """The paths at which the newest jobs of the table have this value, as a text or a
    number, each with the number of jobs; None if that took too long."""
    statement = KEYS.format(table=TABLES[table], order=_ORDER[table])
    params = {
        "value": value,
        "bytes": MOST_BYTES,
        "jobs": MOST_JOBS,
        "most": MOST_KEYS,
    }
    rows = in_time(db, BUDGET, lambda: db.fetch(statement, params))
    return None if rows is None else [(tuple(path), jobs) for path, jobs in rows]
