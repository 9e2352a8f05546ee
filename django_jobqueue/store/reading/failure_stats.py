"""Counts failures and affected job types of failure groups, up to a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
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

# Of this hour and the last one: the groups from the index on the hour, the newest
# crashes of each from that of its failures. Jobs that a death took along are rescued by
# one statement, and so they have its moment. A death is explained if one of them was
# later found to be a culprit, which says nothing about the others.
CRASHES: Final = """
WITH lately AS (
  SELECT date_trunc('hour', statement_timestamp() - interval '1 hour', 'UTC') AS began
), crash AS MATERIALIZED (
  SELECT failure.job_id, failure.job_type, failure.worker, failure.finished_at,
         held.error_class = %(culprit)s AS is_culprit, held.state <> 'ignored' AS counts
    FROM (SELECT DISTINCT counted.fingerprint
            FROM jobqueue_failurerollup AS counted, lately
           WHERE counted.bucket >= lately.began) AS recent
    JOIN jobqueue_failuregroup AS held
      ON held.fingerprint = recent.fingerprint
     AND held.error_class IN (%(lost)s, %(culprit)s)
   CROSS JOIN LATERAL (
           SELECT failure.* FROM jobqueue_failure AS failure, lately
            WHERE failure.fingerprint = held.fingerprint
              AND failure.finished_at >= lately.began
            ORDER BY failure.finished_at DESC
            LIMIT %(most)s) AS failure
), culprit AS MATERIALIZED (
  SELECT DISTINCT job_id FROM crash WHERE is_culprit
), death AS MATERIALIZED (
  SELECT worker, finished_at, bool_or(culprit.job_id IS NOT NULL) AS is_explained
    FROM crash LEFT JOIN culprit USING (job_id)
   GROUP BY worker, finished_at
), took AS (
  SELECT killed.job_type, count(*) AS along
    FROM (SELECT DISTINCT job_type, worker, finished_at
            FROM crash JOIN culprit USING (job_id)) AS killed
    JOIN crash AS other USING (worker, finished_at)
   WHERE other.job_id NOT IN (SELECT job_id FROM culprit)
   GROUP BY killed.job_type
)
SELECT crash.job_type,
       count(*) FILTER (WHERE culprit.job_id IS NOT NULL),
       count(DISTINCT (crash.worker, crash.finished_at))
         FILTER (WHERE NOT death.is_explained),
       count(*) FILTER (WHERE death.is_explained AND culprit.job_id IS NULL),
       coalesce(max(took.along), 0)
  FROM crash
  JOIN death USING (worker, finished_at)
  LEFT JOIN culprit USING (job_id)
  LEFT JOIN took ON took.job_type = crash.job_type
 WHERE crash.counts
 GROUP BY crash.job_type
 ORDER BY 2 DESC, 3 DESC, 1
"""
MOST_CRASHES: Final = 1_000  # of a group, that are read
LOST: Final = f"jobqueue.{error_class_of(crashed=True)}"
CULPRIT: Final = f"jobqueue.{error_class_of(crashed=True, is_culprit=True)}"


@dataclass(slots=True)
class Figures:
    """The figures of a group in a list."""

    archived: int = 0  # jobs; at most MOST_COUNTED + 1
    sampled: int = 0  # newest failures, which the others are about
    job_types: Sequence[str] = ()
    releases: Sequence[str] = ()
    waiting: int = 0  # queued jobs whose last failure it was


class Share(NamedTuple):
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


class Crashes(NamedTuple):
    """The attempts at jobs of a type that ended with the death of their worker."""

    by_culprits: int = 0  # attempts at jobs that crashed alone as well
    unexplained: int = 0  # deaths of a worker that ran jobs of this type and of others
    beside: int = 0  # attempts that only ran when a culprit's worker died
    took_along: int = 0  # such attempts at others, whose worker its culprits killed

    def is_suspected(self, least: int) -> bool:
        """True if its jobs kill workers, or so many deaths may be their doing."""
        return self.by_culprits > 0 or self.unexplained >= least

    @property
    def suspected(self) -> int:
        """Attempts and deaths that are, or may be, its fault."""
        return self.by_culprits + self.unexplained

    @property
    def rank(self) -> float:
        """The greater, the worse: culprits come before all others."""
        return self.by_culprits * 1e6 + self.unexplained


def crashes(db: Database) -> dict[str, Crashes]:
    """Of each job type, in this hour and the last one; culprits first."""
    params = {"lost": LOST, "culprit": CULPRIT, "most": MOST_CRASHES}
    return {name: Crashes(*counts) for name, *counts in db.fetch(CRASHES, params)}


def break_down(db: Database, fingerprint: UUID) -> list[Share]:
    """The common properties of a group's newest failures."""
    params = {"fingerprint": fingerprint, "most": MOST_BROKEN_DOWN}
    return [Share(*row) for row in db.fetch(BREAK_DOWN, params)]


def groups(db: Database) -> dict[str, int]:
    """The number of failure groups in each state, now."""
    return dict.fromkeys(GroupState.values, 0) | dict(db.fetch(GROUPS))
