"""Claim from a lane whose job type has a limit by key, key by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Self

from django_jobqueue.domain.rates import NO_RATE
from django_jobqueue.store.connection import Database, Params
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.queue import buckets
from django_jobqueue.store.queue.claim import CLAIMED, IS_OPEN, LOCK
from django_jobqueue.store.queue.claim_limited import LOCK_TYPE, RUNNING_OF_KEY
from django_jobqueue.store.queue.lanes import Mark
from django_jobqueue.store.rows import ClaimedJob, Lane, claimed_jobs

WALK: Final = 1_000  # keys that a claim looks at: 9 ms if none has room
ADOPTED: Final = 1_000  # jobs looked at, at once
MOST_RETRIES: Final = 1_000  # of which the first that is due is looked for

# Before the claim, in the same transaction: the snapshot of a claim must be younger
# than the lock that it waited for. One statement is not enough: two claims that see
# different heads of a key, because a retry came in front, take one each. Enqueues do
# not lock this row.
LOCK_LIMIT: Final = PreparedStatement("""
SELECT name FROM jobqueue_keylimit WHERE name = %(limit_name)s FOR NO KEY UPDATE
""")

_IN_LANE: Final = """
       {row}.status = 'queued' AND NOT {row}.quarantined AND {row}.limit_key IS NOT NULL
   AND {row}.queue = %(queue)s AND {row}.priority = %(priority)s::smallint
   AND {row}.job_type = %(job_type)s
"""
LANE: Final = _IN_LANE.format(row="job")
# Without a variable: each is computed once a claim.
_OF_TYPE: Final = """
(SELECT CASE type.concurrency_override WHEN -1 THEN NULL
             ELSE coalesce(type.concurrency_override, type.concurrency) END
   FROM jobqueue_jobtype AS type WHERE type.name = %(job_type)s)
"""
_OF_ALL_KEYS: Final = """
(SELECT coalesce(held.concurrency_override, held.concurrency)
   FROM jobqueue_keylimit AS held WHERE held.name = %(limit_name)s)
"""
# What an operator says of one key, looked up once for each.
_OF_KEY: Final = f"""
SELECT nullif(coalesce(said.concurrency, {_OF_ALL_KEYS}), -1) AS most, said.rate,
       greatest(0, %(each)s * coalesce(said.share, 1)
                   - CASE WHEN key.limit_key = %(first)s THEN %(taken)s ELSE 0 END)
       AS turn
  FROM (VALUES (1)) AS one
  LEFT JOIN jobqueue_keyoverride AS said ON said.limit_key = key.limit_key
OFFSET 0
"""
ROOM: Final = f"""
CASE WHEN of_key.most IS NULL THEN of_key.turn
     ELSE greatest(0, least(of_key.turn, of_key.most
                            - {RUNNING_OF_KEY.format(key="key.limit_key")})) END
"""
WITHIN_TYPE: Final = f"""
CASE WHEN {_OF_TYPE} IS NULL THEN %(limit)s::bigint
     ELSE greatest(0, least(%(limit)s, {_OF_TYPE}
            - (SELECT count(*) FROM jobqueue_queuedjob AS other
                WHERE other.status = 'running' AND other.job_type = %(job_type)s))) END
"""
_HAS_NO_RATE: Final = f"""
(SELECT {buckets.IN_FORCE.format(row="type")} IS NULL
        AND NOT EXISTS (SELECT FROM jobqueue_keylimit AS held
                         WHERE held.name = %(limit_name)s
                           AND {buckets.IN_FORCE.format(row="held")} IS NOT NULL)
   FROM jobqueue_jobtype AS type WHERE type.name = %(job_type)s)
