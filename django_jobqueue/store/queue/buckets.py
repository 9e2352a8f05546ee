"""Rates: how many jobs may start now, the starts that a claim spends, and when the next
one is permitted.

A bucket is one moment, at which it is full again. ``burst`` jobs may start of a full
one, and each start moves the moment on by ``gap`` (GCRA). All is counted in whole
microseconds, as the database's clock is, so that nothing is rounded in favour of a
start. Whoever spends holds the lock of the row that states the rate.
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
ceil(substring({rate} FROM '/([0-9.]+)s')::numeric * 1000000
     / greatest(1, substring({rate} FROM '^[0-9]+')::bigint
                   - substring({rate} FROM '[0-9]+$')::bigint + 1))::bigint
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
greatest(0 * {self.gap},
         {self.burst} - ({self.owed} + {self.gap} - 1) / {self.gap})
"""

    @property
    def next_start(self) -> str:
        """Seconds until the next start is permitted."""
        return f"""
greatest(0 * {self.gap},
         {self.owed} - ({self.burst} - 1) * {self.gap})::float8 / 1000000
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
SPENT_OF_TYPE: Final = f"""
(SELECT claimed.job_type, count(*) * {TYPE.gap} FROM claimed GROUP BY claimed.job_type)
"""
NEXT_START: Final = PreparedStatement(f"SELECT {TYPE.next_start}")
SPENT_OF_KEYS: Final = f"""
({SPENT_OF_TYPE}
 UNION ALL
SELECT claimed.limit_key, count(*) * {of_key("%(job_type)s", "claimed.limit_key").gap}
  FROM claimed
 WHERE claimed.limit_key IS NOT NULL
 GROUP BY claimed.limit_key)
"""
