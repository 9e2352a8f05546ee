"""Reads limits by key: what holds for each, and which keys have jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from django_jobqueue.domain.policy import limit_in_force
from django_jobqueue.domain.rates import Rate, rate_in_force
from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue import lanes
from django_jobqueue.store.queue.buckets import OF_LIMIT

MOST_LIMITS: Final = 1_000
MOST_KEYS: Final = 200  # of a limit
MOST_WAITING: Final = 100  # jobs of a key are counted no further

LIMITS: Final = f"""
SELECT held.name, held.concurrency, held.concurrency_override,
       ARRAY (SELECT type.name FROM jobqueue_jobtype AS type
               WHERE type.limit_name = held.name ORDER BY type.name)::text[],
       (SELECT count(*) FROM jobqueue_queuedjob AS job
         WHERE job.status = 'running'
           AND {OF_LIMIT.format(column="job.limit_key", name="held.name")}),
       (SELECT count(*) FROM jobqueue_keyoverride AS said
         WHERE {OF_LIMIT.format(column="said.limit_key", name="held.name")}),
       held.rate, held.rate_override, held.strict
  FROM jobqueue_keylimit AS held
 WHERE %(name)s::text IS NULL OR held.name = %(name)s
 ORDER BY held.name
 LIMIT {MOST_LIMITS}
"""

# One index probe for each key, as in a claim, and a count that ends early; the order
# pins the index by key.
_LANE: Final = """
job.status = 'queued' AND NOT job.quarantined AND job.limit_key IS NOT NULL
                   AND job.queue = lane.queue AND job.priority = lane.priority
                   AND job.job_type = lane.job_type"""
WAITING: Final = f"""
SELECT key.limit_key, count.jobs, date_part('epoch', statement_timestamp() - run_after)
  FROM unnest(%(queues)s::text[], %(priorities)s::smallint[], %(job_types)s::text[])
       AS lane (queue, priority, job_type),
       LATERAL (
         WITH RECURSIVE key AS (
           (SELECT job.limit_key, job.run_after
              FROM jobqueue_queuedjob AS job
             WHERE {_LANE} AND job.limit_key >= %(name)s::text || ' '
             ORDER BY job.limit_key, job.run_after, job.id
             LIMIT 1)
           UNION ALL
           SELECT next.limit_key, next.run_after
             FROM key,
                  LATERAL (
                    SELECT job.limit_key, job.run_after
                      FROM jobqueue_queuedjob AS job
                     WHERE {_LANE} AND job.limit_key > key.limit_key
                     ORDER BY job.limit_key, job.run_after, job.id
                     LIMIT 1) AS next)
         SELECT * FROM key WHERE key.limit_key < %(name)s::text || '!'
          LIMIT {MOST_KEYS}) AS key,
       LATERAL (
         SELECT count(*) AS jobs
           FROM (SELECT FROM jobqueue_queuedjob AS job
                  WHERE {_LANE} AND job.limit_key >= key.limit_key
                    AND job.limit_key <= key.limit_key
                  ORDER BY job.limit_key, job.run_after, job.id
                  LIMIT {MOST_WAITING}) AS few) AS count
"""

RUNNING: Final = f"""
SELECT job.limit_key, count(*)
  FROM jobqueue_queuedjob AS job
 WHERE job.status = 'running'
   AND {OF_LIMIT.format(column="job.limit_key", name="%(name)s::text")}
 GROUP BY job.limit_key
"""

OVERRIDES: Final = f"""
SELECT said.limit_key, said.concurrency, said.rate, said.share
  FROM jobqueue_keyoverride AS said
 WHERE {OF_LIMIT.format(column="said.limit_key", name="%(name)s::text")}
 ORDER BY said.limit_key
 LIMIT {MOST_KEYS}
"""

# When the buckets are full again; those that are full have no row, or an old one.
BUCKETS: Final = """
SELECT bucket.limit_key, bucket.full_at - statement_timestamp()
  FROM jobqueue_bucket AS bucket
 WHERE bucket.limit_key = ANY (%(keys)s::text[])
   AND bucket.full_at > statement_timestamp()
