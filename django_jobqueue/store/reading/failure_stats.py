"""Counts failures and affected job types of failure groups, up to a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django_jobqueue.domain.states import GroupState
from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue.rescue import error_class_of

MOST_COUNTED: Final = 1_000  # archived jobs of each group
MOST_SAMPLED: Final = 100  # its newest failures, for a list
MOST_BROKEN_DOWN: Final = 1_000  # its newest failures, for its page

# An ignored group whose time is over is open again.
GROUPS: Final = """
SELECT CASE WHEN state = 'ignored' AND ignored_until <= statement_timestamp()
            THEN 'open' ELSE state END, count(*)
  FROM jobqueue_failuregroup
 GROUP BY 1
"""

# Each is a range of an index for each group: 50 groups took 9 ms and 27 ms.
COUNT: Final = """
SELECT chosen.fingerprint,
       (SELECT count(*)
          FROM (SELECT
                  FROM jobqueue_archivedjob AS job
                 WHERE job.fingerprint = chosen.fingerprint
                 LIMIT %(most)s + 1) AS counted)
  FROM unnest(%(fingerprints)s::uuid[]) AS chosen (fingerprint)
"""

SAMPLE: Final = """
SELECT chosen.fingerprint, count(*),
       array_agg(DISTINCT newest.job_type), array_agg(DISTINCT newest.release),
       count(DISTINCT newest.job_id) FILTER (
         WHERE EXISTS (SELECT FROM jobqueue_queuedjob AS job
                        WHERE job.id = newest.job_id)
           AND NOT EXISTS (SELECT FROM jobqueue_failure AS later
                            WHERE later.job_id = newest.job_id
                              AND later.id > newest.id
                              AND later."end" NOT IN ('snoozed', 'released')))
  FROM unnest(%(fingerprints)s::uuid[]) AS chosen (fingerprint)
 CROSS JOIN LATERAL (
         SELECT failure.id, failure.job_id, failure.job_type, failure.release
           FROM jobqueue_failure AS failure
          WHERE failure.fingerprint = chosen.fingerprint
          ORDER BY failure.finished_at DESC
          LIMIT %(most)s) AS newest
 GROUP BY chosen.fingerprint
"""

BREAK_DOWN: Final = """
SELECT newest.job_type, coalesce(over.queue, waiting.queue, ''), newest.worker,
       newest.release, count(*)
  FROM (SELECT failure.job_id, failure.job_type, failure.worker, failure.release
          FROM jobqueue_failure AS failure
         WHERE failure.fingerprint = %(fingerprint)s
         ORDER BY failure.finished_at DESC
         LIMIT %(most)s) AS newest
  LEFT JOIN jobqueue_archivedjob AS over ON over.id = newest.job_id
  LEFT JOIN jobqueue_queuedjob AS waiting ON waiting.id = newest.job_id
 GROUP BY 1, 2, 3, 4
"""

# Of this hour and the last one, from the index on the hour.
CRASHES: Final = """
SELECT counted.job_type, sum(counted.failed + counted.retried)::bigint
  FROM jobqueue_failurerollup AS counted
  JOIN jobqueue_failuregroup AS held ON held.fingerprint = counted.fingerprint
 WHERE counted.bucket
       >= date_trunc('hour', statement_timestamp() - interval '1 hour', 'UTC')
   AND held.error_class = %(error_class)s AND held.state <> 'ignored'
 GROUP BY counted.job_type
HAVING sum(counted.failed + counted.retried) >= %(least)s
 ORDER BY 2 DESC, 1
"""


@dataclass(slots=True)
class Figures:
    """The figures of a group in a list."""

    archived: int = 0  # jobs; at most MOST_COUNTED + 1
    sampled: int = 0  # newest failures, which the others are about
    job_types: Sequence[str] = ()
    releases: Sequence[str] = ()
    waiting: int = 0  # queued jobs whose last failure it was


@dataclass(frozen=True, slots=True)
class Share:
    """So many of a group's newest failures have all of this in common."""

    job_type: str
    queue: str  # empty if the job is gone
    worker: str  # host:pid
    release: str
    failures: int


def figures(db: Database, fingerprints: Sequence[UUID]) -> dict[UUID, Figures]:
    """The figures of these groups."""
    chosen = list(fingerprints)
    by_group = {fingerprint: Figures() for fingerprint in chosen}
    params = {"fingerprints": chosen, "most": MOST_COUNTED}
    for fingerprint, archived in db.fetch(COUNT, params):
        by_group[fingerprint].archived = archived
    params = {"fingerprints": chosen, "most": MOST_SAMPLED}
    for fingerprint, sampled, types, releases, waiting in db.fetch(SAMPLE, params):
        about = by_group[fingerprint]
        about.sampled, about.waiting = sampled, waiting
        about.job_types = types
        about.releases = [release for release in releases if release]
    return by_group


def crashes(db: Database, *, least: int) -> dict[str, int]:
    """Job types with so many attempts that ended in a crash, in this hour and the last
    one; the most first."""
    error_class = f"jobqueue.{error_class_of(crashed=True)}"
    params = {"error_class": error_class, "least": least}
    return dict(db.fetch(CRASHES, params))


def break_down(db: Database, fingerprint: UUID) -> list[Share]:
    """The common properties of a group's newest failures."""
    params = {"fingerprint": fingerprint, "most": MOST_BROKEN_DOWN}
    return [Share(*row) for row in db.fetch(BREAK_DOWN, params)]


def groups(db: Database) -> dict[str, int]:
    """The number of failure groups in each state, now."""
    return dict.fromkeys(GroupState.values, 0) | dict(db.fetch(GROUPS))