"""
_OPEN: Final = IS_OPEN.format(queue="%(queue)s", job_type="%(job_type)s")
_WAITS: Final = "({row}.expires_at IS NULL OR {row}.expires_at > statement_timestamp())"
_NOT_EXPIRED: Final = _WAITS.format(row="job")
_FIRST: Final = f"{_IN_LANE} AND {_WAITS}".format(row="first")

# Several jobs of a key are read from the index, which the order pins, as above.
_OF_THIS_KEY: Final = f"""(
           SELECT job.ctid{{columns}}
             FROM jobqueue_queuedjob AS job
            WHERE {LANE}
              AND job.limit_key >= key.limit_key AND job.limit_key <= key.limit_key
              AND job.run_after <= statement_timestamp() AND {_NOT_EXPIRED}
            ORDER BY job.limit_key, job.run_after, job.id
            LIMIT {{most}}
              {{lock}})"""


def several(room: str = ROOM, columns: str = "", lock: str = LOCK) -> str:
    """The first jobs of the key, with these further columns."""
    return _OF_THIS_KEY.format(most=room, columns=columns, lock=lock)


# One is its head, which the walk has found; or the next one, if that has expired, or
# somebody has locked it.
_HEAD: Final = f"""(
           SELECT * FROM (
           SELECT job.ctid{{columns}}
             FROM jobqueue_queuedjob AS job
            WHERE job.ctid = key.head AND job.status = 'queued' AND {_NOT_EXPIRED}
              {{lock}}) AS head
           UNION ALL
           SELECT * FROM {{next}} AS next
            LIMIT {{room}})"""


def head(room: str = ROOM, columns: str = "", lock: str = LOCK) -> str:
    """The first job of the key that nobody has locked, likewise."""
    following = several("1", columns, lock)
    return _HEAD.format(room=room, columns=columns, lock=lock, next=following)


# Where the order is strict, a job that was started before goes before the head,
# whenever it is due and whichever lane it is in: it waits for a retry, or a process of
# its own. Another one runs only when it is over.
_IN_ORDER: Final = f"""(
           SELECT job.ctid{{columns}}
             FROM jobqueue_queuedjob AS job
            WHERE job.ctid = coalesce(
                    (SELECT started.ctid
                       FROM jobqueue_queuedjob AS started
                      WHERE started.status = 'queued' AND started.fence <> 0
                        AND started.limit_key >= key.limit_key
                        AND started.limit_key <= key.limit_key
                      ORDER BY started.limit_key, started.run_after, started.id
                      LIMIT 1),
                    (SELECT first.ctid
                       FROM jobqueue_queuedjob AS first
                      WHERE {_FIRST}
                        AND first.limit_key >= key.limit_key
                        AND first.limit_key <= key.limit_key
                      ORDER BY first.limit_key, first.run_after, first.id
                      LIMIT 1))
              AND {LANE}
              AND job.run_after <= statement_timestamp() AND {_NOT_EXPIRED}
            LIMIT greatest(0, least({{room}},
                                    1 - {RUNNING_OF_KEY.format(key="key.limit_key")}))
              {{lock}})"""


def in_order(room: str = ROOM, columns: str = "", lock: str = LOCK) -> str:
    """The job of the key that goes before all others, likewise."""
    return _IN_ORDER.format(room=room, columns=columns, lock=lock)


# The keys form a circle, which begins at `first`: from there to the end, and from the
# beginning to there.
_CIRCLE: Final = f"""
                SELECT around.limit_key, around.run_after, around.head
                  FROM (VALUES (%(first)s::text COLLATE "C", NULL::text COLLATE "C"),
                               ('', %(first)s::text)) AS half (since, until),
                       LATERAL (
                         WITH RECURSIVE key AS (
                           (SELECT job.limit_key, job.run_after, job.ctid AS head
                              FROM jobqueue_queuedjob AS job
                             WHERE {LANE} AND job.limit_key >= half.since
                             ORDER BY job.limit_key, job.run_after, job.id
                             LIMIT 1)
                           UNION ALL
                           SELECT next.limit_key, next.run_after, next.ctid
                             FROM key,
                                  LATERAL (
                                    SELECT job.limit_key, job.run_after, job.ctid
                                      FROM jobqueue_queuedjob AS job
                                     WHERE {LANE} AND job.limit_key > key.limit_key
                                     ORDER BY job.limit_key, job.run_after, job.id
                                     LIMIT 1) AS next
                            WHERE half.until IS NULL OR next.limit_key < half.until)
                         SELECT * FROM key
                          WHERE half.until IS NULL OR key.limit_key < half.until
                       ) AS around"""
_DUE: Final = f"""
                  FROM jobqueue_queuedjob AS job
                 WHERE {LANE} AND job.run_after <= statement_timestamp()
                   AND {_NOT_EXPIRED}
                 ORDER BY job.run_after, job.id
                 LIMIT {WALK}"""
# The keys of the jobs that are due for longest, in the order of the circle.
_OLDEST: Final = f"""
                SELECT waiting.*
                  FROM (SELECT DISTINCT ON (due.limit_key)
                               due.limit_key, due.run_after, due.head
                          FROM (SELECT job.limit_key, job.run_after, job.id,
                                       job.ctid AS head{_DUE}) AS due
                         ORDER BY due.limit_key, due.run_after, due.id) AS waiting
                 ORDER BY waiting.limit_key < %(first)s, waiting.limit_key"""

# The circle is walked only as far as jobs are wanted: a key without room costs one
# probe and one count, however many jobs of it wait. Whoever has read other policies,
# and so has not locked, gets nothing.
_PICK: Final = f"""
       SELECT picked.ctid{{picked}}
         FROM ((SELECT * FROM ({_CIRCLE}) AS circle
                 WHERE NOT %(oldest)s
                 LIMIT {WALK})
               UNION ALL
               (SELECT * FROM ({_OLDEST}) AS oldest WHERE %(oldest)s)) AS key,
              LATERAL ({_OF_KEY}) AS of_key,
              LATERAL {{jobs}} AS picked
        WHERE key.run_after <= statement_timestamp()
          AND {_OPEN} {{condition}}
          AND (%(locks_limit)s OR of_key.most IS NULL)
          AND (%(locks_type)s OR {_OF_TYPE} IS NULL)
          AND (%(sees_rates)s
               OR (coalesce(of_key.rate, '{NO_RATE}') = '{NO_RATE}' AND {_HAS_NO_RATE}))
        LIMIT {{limit}}