"""

# The job of a key that goes first where the order is strict, and when it is due.
STARTED: Final = """
SELECT DISTINCT ON (job.limit_key)
       job.limit_key, job.run_after - statement_timestamp()
  FROM jobqueue_queuedjob AS job
 WHERE job.status = 'queued' AND job.fence <> 0
   AND job.limit_key = ANY (%(keys)s::text[])
 ORDER BY job.limit_key, job.run_after, job.id
"""


class LimitRow(NamedTuple):
    """A limit by key as its row says."""

    name: str
    declared: int | None  # of each key; None is unlimited
    override: int | None  # None is not set, -1 is unlimited
    job_types: Sequence[str]
    running: int
    overridden_keys: int
    declared_rate: str | None = None  # of each key; None is unlimited
    rate_override: str | None = None
    is_strict: bool = False  # a key waits for the retry of its first job

    @property
    def in_force(self) -> int | None:
        """How many jobs of each key run at once; None is unlimited."""
        return self._in_order(limit_in_force(self.declared, self.override))

    @property
    def rate(self) -> Rate | None:
        """How many jobs of each key start in any window; None is unlimited."""
        return rate_in_force(self.declared_rate, self.rate_override)

    def of_key(self, key: KeyRow) -> int | None:
        """How many jobs of this key run at once; None is unlimited."""
        return self._in_order(limit_in_force(self.in_force, key.override))

    def _in_order(self, number: int | None) -> int | None:
        return min(1, 1 if number is None else number) if self.is_strict else number

    def rate_of(self, key: KeyRow) -> Rate | None:
        """How many jobs of this key start in any window; None is unlimited."""
        return self.rate if key.rate is None else rate_in_force(None, key.rate)

    def wait_of(self, key: KeyRow) -> timedelta:
        """How long the next start of this key is not permitted yet; 0 if it is."""
        rate = self.rate_of(key)
        wait = timedelta(0) if rate is None else rate.wait(key.owed)
        return max(wait, key.due_in) if self.is_strict else wait


@dataclass(slots=True)
class KeyRow:
    """A key of a limit: its jobs, and what an operator says of it."""

    key: str
    running: int = 0
    waiting: int = 0  # counted up to MOST_WAITING in each lane
    oldest: float | None = None  # seconds that it has been due; negative: until it is
    override: int | None = None
    rate: str | None = None  # its own
    share: int | None = None  # jobs in a round; None is one
    owed: timedelta = timedelta(0)  # until its bucket is full
    due_in: timedelta = timedelta(0)  # until its job is due that was started before


def limits(db: Database, name: str | None = None) -> list[LimitRow]:
    """All limits by key, or the one of this name, by name."""
    return [LimitRow(*row) for row in db.fetch(LIMITS, {"name": name})]


def keys_of(db: Database, limit: LimitRow) -> list[KeyRow]:
    """The keys of a limit that have jobs or an override, those that wait longest first.
    If there are many, the first ones of each lane."""
    lanes_of_limit = [
        head.lane
        for head in lanes.scan(db, [])
        if head.due_in is not None and head.lane.job_type in limit.job_types
    ]
    params = {
        "name": limit.name,
        "queues": [lane.queue for lane in lanes_of_limit],
        "priorities": [lane.priority for lane in lanes_of_limit],
        "job_types": [lane.job_type for lane in lanes_of_limit],
    }
    by_key: dict[str, KeyRow] = {}

    def row(limit_key: str) -> KeyRow:
        key = limit_key[len(limit.name) + 1 :]
        return by_key.setdefault(key, KeyRow(key))

    for limit_key, jobs, waited in db.fetch(WAITING, params):
        key = row(limit_key)
        key.waiting += jobs
        key.oldest = waited if key.oldest is None else max(key.oldest, waited)
    for limit_key, jobs in db.fetch(RUNNING, params):
        row(limit_key).running = jobs
    for limit_key, *values in db.fetch(OVERRIDES, params):
        key = row(limit_key)
        key.override, key.rate, key.share = values
    names = [f"{limit.name} {key}" for key in by_key]
    for limit_key, owed in db.fetch(BUCKETS, {"keys": names}):
        row(limit_key).owed = owed
    if limit.is_strict:
        for limit_key, due_in in db.fetch(STARTED, {"keys": names}):
            row(limit_key).due_in = max(due_in, timedelta(0))
    return sorted(by_key.values(), key=lambda k: (-(k.oldest or -1e12), k.key))
