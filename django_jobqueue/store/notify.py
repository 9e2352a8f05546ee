"""Sends and reads notifications: one channel, with payloads ``<letter>:<subject>``.

A notification only shortens a wait. Nothing depends on it: polling is the net. Idle
workers learn of new jobs from the INSERT where it is a transaction by itself, else at
the commit, by a trigger.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database


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
    """The notification of a job that was announced to another host."""

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
