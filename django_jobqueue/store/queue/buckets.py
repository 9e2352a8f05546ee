"""Rates: how many jobs may start now, the starts that a claim spends, and when the next
one is permitted.

A bucket is one moment, at which it is full again. ``burst`` jobs may start of a full
one, and each start moves the moment on by ``gap`` (GCRA), or by as many gaps as the job
weighs. Moments are whole microseconds, as the database's clock is, and nothing is
rounded in favour of a start. Whoever claims holds the lock of the row that states the
rate.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from django_jobqueue.domain.rates import NO_RATE
from django_jobqueue.store.connection import Database
from django_jobqueue.store.notify import News
from django_jobqueue.store.prepared import PreparedStatement

IN_FORCE: Final = f"""
(CASE {{row}}.rate_override WHEN '{NO_RATE}' THEN NULL
      ELSE coalesce({{row}}.rate_override, {{row}}.rate) END)
"""
# Of the normal text form, "100/60s burst 10"; plain SQL may have written a burst above
# the limit.
_BURST: Final = "substring({rate} FROM '[0-9]+$')::bigint"
_LIMIT: Final = "substring({rate} FROM '^[0-9]+')::bigint"
_GAP: Final = """
(substring({rate} FROM '/([0-9.]+)s')::numeric * 1000000
 / greatest(1, substring({rate} FROM '^[0-9]+')::bigint
               - substring({rate} FROM '[0-9]+$')::bigint + 1))
"""
# Microseconds until the bucket is full; 0 where there is none.
_OWED: Final = """
coalesce((SELECT (extract(epoch FROM greatest(spent.full_at, statement_timestamp())
                                     - statement_timestamp()) * 1000000)::bigint
            FROM jobqueue_bucket AS spent WHERE spent.limit_key = {key}), 0)
"""
_OF_TYPE: Final = (
    "(SELECT {value} FROM jobqueue_jobtype AS type WHERE type.name = {key})"
)
_OF_LIMIT: Final = """
(SELECT {value} FROM jobqueue_jobtype AS type, jobqueue_keylimit AS held
  WHERE type.name = {job_type} AND held.name = type.limit_name)
"""
_OF_KEY: Final = f"""
(CASE WHEN {{own}} IS NULL THEN {{of_all}}
      WHEN {{own}} <> '{NO_RATE}' THEN {{of_own}} END)
"""
# Keys of a limit are a range: a name has no space, and "!" is the next character.
OF_LIMIT: Final = "{column} >= {name} || ' ' AND {column} < {name} || '!'"
_OWN_RATE: Final = """
(CASE WHEN (SELECT EXISTS (SELECT FROM jobqueue_keyoverride AS said
                            WHERE said.rate IS NOT NULL AND {range})
              FROM jobqueue_jobtype AS type WHERE type.name = {job_type})
      THEN (SELECT said.rate FROM jobqueue_keyoverride AS said
             WHERE said.limit_key = {key}) END)
"""


class Bucket(NamedTuple):
    """The SQL of a bucket: null where there is no rate."""

    key: str
    burst: str
    gap: str
    limit: str

    @property
    def owed(self) -> str:
        """Microseconds until it is full."""
        return _OWED.format(key=self.key)

    @property
    def room(self) -> str:
        """How many jobs may start now."""
        return f"""
greatest(0 * {self.burst}, {self.burst} - ceil({self.owed} / {self.gap})::bigint)
"""

    def may_be_owed(self, weight: str = "1") -> str:
        """The most microseconds with which a job of this weight, an SQL expression, may
        start. One that is heavier than the burst needs a full bucket."""
        return f"""
floor(({self.burst} - least({weight}, {self.burst})) * {self.gap})::bigint
"""

    def has_room_for(self, weight: str) -> str:
        """True if a job of this weight may start now."""
        return f"({self.room} >= {weight} OR {self.owed} = 0)"

    def next_start(self, weight: str = "1") -> str:
        """Seconds until a job of this weight may start."""
        return f"""
(greatest(0 * {self.burst}, {self.owed} - {self.may_be_owed(weight)})::float8 / 1000000)
"""


def of_type(key: str) -> Bucket:
    """The bucket of the job type of this name, an SQL expression."""
    rate = IN_FORCE.format(row="type")
    burst, gap = _BURST.format(rate=rate), _GAP.format(rate=rate)
    values = (burst, gap, _LIMIT.format(rate=rate))
    return Bucket(key, *(_OF_TYPE.format(value=value, key=key) for value in values))


def own_rate(job_type: str, key: str) -> str:
    """The rate that an operator gives this key alone; null if there is none. The first
    look, once a statement, is whether any key of the job type's limit has one."""
    keys = OF_LIMIT.format(column="said.limit_key", name="type.limit_name")
    return _OWN_RATE.format(range=keys, job_type=job_type, key=key)


