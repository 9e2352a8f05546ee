"""Hold back the jobs that share a rate: ``Retry(after=30, hold=True)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue import buckets

_KEY: Final = buckets.of_key("asked.job_type", "asked.limit_key")
_TYPE: Final = buckets.of_type("asked.job_type")
_AT: Final = """
statement_timestamp() + asked.seconds * interval '1 second'
                      + {may_be_owed} * interval '1 microsecond'
"""

# When the time is over one job may start, and the others as the rate says. A bucket
# that is emptier already stays as it is. One bucket in each statement: claims move
# several, in no order, and two that waited for each other would be a deadlock.
HOLD: Final = f"""
INSERT INTO jobqueue_bucket AS held (limit_key, full_at, changed_at)
SELECT wanted.key, wanted.full_at, clock_timestamp()
  FROM (VALUES (%(job_type)s::text, %(limit_key)s::text, %(seconds)s::float8))
       AS asked (job_type, limit_key, seconds),
       LATERAL (
         SELECT asked.limit_key, {_AT.format(may_be_owed=_KEY.may_be_owed())}
          WHERE asked.limit_key IS NOT NULL
         UNION ALL
         SELECT asked.job_type, {_AT.format(may_be_owed=_TYPE.may_be_owed())}
          WHERE asked.limit_key IS NULL OR {_KEY.gap} IS NULL
       ) AS wanted (key, full_at)
 WHERE wanted.full_at IS NOT NULL
    ON CONFLICT (limit_key) DO UPDATE
   SET full_at = greatest({buckets.FULL_AT}, excluded.full_at),
       changed_at = excluded.changed_at
RETURNING held.limit_key
"""


class Hold(NamedTuple):
    """A job's request that no job of its rate starts for this long."""

    job_type: str
    limit_key: str | None
    seconds: float

    def is_held(self, keys: set[str]) -> bool:
        """True if one of these buckets is its."""
        return self.job_type in keys or self.limit_key in keys


def hold(db: Database, asked: Sequence[Hold]) -> set[str]:
    """Hold back what these ask for; returns the keys of the buckets that were held. A
    job without a rate has none."""
    longest: dict[tuple[str, str | None], float] = {}
    for job_type, limit_key, seconds in asked:
        before = longest.get((job_type, limit_key), 0.0)
        longest[job_type, limit_key] = max(before, seconds)
    return {
        key
        for (job_type, limit_key), seconds in longest.items()
        for (key,) in db.fetch(
            HOLD, {"job_type": job_type, "limit_key": limit_key, "seconds": seconds}
        )
    }
