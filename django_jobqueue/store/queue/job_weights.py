"""The weights of jobs in weighted rates, and the jobs that fit together."""

from __future__ import annotations

from typing import Final

from django_jobqueue.store.queue import buckets
from django_jobqueue.store.queue.buckets import Bucket
from django_jobqueue.store.rows import ClaimedJob

# 1, unless the rate counts weights. Then the job's own, or what its data say.
_WEIGHT: Final = """
CASE WHEN {rule} IS NULL THEN 1
     WHEN {row}.weight > 0 THEN {row}.weight
     ELSE jobqueue_weight({rule}, {row}.data) END
"""
_RULE: Final = """
(SELECT type.weight_rule FROM jobqueue_jobtype AS type
  WHERE type.name = {job_type} AND (type.weight_rule ->> '{of}')::boolean)
"""
RULE_OF_TYPE: Final = _RULE.format(job_type="%(job_type)s", of="of_type")
RULE_OF_KEY: Final = _RULE.format(job_type="%(job_type)s", of="of_key")
_COLUMNS: Final = ", ".join(ClaimedJob._fields)


def of_type(row: str, rule: str = RULE_OF_TYPE) -> str:
    """The weight of this row of a job in the rate of its type."""
    return _WEIGHT.format(row=row, rule=rule)


def of_key(row: str, rule: str = RULE_OF_KEY) -> str:
    """The same in the rate of its key."""
    return _WEIGHT.format(row=row, rule=rule)


OF_TYPE: Final = of_type("job")
OF_KEY: Final = of_key("job")
# The same for jobs of several types.
OF_TYPES: Final = f"""
{of_type("job", _RULE.format(job_type="job.job_type", of="of_type"))} AS of_type,
{of_key("job", _RULE.format(job_type="job.job_type", of="of_key"))} AS of_key
"""


def fitting(
    candidates: str, bucket: Bucket, *, selected: str = "candidate.ctid"
) -> str:
    """Of these candidates, no more rows than jobs may start, with a ``weight``: the
    first that together fit, or the first one alone if the bucket is full. What is
    after one that does not fit waits, so that no heavy job waits for ever."""
    return f"""
SELECT {selected}
  FROM (SELECT candidate.*, row_number() OVER rising AS place,
               sum(candidate.weight) OVER rising AS total
          FROM ({candidates}) AS candidate
        WINDOW rising AS (ROWS UNBOUNDED PRECEDING)) AS candidate
 WHERE coalesce(candidate.total <= {bucket.room}
                OR (candidate.place = 1 AND {bucket.owed} = 0), true)
"""


def of_first(jobs: str) -> str:
    """The ``weight`` of the first of these jobs, an SQL expression."""
    return f"coalesce((SELECT first.weight FROM ({jobs}) AS first), 1)"


def spending(claim: str) -> str:
    """This claim, and what its jobs spend of their type and of each key."""
    return f"""
WITH claimed ({_COLUMNS}, of_type, of_key) AS (
  {claim}, {OF_TYPE}, {OF_KEY}
), spent AS ({buckets.SPEND.format(spent=buckets.SPENT_WEIGHTS)})
SELECT {_COLUMNS} FROM claimed
"""
