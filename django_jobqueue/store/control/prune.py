"""Prune: archived → deleted, by status and age, in small batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.store.connection import Database

BATCH: Final = 1_000
OLDEST: Final = (datetime.min.replace(tzinfo=UTC), UUID(int=(1 << 128) - 1))

OVERRIDDEN: Final = """
SELECT name, extract(epoch FROM keep_succeeded_override)::float8,
       extract(epoch FROM keep_unsuccessful_override)::float8
  FROM jobqueue_jobtype
 WHERE keep_succeeded_override IS NOT NULL OR keep_unsuccessful_override IS NOT NULL
"""

CUTOFF: Final = "SELECT clock_timestamp() - %(keep)s * interval '1 second'"

# Of each job type that has too many, the end of the last job that is kept. Jobs that
# ended in the same moment as that one stay, too.
_TOO_MANY = """
SELECT type.name, kept.cutoff
  FROM jobqueue_jobtype AS type,
       LATERAL (SELECT max(two.finished_at) AS cutoff
                  FROM (SELECT job.finished_at
                          FROM jobqueue_archivedjob AS job
                         WHERE job.job_type = type.name AND {condition}
                               job.status = %(status)s
                         ORDER BY job.finished_at DESC, job.id DESC
                        OFFSET %(count)s - 1 LIMIT 2) AS two
                HAVING count(*) = 2) AS kept
 WHERE %(only_type)s::text IS NULL OR type.name = %(only_type)s
"""

# A window of the archive from the oldest on, after a position, so that what is kept is
# walked once a pass and not once a batch. The conditions that name a job type are
# filled in where a type has a retention of its own, and take its index.
_WINDOW = """
  SELECT job.ctid AS place, job.id, job.finished_at, job.status
    FROM jobqueue_archivedjob AS job
   WHERE job.finished_at < %(cutoff)s
     AND (job.finished_at, job.id) > (%(after)s, %(after_id)s)
     AND {condition}
   ORDER BY job.finished_at, job.id
   LIMIT %(batch)s
"""
# Only what goes is locked: to lock a thousand jobs that are kept, each on a page of its
# own, wrote 6 MB of WAL.
_PRUNE = f"""
WITH seen AS MATERIALIZED ({_WINDOW}
), gone AS (
  DELETE FROM jobqueue_archivedjob AS job
   WHERE job.ctid = ANY (ARRAY(
         SELECT held.ctid
           FROM jobqueue_archivedjob AS held
          WHERE held.ctid = ANY (ARRAY(
                SELECT seen.place FROM seen WHERE seen.status = %(status)s))
            FOR UPDATE SKIP LOCKED))
  RETURNING job.id
), failures AS (
  DELETE FROM jobqueue_failure AS failure
   USING gone
   WHERE failure.job_id = gone.id
), reports AS (
  DELETE FROM jobqueue_report AS report
   USING gone
   WHERE report.job_id = gone.id
)
SELECT (SELECT count(*) FROM gone), seen.finished_at, seen.id
  FROM seen
 ORDER BY seen.finished_at DESC, seen.id DESC
 LIMIT 1
"""
_COUNT = """
SELECT count(*) FROM jobqueue_archivedjob AS job
 WHERE job.finished_at < %(cutoff)s AND job.status = %(status)s AND {condition}