"""
_WITHOUT_ORDER: Final = """
          AND NOT coalesce((SELECT held.strict FROM jobqueue_keylimit AS held
                             WHERE held.name = %(limit_name)s), false)
"""


JobsOfKey = Callable[
    ..., str
]  # of a room, further columns and a lock: one of the above


def pick(jobs: str, condition: str, limit: str = WITHIN_TYPE, picked: str = "") -> str:
    """The jobs of a lane that a claim takes, with these further columns of theirs."""
    return _PICK.format(jobs=jobs, condition=condition, limit=limit, picked=picked)


class KeyedClaim(NamedTuple):
    """The statements of a claim by key. All but the last one give nothing where the
    order is strict."""

    heads: str
    several: str
    in_order: str

    @classmethod
    def made_by(cls, make: Callable[[JobsOfKey, str], str]) -> Self:
        """Make each of the jobs that it takes of a key, and of a condition."""
        return cls(
            make(head, _WITHOUT_ORDER),
            make(several, _WITHOUT_ORDER),
            make(in_order, ""),
        )

    def of(self, keyed: KeyedLane) -> str:
        """The one for this lane."""
        if keyed.strict:
            return self.in_order
        return self.heads if keyed.takes_heads else self.several


def _claim(jobs: JobsOfKey, condition: str) -> PreparedStatement:
    return PreparedStatement(CLAIMED.format(pick=pick(jobs(), condition)))


CLAIM: Final = KeyedClaim.made_by(_claim)

# The last key that a claim looked at, unless it went around the whole circle; and then
# whether the oldest jobs are all that are due.
STOPPED: Final = PreparedStatement(f"""
SELECT last.limit_key,
       last.limit_key IS NULL OR (SELECT count(*) < {WALK} FROM (SELECT {_DUE}) AS due)
  FROM (SELECT (SELECT circle.limit_key FROM ({_CIRCLE}) AS circle
                OFFSET {WALK} - 1 LIMIT 1) AS limit_key) AS last
""")

# A lane does not say when a job is due that goes before its head.
NEXT_RETRY: Final = PreparedStatement(f"""
SELECT date_part('epoch', min(next.run_after) - statement_timestamp())
  FROM (SELECT job.run_after
          FROM jobqueue_queuedjob AS job
         WHERE job.status = 'queued' AND job.fence <> 0
           AND {buckets.OF_LIMIT.format(column="job.limit_key", name="%(limit_name)s")}
           AND job.run_after > statement_timestamp()
         ORDER BY job.limit_key, job.run_after, job.id
         LIMIT {MOST_RETRIES}) AS next
