"""Enqueue, or give the waiting job with the same unique key the new data."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import IntegrityError

from django_jobqueue.domain.arguments import from_json
from django_jobqueue.store.columns import JOB_COLUMNS, REPLACED
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.notify import IDLE, News
from django_jobqueue.store.queue.announcing import (
    ISOLATION,
    NOTIFIED,
    announce_after,
    announced,
    announces,
    in_autocommit,
)
from django_jobqueue.store.queue.insert import (
    KNOWN_FOR,
    MOST_KNOWN,
    Inserted,
    inserted_job,
)
from django_jobqueue.store.queue.insert_statement import insert_jobs, insert_of
from django_jobqueue.store.queue.new_job import NewJob

_STAYS: Final = "jobqueue_queuedjob.queue = excluded.queue"


def _of_call(name: str) -> str:
    """The column of a job that comes from another queue is the new call's: whoever has
    chosen that queue has no say in this one."""
    values = f"THEN jobqueue_queuedjob.{name} ELSE excluded.{name}"
    return f"{name} = CASE WHEN {_STAYS} {values} END"


_STAYING: Final = (
    *("priority", "followers"),
    *(one.name for one in JOB_COLUMNS if one.is_option and not one.is_replaced),
)
_REPLACED: Final = ", ".join(
    (REPLACED, "queue = excluded.queue", *map(_of_call, _STAYING))
)
_IS_REPLACED: Final = f"""
 WHERE jobqueue_queuedjob.status = 'queued' AND (%(may_move)s::boolean OR {_STAYS})
"""
_DUE: Final = f"""CASE WHEN %(moves)s::boolean
                        THEN least(excluded.run_after, jobqueue_queuedjob.created_at
                                                       + %(debounce_max)s::interval)
                        WHEN {_STAYS} THEN jobqueue_queuedjob.run_after
                        ELSE excluded.run_after END"""
# The row is locked: either the claim wins, and frees the key, or the new data do. The
# expiry is the new call's; counted from when the job is due, if that stays later. A
# debounced job is due at its limit at the latest, so the last call before it wins.
REPLACE: Final = f"""
ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO UPDATE
   SET {_REPLACED},
       run_after = {_DUE},
       expires_in = CASE WHEN %(has_expiry)s::boolean
                         THEN excluded.expires_at - {_DUE}
                         ELSE excluded.expires_in END,
       expires_at = CASE WHEN %(moves)s::boolean
                           OR %(has_expiry)s::boolean
                           OR NOT {_STAYS}
                         THEN excluded.expires_at
                         ELSE jobqueue_later(
                           excluded.expires_at,
                           greatest(interval '0', jobqueue_queuedjob.run_after
                                                  - excluded.run_after)) END
{_IS_REPLACED}"""

# A claim skips the row while it is locked, and may have passed it by then. The subquery
# reads the row before this statement. A job that only becomes due later is no news.
PASSED: Final = f"""
       CASE WHEN id <> {{id}} AND (run_after <= clock_timestamp() OR NOT EXISTS (
                   SELECT FROM jobqueue_queuedjob AS before
                    WHERE before.id = jobqueue_queuedjob.id
                      AND before.queue = jobqueue_queuedjob.queue
                      AND before.run_after <= jobqueue_queuedjob.run_after))
            THEN pg_notify('jobqueue', '{News.BEHIND.prefix}' || queue)::text END
"""

INSERT_OR_REPLACE: Final = insert_of(
    conflict=REPLACE,
    notified="id, max_attempts, timeout, backoff::text,"
    " CASE WHEN id = %(id)s::uuid THEN {notified} END,"
    + PASSED.format(id="%(id)s::uuid"),
)


# The same for a job of which all but its data is its type's, in a type that was looked
# up a moment ago, in this process: a third of the time, most of which is parsing and
# planning. Each such call has the same wait, so the job becomes due earlier only where
# an operator had put it off; a worker then finds it when it polls.
KNOWN_OR_REPLACE: Final = insert_jobs(
    {
        "id": "%(id)s::uuid",
        "job_type": "%(job_type)s",
        "queue": "%(queue)s",
        "priority": "%(priority)s",
        "data": "%(data)s::jsonb",
        "run_after": "clock_timestamp() + %(delay)s::interval",
        "created_at": "clock_timestamp()",
        "announce": "{announce}",
        "unique_key": "{key}",
        "unique_until_started": "true",
    },
    then=f"""\
    ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO UPDATE
   SET {_REPLACED}, expires_at = NULL, expires_in = NULL,
       {{due}}
{_IS_REPLACED}
RETURNING queue, priority, run_after, expires_at, created_at, false, id, max_attempts,
          timeout, backoff::text, {{notified}}, {{passed}}""",
)
KEY: Final = """jobqueue_unique_key(
          %(job_type)s, %(unique_rule)s::jsonb, %(data)s::jsonb)"""
# From now on, though the call may have waited for the row.
MOVED: Final = """
       run_after = least(clock_timestamp() + %(delay)s::interval,
                         jobqueue_queuedjob.created_at + %(debounce_max)s::interval)"""
NOTIFIED_OF_NEW: Final = f"CASE WHEN id = %(id)s::uuid THEN {NOTIFIED} END"

PASSED_KNOWN: Final = f"""
       CASE WHEN id <> %(id)s::uuid AND run_after <= clock_timestamp()
            THEN pg_notify('jobqueue', '{News.BEHIND.prefix}' || queue)::text END