"""
_OF_TYPE = "job.job_type = %(job_type)s"
_OF_OTHERS = "job.job_type <> ALL (%(but_for)s::text[])"
_UNSUCCESSFUL = "job.status <> 'succeeded' AND job.status = %(status)s AND "

PRUNE_IDS: Final = """
WITH gone AS (
  DELETE FROM jobqueue_archivedjob AS job
   WHERE job.id = ANY (%(ids)s::uuid[])
  RETURNING job.id
), failures AS (
  DELETE FROM jobqueue_failure AS failure
   USING gone
   WHERE failure.job_id = gone.id
), reports AS (
  DELETE FROM jobqueue_report AS report
   USING gone
   WHERE report.job_id = gone.id
)
SELECT id FROM gone
"""

# What a job left behind that is gone without its pruning: its row was deleted by other
# means, or somebody wrote after that. Only the next rows: all are looked at in time.
# Subqueries that have values cannot become joins of whole tables.
_LEFT = """
WITH seen AS MATERIALIZED (
  SELECT id, job_id FROM {table} WHERE id > %(after)s ORDER BY id LIMIT %(batch)s
), gone AS (
  DELETE FROM {table} AS row
   USING seen
   WHERE row.id = seen.id
     AND coalesce(
         (SELECT false FROM jobqueue_queuedjob AS job WHERE job.id = seen.job_id),
         (SELECT false FROM jobqueue_archivedjob AS job WHERE job.id = seen.job_id),
         true)
)
SELECT coalesce(max(id), 0) FROM seen
"""
LEFT: Final = {
    table: _LEFT.format(table=table)
    for table in ("jobqueue_failure", "jobqueue_report")
}

# A window that an enqueue takes this moment is left to it.
CLOSE_WINDOWS: Final = """
WITH over AS MATERIALIZED (
  SELECT held.key FROM jobqueue_uniquewindow AS held
   WHERE held.held_until <= clock_timestamp()
   ORDER BY held.held_until
   LIMIT %(batch)s
     FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM jobqueue_uniquewindow AS held
   WHERE held.key = ANY (ARRAY (SELECT key FROM over))
  RETURNING held.key
)
SELECT count(*) FROM gone
"""

# Full for a minute, so that a clock that was put back by less has lost nothing. Not for
# longer: a claim that finds no key with room passes all that are full, under the lock
# of their limit. What a claim moves on this moment is left to it.
DROP_BUCKETS: Final = """
WITH full_ones AS MATERIALIZED (
  SELECT bucket.limit_key FROM jobqueue_bucket AS bucket
   WHERE bucket.full_at <= clock_timestamp() - interval '1 minute'
   LIMIT %(batch)s
     FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM jobqueue_bucket AS bucket
   WHERE bucket.limit_key = ANY (ARRAY (SELECT limit_key FROM full_ones))
  RETURNING bucket.limit_key
)
SELECT count(*) FROM gone
"""

# Groups without a failure left, that nobody has decided anything about.
FORGET_GROUPS: Final = """
DELETE FROM jobqueue_failuregroup AS held
 WHERE held.state = 'open' AND held.assignee = '' AND held.notes = ''
   AND held.first_seen < clock_timestamp() - interval '1 day'
   AND NOT EXISTS (SELECT FROM jobqueue_failure AS failure
                    WHERE failure.fingerprint = held.fingerprint)
   AND NOT EXISTS (SELECT FROM jobqueue_archivedjob AS job
                    WHERE job.fingerprint = held.fingerprint)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The archived jobs that are old enough to go, or one too many."""

    status: str
    keep: float = 0.0  # seconds
    count: int | None = None  # how many are kept, instead
    cutoff: datetime | None = field(default=None, compare=False)  # of those
    job_type: str | None = None  # None is every type without a rule of its own
    but_for: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """The part of the statement that makes the planner take the right index."""
        own = _OF_TYPE if self.job_type is not None else _OF_OTHERS
        succeeded = self.status == ArchivedStatus.SUCCEEDED
        return own if succeeded else _UNSUCCESSFUL + own

    def params(self, cutoff: datetime) -> dict[str, Any]:
        """The parameters of the statements above."""
        return {
            "status": self.status,
            "cutoff": cutoff,
            "job_type": self.job_type,
            "but_for": list(self.but_for),
            "batch": BATCH,
        }


@dataclass(slots=True)
class Walk:
    """The position of a rule in the archive, from the oldest job on.

    A later round does not read the jobs again that were not deleted.
    """

    position: tuple[datetime, UUID] = OLDEST


def rules(
    db: Database,
    retention: Mapping[str, float | None],
    counts: Mapping[str, int | None] = MappingProxyType({}),
    *,
    only_type: str | None = None,
) -> list[Rule]:
    """The rules in force: the settings', by age and by number, and those of job types
    with their own."""
    own: dict[str, dict[str, float]] = {}
    for name, succeeded, unsuccessful in db.fetch(OVERRIDDEN, {}):
        for status in ArchivedStatus.values:
            keep = succeeded if status == ArchivedStatus.SUCCEEDED else unsuccessful
            if keep is not None:
                own.setdefault(status, {})[name] = keep
    in_force = [
        Rule(status=status, keep=keep, job_type=name)
        for status, by_type in own.items()
        for name, keep in by_type.items()
        if only_type in (None, name)
    ]
    for status, general in retention.items():
        exempt = own.get(status, {})
        if general is None or (only_type is not None and only_type in exempt):
            continue
        in_force.append(
            Rule(
                status=status,
                keep=general,
                job_type=only_type,
                but_for=tuple(exempt),
            )
        )
    for status, number in counts.items():
        if number is not None:
            in_force += _too_many(db, status, number, only_type)
    return in_force


def _too_many(
    db: Database, status: str, count: int, only_type: str | None
) -> list[Rule]:
    succeeded = status == ArchivedStatus.SUCCEEDED
    condition = "" if succeeded else "job.status <> 'succeeded' AND"
    params = {"status": status, "count": count, "only_type": only_type}
    rows = db.fetch(_TOO_MANY.format(condition=condition), params)
    return [
        Rule(status=status, count=count, job_type=name, cutoff=cutoff)
        for name, cutoff in rows
    ]


def _cutoff_of(db: Database, rule: Rule) -> datetime:
    """Jobs that ended before this go."""
    if rule.cutoff is not None:
        return rule.cutoff
    cutoff: datetime = db.fetch(CUTOFF, {"keep": rule.keep})[0][0]
    return cutoff


def prune(db: Database, rule: Rule, walk: Walk | None = None) -> Iterator[int]:
    """Delete what this rule lets go; yields the number of each batch."""
    walk = walk or Walk()
    cutoff = _cutoff_of(db, rule)
    statement = _PRUNE.format(condition=rule.condition)
    params = rule.params(cutoff)
    while True:
        after, after_id = walk.position
        rows = db.fetch(statement, {**params, "after": after, "after_id": after_id})
        if not rows:
            return
        ((gone, *position),) = rows
        walk.position = tuple(position)
        yield gone


def prune_ids(db: Database, ids: Sequence[UUID]) -> list[UUID]:
    """Delete these archived jobs and their failures; return those that there were."""
    return [id for (id,) in db.fetch(PRUNE_IDS, {"ids": list(ids)})]


def count(db: Database, rule: Rule) -> int:
    """The number of jobs that this rule would delete."""
    cutoff = _cutoff_of(db, rule)
    statement = _COUNT.format(condition=rule.condition)
    number: int = db.fetch(statement, rule.params(cutoff))[0][0]
    return number


def close_windows(db: Database) -> bool:
    """Delete unique windows that are over, at most a batch; whether it was full."""
    ((closed,),) = db.fetch(CLOSE_WINDOWS, {"batch": BATCH})
    return bool(closed == BATCH)


def drop_buckets(db: Database) -> bool:
    """Delete buckets of rates that have been full for long, at most a batch; whether it
    was full."""
    ((dropped,),) = db.fetch(DROP_BUCKETS, {"batch": BATCH})
    return bool(dropped == BATCH)


def tidy(db: Database, walked: dict[str, int]) -> None:
    """Delete of the next failures and reports those whose job is gone; ``walked`` has
    how far that went, by table, and is changed."""
    for table, statement in LEFT.items():
        params = {"after": walked.get(table, 0), "batch": BATCH}
        ((walked[table],),) = db.fetch(statement, params)


def forget_groups(db: Database) -> None:
    """Delete failure groups that have no failure left and that nobody cared about."""
    db.run(FORGET_GROUPS)
