"""Replay: an archived job → a new queued one that remembers it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from django_jobqueue.domain.operation_options import Options
from django_jobqueue.observers import Enqueue, around_enqueue
from django_jobqueue.store.connection import Database

# Only inserts, so it is easy to undo; the old rows are not touched. A job whose type is
# gone has no row to join and is left out, and so is one of whose data something was
# erased, unless there are other data. The new jobs are due in the order of the old
# ones, a microsecond apart: ids alone do not keep it before PostgreSQL 18. The first
# of each queue is announced. They are not part of the trace of the old ones, but refer
# to it as their origin; what else a project keeps under that name stays.
REPLAY: Final = """
INSERT INTO jobqueue_queuedjob (
       id, job_type, queue, priority, data, run_after, expires_at, max_attempts,
       timeout, backoff, replay_of, root_id, bulk_operation_id, enqueued_by, tags,
       metadata, followers, limit_key, weight, announce)
SELECT coalesce(%(id)s::uuid, jobqueue_uuidv7()), old.job_type,
       coalesce(%(queue)s, old.queue), coalesce(%(priority)s, old.priority),
       coalesce(%(data)s::jsonb, old.data),
       due.at,
       CASE %(expires)s
            WHEN 'keep' THEN old.expires_at
            WHEN 'never' THEN NULL
            WHEN 'same' THEN due.at + (old.expires_at - old.created_at)
            ELSE %(expires_at)s::timestamptz END,
       coalesce(%(max_attempts)s, old.max_attempts), old.timeout, old.backoff, old.id,
       coalesce(old.root_id, old.id), %(bulk_operation_id)s::uuid, %(by)s, old.tags,
       CASE WHEN old.origin IS NULL AND (%(trace)s::jsonb IS NULL
                                         OR old.metadata -> 'trace' IS NOT NULL)
            THEN old.metadata
            ELSE coalesce(old.metadata, '{}') || jsonb_build_object(
                   'trace', coalesce(%(trace)s::jsonb, '{}') || jsonb_strip_nulls(
                              jsonb_build_object('origin', old.origin))) END,
       old.followers,
       CASE WHEN %(data)s::jsonb IS NULL
                 AND starts_with(old.limit_key, old.limit_name || ' ')
            THEN old.limit_key
            ELSE jobqueue_limit_key(old.limit_rule, coalesce(%(data)s::jsonb, old.data))
       END, CASE WHEN %(data)s::jsonb IS NULL THEN old.weight END, old.in_queue = 1
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
       LATERAL (SELECT coalesce(
                  %(run_after)s::timestamptz,
                  statement_timestamp() + old.place * interval '1 microsecond'))
       AS due (at)
 ORDER BY old.id
RETURNING replay_of, id
"""

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
    """Whether personal data of this archived job were erased."""
    return bool(db.fetch(IS_ERASED, {"id": id})[0][0])
