"""Reads queued jobs as JSON objects, and inserts them again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.search.selection import Selection
from django_jobqueue.store.bulk.selected_ids import selected_ids
from django_jobqueue.store.columns import copied_to
from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue.insert_statement import insert_jobs
from django_jobqueue.text.json_reading import read_json

BATCH: Final = 500  # jobs of a statement

COLUMNS: Final = copied_to("dump")
NAMES: Final = ", ".join(COLUMNS)

# An attempt that goes on is made again by whoever takes the job over.
DUMP: Final = f"""
SELECT ARRAY (SELECT of_row.value::text
                FROM (SELECT to_json(named) FROM (SELECT {NAMES}) AS named)
                       AS one (row),
                     json_each(one.row) AS of_row),
       job.attempts - (job.status = 'running')::int,
       coalesce(type.sensitive, '[]')::text, coalesce(type.limit_rule, '{{}}')::text
  FROM (SELECT * FROM jobqueue_queuedjob WHERE id = ANY (%(ids)s::uuid[])) AS job
  LEFT JOIN LATERAL (SELECT sensitive, limit_rule FROM jobqueue_jobtype
                      WHERE name = job.job_type) AS type ON true
 ORDER BY id
"""
# One that was started before goes first again where the order of a key is strict.
LOAD: Final = insert_jobs(
    {**{name: name for name in COLUMNS}, "fence": "least(attempts, 1)"},
    rows="""\
  FROM jsonb_populate_recordset(NULL::jobqueue_queuedjob, %(jobs)s::jsonb) AS job
 WHERE NOT EXISTS (SELECT FROM jobqueue_archivedjob AS old WHERE old.id = job.id)""",
    then="ON CONFLICT DO NOTHING RETURNING id",
)


class Dumped(NamedTuple):
    """A job, and what its type says of secrets."""

    columns: dict[str, Any]
    sensitive: list[Any]  # names
    limit_rule: Any


def dumped(db: Database, selection: Selection) -> Iterator[Dumped]:
    """The jobs, by id."""
    for ids in selected_ids(db, selection, most=BATCH):
        for texts, attempts, sensitive, rule in db.fetch(DUMP, {"ids": ids}):
            values = map(read_json, texts)
            columns = dict(zip(COLUMNS, values, strict=True))
            columns["attempts"] = max(0, attempts)
            yield Dumped(columns, read_json(sensitive), read_json(rule))


def load(db: Database, jobs: Sequence[dict[str, Any]]) -> list[UUID]:
    """Insert these jobs as queued; returns the ids of those that were not there, nor
    another one with the same unique key."""
    loaded: list[UUID] = []
    for start in range(0, len(jobs), BATCH):
        batch = json.dumps(jobs[start : start + BATCH])
        loaded += [row[0] for row in db.fetch(LOAD, {"jobs": batch})]
    return loaded
