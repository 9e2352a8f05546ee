"""The only definition of a job that was replayed already."""

from __future__ import annotations

from typing import Final

# A replay that is over and was never started did nothing: it was cancelled, failed by
# hand or expired before. An operator who undid a replay must be able to repeat it.
# ``again`` is the replay's row in the archive; one in the queue always counts.
RAN: Final = """(again.status = 'succeeded' OR again.started_at IS NOT NULL
      OR again.attempts > 0 OR again.crashes > 0)"""

# Not EXISTS, of which the planner may make a scan of the whole table. ``{table}`` is
# the table of the job.
IS_REPLAYED: Final = f"""(
    (SELECT true FROM jobqueue_queuedjob AS again
      WHERE again.replay_of = {{table}}.id LIMIT 1) IS NOT NULL
 OR (SELECT true FROM jobqueue_archivedjob AS again
      WHERE again.replay_of = {{table}}.id AND {RAN} LIMIT 1) IS NOT NULL)"""

# The replays of many jobs at once, and whether they succeeded.
REPLAYS: Final = f"""
  SELECT again.replay_of, again.status = 'succeeded' AS succeeded
    FROM jobqueue_archivedjob AS again
   WHERE again.replay_of = ANY (%(ids)s::uuid[]) AND {RAN}
  UNION ALL
  SELECT again.replay_of, false
    FROM jobqueue_queuedjob AS again
   WHERE again.replay_of = ANY (%(ids)s::uuid[])
"""
