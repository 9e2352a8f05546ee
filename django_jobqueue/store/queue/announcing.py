"""Which enqueues notify idle workers, and when: in the INSERT where it is a transaction
by itself, after its commit, or at the commit, by a trigger."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, connections

from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.notify import IDLE, News

# A commit with a notification takes a lock of the whole cluster until it is on the disk
# (630 instead of 8,900 commits/s with 16 clients), so it is sent only if some worker of
# the queue says that it is idle, and by few of those that enqueue at the same time:
# whoever has a lock of them. The others notify after their commit, and leave that to
# one who has the second lock. It commits later than they did, so what it wakes finds
# their jobs, in whichever order all of them commit; tests/properties has the proof.
TURN: Final = """
       pg_try_advisory_xact_lock(hashtextextended('{lock} ' || {lane}, 0))
"""
LANE: Final = "queue || ' ' || job_type"
FIRST_TURN: Final = TURN.format(lock="jobqueue", lane=LANE)
SECOND_TURN: Final = TURN.format(
    lock="jobqueue after", lane="%(queue)s || ' ' || %(job_type)s"
)

# Part of an INSERT of one job, which is a transaction by itself: of the hosts that
# could start it now, one is told, and another one that it was. Jobs that are due later
# are no secret: whoever is idle then should know. Returns the channels of the hosts,
# for the next jobs of the lane, behind an empty one if nobody was told; NULL if nobody
# is idle at all. Duplicates within a transaction are dropped by PostgreSQL itself.
NOTIFIED: Final = f"""
       (SELECT CASE WHEN NOT {FIRST_TURN} THEN ARRAY[''] || to_tell.hosts
                    WHEN jobqueue_notify_hosts(to_tell.hosts, id, queue) IS NULL
                    THEN NULL ELSE to_tell.hosts END
          FROM jobqueue_idle_hosts(queue, job_type) AS idle (hosts),
               LATERAL (SELECT CASE WHEN run_after <= clock_timestamp() THEN idle.hosts
                                    ELSE ARRAY[]::text[] END AS hosts
                        OFFSET 0) AS to_tell
         WHERE idle.hosts IS NOT NULL)
"""
# The same where the hosts are known; NULL if nobody was told.
NOTIFIED_KNOWN: Final = f"""
       CASE WHEN {FIRST_TURN}
            THEN jobqueue_notify_hosts(%(hosts)s::text[], id, queue)::text END
"""
# After the commit of those of which nobody was told.
NOTIFY_AFTER: Final = f"""
SELECT CASE WHEN {SECOND_TURN}
            THEN jobqueue_notify_hosts(%(hosts)s::text[], %(id)s::uuid, %(queue)s)::text
       END
"""
# The same for many jobs.
NOTIFY_MANY: Final = f"""
SELECT CASE WHEN {SECOND_TURN}
            THEN pg_notify('jobqueue', '{News.JOBS.prefix}' || queue)::text END
  FROM (SELECT %(queue)s) AS job (queue)
 WHERE {IDLE}
"""
_ANNOUNCED: Final = "_jobqueue_announced"
# In a longer transaction the same column tells whether it sees the past.
ISOLATION: Final = "current_setting('transaction_isolation')"
SEES_THE_PAST: Final = ("repeatable read", "serializable")


def notify_after(
    db: DjangoDatabase, job_type: str, queue: str, id: UUID, hosts: Sequence[str] | str
) -> None:
    """Tell these hosts of a job that is committed, of which its INSERT told nobody; or
    leave it to somebody who is about to tell. The job is there, whatever becomes of
    it."""
    params = {"job_type": job_type, "queue": queue, "id": id, "hosts": hosts}
    with suppress(DatabaseError):
        db.fetch_row(NOTIFY_AFTER, params)


def announce_after(
    db: DjangoDatabase,
    job_type: str,
    queue: str,
    id: UUID,
    notified: list[str] | None,
) -> list[str] | None:
    """See to it that somebody is told of a job of which the INSERT returned this, as
    ``NOTIFIED`` does; returns the channels of the hosts, None if nobody is idle."""
    if not notified or notified[0]:
        return notified
    hosts = notified[1:]
    notify_after(db, job_type, queue, id, hosts)
    return hosts


def in_autocommit(db: DjangoDatabase) -> bool:
    """True if a statement that is run now is a transaction by itself."""
    return connections[db.alias].get_autocommit()


def announces(db: DjangoDatabase, lane: Hashable) -> bool:
    """True if the trigger is to announce a job of this lane that is inserted now.

    Not if the statement is a transaction by itself, nor if a job of the lane that the
    same commit brings is announced.
    """
    wrapper = connections[db.alias]
    if wrapper.get_autocommit():
        return False
    return lane not in _announced(wrapper)


def announced(db: DjangoDatabase, lane: Hashable) -> None:
    """A job of this lane was inserted, and is announced."""
    wrapper = connections[db.alias]
    if wrapper.in_atomic_block:
        _announced(wrapper).add(lane)


def _announced(wrapper: Any) -> set[Hashable]:
    """The lanes of the jobs that the commit of this transaction will announce.

    Django replaces the list of a transaction's hooks when it ends, and when a savepoint
    is rolled back, with which announced jobs may go.
    """
    lanes: set[Hashable]
    hooks, lanes = vars(wrapper).get(_ANNOUNCED, (None, set()))
    if hooks is not wrapper.run_on_commit or not wrapper.in_atomic_block:
        lanes = set()
        setattr(wrapper, _ANNOUNCED, (wrapper.run_on_commit, lanes))
    return lanes
