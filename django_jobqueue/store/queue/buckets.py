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
from django_jobqueue.store.prepared import PreparedStatement

IN_FORCE: Final = f"""
(CASE {{row}}.rate_override WHEN '{NO_RATE}' THEN NULL
      ELSE coalesce({{row}}.rate_override, {{row}}.rate) END)
"""
# Of the normal text form, "100/60s burst 10"; plain SQL may have written a burst above
# the limit.
_BURST: Final = "substring({rate} FROM '[0-9]+$')::bigint"
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


class Bucket(NamedTuple):
    """The SQL of a bucket: null where there is no rate."""

    key: str
    burst: str
    gap: str

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
        """Whether a job of this weight may start now."""
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
    return Bucket(
        key, _OF_TYPE.format(value=burst, key=key), _OF_TYPE.format(value=gap, key=key)
    )


def of_key(job_type: str, key: str) -> Bucket:
    """The bucket of this key of the limit that this job type has; both are SQL."""
    rate = IN_FORCE.format(row="held")
    burst, gap = _BURST.format(rate=rate), _GAP.format(rate=rate)
    return Bucket(
        key,
        _OF_LIMIT.format(value=burst, job_type=job_type),
        _OF_LIMIT.format(value=gap, job_type=job_type),
    )


# The sum is computed in seconds, of which each number of microseconds is exact, and not
# in days, which are not of one length everywhere.
SPEND: Final = """
INSERT INTO jobqueue_bucket AS held (limit_key, full_at)
SELECT spent.key, statement_timestamp() + spent.starts * interval '1 microsecond'
  FROM {spent} AS spent (key, starts)
 WHERE spent.starts IS NOT NULL
    ON CONFLICT (limit_key) DO UPDATE
   SET full_at = greatest(held.full_at, statement_timestamp())
                 + extract(epoch FROM excluded.full_at
                                      - statement_timestamp())::float8
                   * interval '1 second'
"""


def spending(claim: str, spent: str) -> str:
    """This claim, and the starts that it spends: rows of a bucket's key and of
    microseconds, read from ``claimed``."""
    return f"""
WITH claimed AS ({claim}),
     spent AS ({SPEND.format(spent=spent)})
SELECT * FROM claimed
"""


TYPE: Final = of_type("%(job_type)s")
KEY_OF_CLAIMED: Final = of_key("%(job_type)s", "claimed.limit_key")
_SPENT_OF_TYPE: Final = f"""
(SELECT claimed.job_type, ceil({{starts}} * {TYPE.gap})::float8
   FROM claimed GROUP BY claimed.job_type)
"""
SPENT_OF_TYPE: Final = _SPENT_OF_TYPE.format(starts="count(*)")
NEXT_START: Final = PreparedStatement(f"SELECT {TYPE.next_start()}")


def spent_of_keys(of_type: str, of_key: str) -> str:
    """What the claimed jobs spend of their type and of each key: these aggregates."""
    return f"""
({_SPENT_OF_TYPE.format(starts=of_type)}
 UNION ALL
SELECT claimed.limit_key, ceil({of_key} * {KEY_OF_CLAIMED.gap})::float8
  FROM claimed
 WHERE claimed.limit_key IS NOT NULL
 GROUP BY claimed.limit_key)
"""


SPENT_OF_KEYS: Final = spent_of_keys("count(*)", "count(*)")