""")

# Jobs that came without a key: of plain SQL, of a release before, or from before the
# type had a limit. So many are looked at, whether they have one or not.
ADOPT: Final = f"""
WITH passed AS MATERIALIZED (
  SELECT job.ctid, job.run_after, job.id, job.limit_key
    FROM jobqueue_queuedjob AS job
   WHERE job.status = 'queued' AND NOT job.quarantined AND job.queue = %(queue)s
     AND job.priority = %(priority)s::smallint AND job.job_type = %(job_type)s
     AND (job.run_after, job.id) > (%(since)s::timestamptz, %(since_id)s::uuid)
   ORDER BY job.run_after, job.id
   LIMIT {ADOPTED}
), adopted AS (
  UPDATE jobqueue_queuedjob AS job
     SET limit_key = jobqueue_limit_key(type.limit_rule, job.data)
    FROM jobqueue_jobtype AS type
   WHERE type.name = %(job_type)s AND type.limit_rule IS NOT NULL
     AND job.ctid = ANY (ARRAY (
           SELECT free.ctid
             FROM jobqueue_queuedjob AS free
            WHERE free.ctid = ANY (ARRAY (SELECT passed.ctid FROM passed
                                           WHERE passed.limit_key IS NULL))
              AND free.status = 'queued' AND free.limit_key IS NULL
              FOR UPDATE SKIP LOCKED))
  RETURNING 1
)
SELECT (SELECT count(*) FROM adopted), (SELECT count(*) FROM passed), run_after, id
  FROM passed
 ORDER BY run_after DESC, id DESC
 LIMIT 1
"""


class KeyedLane(NamedTuple):
    """A lane that is claimed key by key, and which of its rows are locked first."""

    lane: Lane
    limit_name: str
    locks_limit: bool  # the keys are limited, and do not only take turns
    locks_type: bool  # the job type has a limit, too
    first: str = ""  # the key that the circle begins at
    each: int = 1  # turns of a key at once, of one job or as many as its share
    has_shares: bool = False  # some keys have more than one job in a turn
    strict: bool = False  # a key waits for the retry of its first job
    taken: int = 0  # jobs of the first key that this turn of it has had
    ignores_rates: bool = False  # the caller's time does not pass
    oldest: bool = False  # the keys of the oldest jobs, instead of the circle

    @property
    def takes_heads(self) -> bool:
        """True if no key has more than one job in a turn."""
        return self.each == 1 and not self.has_shares


def claim_keyed(
    db: Database, worker: int, keyed: KeyedLane, limit: int
) -> list[ClaimedJob]:
    """Claim up to ``limit`` jobs of a lane, within the limit of each key, and of the
    job type if it has one. Where there is a rate it claims nothing, unless rates are
    ignored."""
    params = keyed_params(worker, keyed, limit, sees_rates=keyed.ignores_rates)
    claim = CLAIM.of(keyed)
    if not keyed.locks_limit and not keyed.locks_type:
        return claimed_jobs(db.fetch(claim, params))
    statements: list[tuple[str, Params]] = [(claim, params)]
    if keyed.locks_type:
        statements.insert(0, (LOCK_TYPE, params))
    if keyed.locks_limit:
        statements.insert(0, (LOCK_LIMIT, params))
    return claimed_jobs(db.fetch_all(statements)[-1])


def keyed_params(
    worker: int, keyed: KeyedLane, limit: int, *, sees_rates: bool
) -> dict[str, Any]:
    """The parameters of a claim by key."""
    return {
        **_params(keyed.lane),
        "limit_name": keyed.limit_name,
        "locks_limit": keyed.locks_limit,
        "locks_type": keyed.locks_type,
        "sees_rates": sees_rates,
        "first": keyed.first,
        "each": keyed.each,
        "taken": keyed.taken,
        "oldest": keyed.oldest,
        "limit": limit,
        "worker": worker,
    }


def stopped(db: Database, keyed: KeyedLane) -> tuple[str | None, bool]:
    """The last key that a claim which begins here looks at; None if these are all. And
    whether a claim by the ``oldest`` jobs would look at all that are due."""
    params = {**_params(keyed.lane), "first": keyed.first}
    ((last, is_all),) = db.fetch(STOPPED, params)
    return last, is_all


def next_retry(db: Database, limit_name: str) -> float | None:
    """Seconds until a job that was started before is due, of a limit whose order is
    strict; None if there is none."""
    ((seconds,),) = db.fetch(NEXT_RETRY, {"limit_name": limit_name})
    return None if seconds is None else float(seconds)


def adopt(db: Database, lane: Lane, since: Mark) -> tuple[int, Mark | None]:
    """Give jobs after this mark that have no key theirs; return how many they were,
    and where to go on. None is from the beginning: this was the end of the lane."""
    params = {**_params(lane), "since": since[0], "since_id": since[1]}
    rows = db.fetch(ADOPT, params)
    if not rows:
        return 0, None
    adopted, passed, run_after, id = rows[0]
    return adopted, (run_after, id) if passed == ADOPTED else None


def _params(lane: Lane) -> dict[str, Any]:
    return lane._asdict()
