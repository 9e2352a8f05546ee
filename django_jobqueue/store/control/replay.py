"""Replay: an archived job → a new queued one that remembers it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from django_jobqueue.domain.operation_options import Options
from django_jobqueue.observers import Enqueue, around_enqueue
from django_jobqueue.store.columns import JOB_COLUMNS
from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue.insert_statement import insert_jobs

# Only inserts, so it is easy to undo; the old rows are not touched. A job whose type is
# gone has no row to join and is left out, and so is one of whose data something was
# erased, unless there are other data. The new jobs are due in the order of the old
# ones, a microsecond apart: ids alone do not keep it before PostgreSQL 18. The first
# of each queue is announced.
REPLAY: Final = insert_jobs(
    {one.name: one.replayed for one in JOB_COLUMNS if one.replayed},
    rows="""\
  FROM (SELECT archived.*, type.limit_name, type.limit_rule,
               row_number() OVER (ORDER BY id) AS place,
               row_number() OVER (PARTITION BY archived.queue ORDER BY id) AS in_queue,
               coalesce(archived.metadata #>> '{trace,traceparent}',
                        archived.metadata #>> '{trace,origin}',
                        archived.metadata #>> '{trace,sentry-trace}') AS origin
          FROM jobqueue_archivedjob AS archived
          JOIN jobqueue_jobtype AS type ON type.name = archived.job_type
         WHERE id = ANY (%(ids)s::uuid[])
           AND (erased_at IS NULL OR %(data)s::jsonb IS NOT NULL)) AS old,
       LATERAL (SELECT greatest(
                  %(run_after)s::timestamptz,
                  statement_timestamp() + old.place * interval '1 microsecond'))
       AS due (at)
 ORDER BY old.id""",
    then="RETURNING replay_of, id",
)

IS_ERASED: Final = """
SELECT EXISTS (SELECT FROM jobqueue_archivedjob
                WHERE id = %(id)s AND erased_at IS NOT NULL)
"""


def replay(
    db: Database,
    ids: Sequence[UUID],
    options: Options,
    *,
    data: str | None = None,
    by: str = "",
    operation: UUID | None = None,
    new_id: UUID | None = None,
) -> dict[UUID, UUID]:
    """Enqueue these archived jobs again; return the new id of each that could be.

    ``data`` is JSON text, instead of the old data; ``operation`` is the bulk operation
    that does it; ``new_id`` is for a single job. Raises IntegrityError if it is taken.
    """
    about = Enqueue(ids=ids, is_many=len(ids) > 1, is_replay=True)
    with around_enqueue(about) as trace:
        about.ids = ()
        made = _replay(db, ids, options, data, by, operation, new_id, trace)
        about.ids = list(made.values())
    return made


def _replay(
    db: Database,
    ids: Sequence[UUID],
    options: Options,
    data: str | None,
    by: str,
    operation: UUID | None,
    new_id: UUID | None,
    trace: Mapping[str, str],
) -> dict[UUID, UUID]:
    params = {
        "ids": list(ids),
        "id": new_id,
        "queue": options.queue,
        "priority": options.priority,
        "run_after": options.run_after,
        "max_attempts": options.max_attempts,
        "expires": options.expires,
        "expires_at": options.expires_at,
        "data": data,
        "by": by or None,
        "bulk_operation_id": operation,
        "trace": json.dumps(trace) if trace else None,
    }
    return dict(db.fetch(REPLAY, params))


def is_erased(db: Database, id: UUID) -> bool:
    """True if personal data of this archived job were erased."""
    return bool(db.fetch(IS_ERASED, {"id": id})[0][0])