"""

TYPE_VALUES: Final = f"""
SELECT queue, priority, is_plain, {IDLE}
  FROM (SELECT coalesce(%(queue)s, type.queue) AS queue,
               coalesce(%(priority)s, type.priority_override, %(declared_priority)s,
                        type.priority) AS priority,
               type.expires_in IS NULL AND type.followers IS NULL AS is_plain
          FROM jobqueue_jobtype AS type
         WHERE type.name = %(job_type)s) AS job
"""


class Known(NamedTuple):
    """The job type's values that were looked up a moment ago."""

    queue: str
    priority: int
    is_plain: bool  # its jobs have no expiry and no follower
    is_awaited: bool  # a worker is idle
    since: float  # time.monotonic()


_known: dict[tuple[Any, ...], Known] = {}


def insert_or_replace(
    db: DjangoDatabase, new: NewJob, id: UUID, data: Any, text: str
) -> Inserted | None:
    """Enqueue one job, or replace the data of the waiting one that has its unique key;
    None if that one runs, or if there is no such job type."""
    is_first = announces(db, new.lane)
    known = _known_of(db, new)
    params = {**new.params(), "id": id, "data": text}
    rows = None
    if known is not None:
        own = {"queue": known.queue, "priority": known.priority}
        try:
            notifies = known.is_awaited and in_autocommit(db)
            statement = _statement(new, is_first=is_first, notifies=notifies)
            row = db.fetch_row(statement, {**params, **own})
            rows = [row] if row else []
        except IntegrityError:  # the type's row is gone
            if not in_autocommit(db):
                raise
    if rows is None:
        statement = INSERT_OR_REPLACE.format(
            announce=str(is_first).lower(),
            notified=NOTIFIED if in_autocommit(db) else ISOLATION,
        )
        has_expiry = {"has_expiry": new.expires_at is not None}
        rows = db.fetch(statement, {**params, **has_expiry})
    if not rows:
        return None
    *values, held_id, max_attempts, timeout, backoff, notified, _passed = rows[0]
    job = inserted_job(new, held_id, data, tuple(values))
    if held_id == id:
        if is_first:
            announced(db, new.lane)
        if in_autocommit(db):
            announce_after(db, new.job_type, job.queue, id, notified)
        return Inserted(job, is_new=True)
    replaced = replace(
        job,
        max_attempts=max_attempts,
        timeout=timeout,
        backoff=None if backoff is None else from_json(backoff),
        is_new=False,
        is_replaced=True,
    )
    return Inserted(replaced, is_new=False)


def _known_of(db: DjangoDatabase, new: NewJob) -> Known | None:
    """The job type's values, if they are all that the job needs. A transaction, whose
    look may be undone, only uses those of others."""
    if not new.is_of_type:
        return None
    key = (db.alias, *new.lane)
    known = _known.get(key)
    if known is None or not 0 <= time.monotonic() - known.since < KNOWN_FOR:
        rows = db.fetch(TYPE_VALUES, new.params()) if in_autocommit(db) else None
        if not rows:
            return None
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        queue, priority, is_plain, is_awaited = rows[0]
        known = Known(queue, priority, is_plain, is_awaited, time.monotonic())
        _known[key] = known
    return known if known.is_plain else None


def _statement(new: NewJob, *, is_first: bool, notifies: bool) -> str:
    return KNOWN_OR_REPLACE.format(
        announce=str(is_first).lower(),
        key="%(unique_key)s::uuid" if new.unique_key is not None else KEY,
        due=MOVED if new.moves else _of_call("run_after"),
        notified=NOTIFIED_OF_NEW if notifies else "NULL",
        passed=PASSED_KNOWN,
    )
