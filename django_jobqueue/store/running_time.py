"""How long attempts have run that no process of ours measures: those of remote workers
and of endpoints.

The database's clock may be set, and then the time since an attempt started says
nothing. So time counts from one moment at which the holder was seen to the next, as its
row has them. If these are further apart than they can be, the clock leapt, and what it
leapt does not count: the start of the attempt moves on as far.
"""

from __future__ import annotations

from typing import Final

# Seconds between two looks at endpoints, which every host takes; more do not count.
# Remote workers that say nothing for their lease are given up.
LONGEST_UNSEEN: Final = 60
_LONGEST: Final = f"""
coalesce(worker.lease_seconds,
         CASE WHEN worker.state = 'endpoint' THEN {LONGEST_UNSEEN} END)
"""
_SEEN: Final = "greatest(worker.renewed_at, job.started_at)"
_LEAPT: Final = f"""
coalesce(clock_timestamp() > {_SEEN} + {_LONGEST} * interval '1 second', false)
"""

# Seconds; of the rows ``job`` and ``worker``, which holds it.
RAN: Final = f"""
greatest(0, extract(epoch FROM CASE WHEN {_LEAPT} THEN {_SEEN} ELSE clock_timestamp()
                               END - job.started_at))::float8
"""

# To be done as the holders are seen: ``seen`` has their rows as they were before,
# locked. What started later than now, by a clock that was set back since, starts now.
# Seconds, since days are not of one length everywhere.
KEEP_STARTS: Final = f"""
moved AS MATERIALIZED (
  SELECT job.id, CASE WHEN {_LEAPT}
                      THEN extract(epoch FROM clock_timestamp() - {_SEEN})::float8
                      ELSE 0 END AS leapt
    FROM seen AS worker
    JOIN jobqueue_queuedjob AS job
      ON job.status = 'running' AND job.worker_id = worker.id
   WHERE {_LEAPT} OR job.started_at > clock_timestamp()
   ORDER BY job.id
     FOR NO KEY UPDATE OF job
), kept AS (
  UPDATE jobqueue_queuedjob AS job
     SET started_at = least(job.started_at + moved.leapt * interval '1 second',
                            clock_timestamp())
    FROM moved
   WHERE job.id = moved.id
)
"""