def of_key(job_type: str, key: str, own: str | None = None) -> Bucket:
    """The bucket of this key of the limit that this job type has; all is SQL. ``own``
    is the rate that an operator gives the key, if the statement has it already."""
    of_all, alone = IN_FORCE.format(row="held"), own or own_rate(job_type, key)

    def value(text: str) -> str:
        return _OF_KEY.format(
            own=alone,
            of_own=text.format(rate=alone),
            of_all=_OF_LIMIT.format(value=text.format(rate=of_all), job_type=job_type),
        )

    return Bucket(key, value(_BURST), value(_GAP), value(_LIMIT))


# Of a bucket that was changed while the database's clock was ahead: what it was owed
# then counts from now.
FULL_AT: Final = """
(CASE WHEN held.changed_at > clock_timestamp() + interval '1 second'
      THEN clock_timestamp() + (held.full_at - held.changed_at)
      ELSE held.full_at END)
"""
# The sum is computed in seconds, of which each number of microseconds is exact, and not
# in days, which are not of one length everywhere.
SPEND: Final = f"""
INSERT INTO jobqueue_bucket AS held (limit_key, full_at, changed_at)
SELECT spent.key, statement_timestamp() + spent.starts * interval '1 microsecond',
       clock_timestamp()
  FROM {{spent}} AS spent (key, starts)
 WHERE spent.starts IS NOT NULL
    ON CONFLICT (limit_key) DO UPDATE
   SET full_at = greatest({FULL_AT}, statement_timestamp())
                 + extract(epoch FROM excluded.full_at
                                      - statement_timestamp())::float8
                   * interval '1 second',
       changed_at = excluded.changed_at
"""

# A spend does it for its own bucket; nothing would ever be spent of one that is full
# tomorrow.
SET_BACK: Final = f"""
WITH set_back AS (
  UPDATE jobqueue_bucket AS held
     SET full_at = {FULL_AT}, changed_at = clock_timestamp()
    FROM (SELECT limit_key FROM jobqueue_bucket
           WHERE changed_at > clock_timestamp() + interval '1 second'
           ORDER BY limit_key
             FOR NO KEY UPDATE SKIP LOCKED) AS ahead
   WHERE held.limit_key = ahead.limit_key
   RETURNING 1)
SELECT pg_notify('jobqueue', '{News.JOB_TYPES.prefix}') FROM set_back LIMIT 1
"""


def set_back(db: Database) -> None:
    """The database's clock was set back: let buckets count from now, and workers that
    wait for one ask again."""
    db.fetch(SET_BACK)


def spending(claim: str, spent: str) -> str:
    """This claim, and the starts that it spends: rows of a bucket's key and of
    microseconds, read from ``claimed``."""
    return f"""
WITH claimed AS ({claim}),
     spent AS ({SPEND.format(spent=spent)})
SELECT * FROM claimed
"""


TYPE: Final = of_type("%(job_type)s")
_OF_CLAIMED: Final = of_key("%(job_type)s", "claimed.limit_key", own="own.rate")
_SPENT_OF_TYPE: Final = f"""
(SELECT claimed.job_type, ceil({{starts}} * {TYPE.gap})::float8
   FROM claimed GROUP BY claimed.job_type)
"""
SPENT_OF_TYPE: Final = _SPENT_OF_TYPE.format(starts="count(*)")
NEXT_START: Final = PreparedStatement(f"SELECT {TYPE.next_start()}")


def spent_of_keys(of_type: str, of_key: str, units: str = "claimed.starts") -> str:
    """The claimed jobs' spending of their type and of each key: these aggregates, and
    so many ``units`` of those of a key."""
    return f"""
({_SPENT_OF_TYPE.format(starts=of_type)}
 UNION ALL
SELECT claimed.limit_key, ceil({units} * {_OF_CLAIMED.gap})::float8
  FROM (SELECT claimed.limit_key, {of_key} AS starts FROM claimed
         WHERE claimed.limit_key IS NOT NULL
         GROUP BY claimed.limit_key) AS claimed,
       LATERAL (SELECT {own_rate("%(job_type)s", "claimed.limit_key")} AS rate
                OFFSET 0) AS own)
"""


SPENT_OF_KEYS: Final = spent_of_keys("count(*)", "count(*)")
# However heavy a job is, it spends no more than a window has, or it alone would hold up
# its type for years.
SPENT_WEIGHTS: Final = spent_of_keys(
    f"least(sum(claimed.of_type), {TYPE.limit})",
    "sum(claimed.of_key)",
    f"least(claimed.starts, {_OF_CLAIMED.limit})",
)
