"""Spend of a rate while a job runs: what it used besides what it was enqueued with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue import buckets, job_weights

_SPENT: Final = """
(SELECT {key}, ceil(%(units)s * {bucket.gap})::float8 WHERE {rule} IS NOT NULL)
"""


def _spend(key: str, bucket: buckets.Bucket, rule: str) -> str:
    spent = _SPENT.format(key=key, bucket=bucket, rule=rule)
    return buckets.SPEND.format(spent=spent) + "RETURNING limit_key"


_KEY: Final = buckets.of_key("%(job_type)s", "%(limit_key)s")
SPEND_OF_TYPE: Final = _spend(
    "%(job_type)s::text", buckets.TYPE, job_weights.RULE_OF_TYPE
)
SPEND_OF_KEY: Final = _spend("%(limit_key)s::text", _KEY, job_weights.RULE_OF_KEY)


class Spent(NamedTuple):
    """A job's spending; less than 0 gives back."""

    job_type: str
    limit_key: str | None
    units: int


def spend(db: Database, spent: Iterable[Spent]) -> set[str]:
    """Spend this of the rates that count weights; returns the job types that have none.

    One bucket in each statement: claims move several, in no order, and two statements
    that waited for each other would be a deadlock.
    """
    of_types: Counter[str] = Counter()
    of_keys: Counter[tuple[str, str]] = Counter()
    for job_type, limit_key, units in spent:
        of_types[job_type] += units
        if limit_key is not None:
            of_keys[job_type, limit_key] += units
    has_rate: set[str] = set()
    for job_type, units in of_types.items():
        if db.fetch(SPEND_OF_TYPE, {"job_type": job_type, "units": units}):
            has_rate.add(job_type)
    for (job_type, limit_key), units in of_keys.items():
        params = {"job_type": job_type, "limit_key": limit_key, "units": units}
        if db.fetch(SPEND_OF_KEY, params):
            has_rate.add(job_type)
    return set(of_types) - has_rate
