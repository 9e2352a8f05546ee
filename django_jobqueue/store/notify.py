"""Sends and reads notifications: one channel, with payloads ``<letter>:<subject>``.

A notification only shortens a wait. Nothing depends on it: polling is the net. Idle
workers learn of new jobs from the INSERT where it is a transaction by itself, else at
the commit, by a trigger.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Any, Final, NamedTuple

from django.db import connections

from django_jobqueue.store.connection import Database, DjangoDatabase


class News(Enum):
    """The subject of a notification; the rest of its payload names which."""

    JOBS = "q"  # new jobs in this queue
    JOB = "j"  # a new job in this queue, of which no other host is told
    NEIGHBOUR = "n"  # of this new job another host was told (JobElsewhere)
    BEHIND = "b"  # jobs of this queue that a claim may have passed already
    JOB_TYPES = "t"  # a policy, a pause
    CANCEL = "c"  # this job is to be cancelled
    CONTROL = "w"  # this worker is asked to do something
    HOST = "s"  # the host of this name is asked to do something
    OVER = "o"  # this job, which somebody waits for, is over
    LEASE = "l"  # this lease, which somebody waits for, is free
    HELLO = "h"  # a listener tries whether it hears

    @property
    def prefix(self) -> str:
        """The beginning of the payload, also in SQL: ``q:``."""
        return f"{self.value}:"


CHANNEL: Final = "jobqueue"

NOTIFY: Final = "SELECT pg_notify('jobqueue', %(payload)s)"

USAGE: Final = "SELECT pg_notification_queue_usage()"

# Whether some worker of a job's queue says that it is idle.
LISTENS: Final = "worker.listening AND (worker.queues IS NULL OR worker.queues ? queue)"
IDLE: Final = f"""
       EXISTS (SELECT FROM jobqueue_worker AS worker WHERE {LISTENS})
"""

# Part of each INSERT. A commit with a notification takes a lock of the whole cluster
# until it is on the disk (630 instead of 8,900 commits/s with 16 clients), so it is
# sent only if some worker of the queue says that it is idle, and it is `{turn}`.
# Duplicates within a transaction are dropped by PostgreSQL itself.
KEY: Final = "hashtextextended('jobqueue ' || queue, 0)"
NOTIFY_IDLE: Final = f"""
       (SELECT CASE WHEN {{turn}}
                    THEN pg_notify('jobqueue', '{News.JOBS.prefix}' || queue)::text END
         WHERE {IDLE})
"""

# The same for one job: of the hosts that could start it now, one is told, and another
# one that it was. Jobs that are due later are no secret: whoever is idle then should
# know. Returns the channels of the hosts, for the next jobs of the lane; NULL if nobody
# is idle at all.
TYPE_KEY: Final = "hashtextextended('jobqueue ' || queue || ' ' || job_type, 0)"
NOTIFY_HOSTS: Final = """
       (SELECT CASE WHEN {turn}
                     AND jobqueue_notify_hosts(
                           CASE WHEN run_after <= clock_timestamp() THEN hosts
                                ELSE '{{}}' END, id, queue) IS NULL
                    THEN NULL ELSE hosts END
          FROM jobqueue_idle_hosts(queue, job_type) AS hosts
         WHERE hosts IS NOT NULL)
"""

# The statement is a transaction by itself, and leaves the notification to others if two
# of them are about to notify of the same. The second of those commits after the first,
# so later than whoever left it to them, and what it wakes finds all their jobs.
TURN: Final = """
       (pg_try_advisory_xact_lock({first}) OR pg_try_advisory_xact_lock({second}))
"""
OUR_TURN: Final = TURN.format(first=KEY, second=f"~{KEY}")
OUR_TURN_OF_TYPE: Final = TURN.format(first=TYPE_KEY, second=f"~{TYPE_KEY}")

# From a host that alone was told, and whose own workers have no room.
NOTIFY_OTHERS: Final = f"""
SELECT pg_notify('jobqueue', '{News.JOBS.prefix}' || queue)
  FROM unnest(%(queues)s::text[]) AS new (queue)
 WHERE EXISTS (SELECT FROM jobqueue_worker AS worker
                WHERE worker.id <> ALL (%(workers)s::bigint[]) AND {LISTENS})
"""

# The channel on which one host is told.
CHANNEL_OF: Final = "SELECT jobqueue_channel(%(host)s)"

# A notification that is lost with the server's machine only shortened a wait.
ASYNCHRONOUSLY: Final = "SET synchronous_commit = off"

# Of the jobs that another host was told of.
STILL_WAIT: Final = """
SELECT id::text FROM jobqueue_queuedjob
 WHERE id = ANY (%(ids)s::uuid[]) AND status = 'queued'
   AND run_after <= clock_timestamp()
"""


class JobElsewhere(NamedTuple):
    """What a notification of a job says of which another host was told."""

    id: str
    host: str  # its channel
    queue: str

    @classmethod
    def parse(cls, about: str) -> JobElsewhere:
        """From what follows the letter: ``<id> <host> <queue>``."""
        return cls(*about.split(" ", 2))


def notify(db: Database, news: News, about: object = "") -> None:
    """Say something to whoever listens, when this transaction commits."""
    db.run(NOTIFY, {"payload": payload(news, about)})


def usage(db: Database) -> float:
    """The share of the server's room for notifications that is used, 0 to 1. What all
    have read is dropped first."""
    ((used,),) = db.fetch(USAGE)
    return float(used)


def payload(news: News, about: object = "") -> str:
    """The text of a notification."""
    return f"{news.prefix}{about}"


def parse(text: str) -> tuple[News, str] | None:
    """The subject of a notification; None for a payload that is not ours."""
    letter, _, about = text.partition(":")
    try:
        return News(letter), about
    except ValueError:
        return None


_ANNOUNCED: Final = "_jobqueue_announced"
NOTIFIED: Final = NOTIFY_HOSTS.format(turn=OUR_TURN_OF_TYPE)
NOTIFIED_OF_MANY: Final = NOTIFY_IDLE.format(turn=OUR_TURN)
# In a longer transaction the same column tells whether it sees the past.
ISOLATION: Final = "current_setting('transaction_isolation')"
SEES_THE_PAST: Final = ("repeatable read", "serializable")


def in_autocommit(db: DjangoDatabase) -> bool:
    """Whether a statement that is run now is a transaction by itself."""
    return connections[db.alias].get_autocommit()


def announces(db: DjangoDatabase, lane: Hashable) -> bool:
    """Whether the trigger is to announce a job of this lane that is inserted now.

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
