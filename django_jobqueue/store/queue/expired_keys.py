"""Frees the keys of jobs that never start any more: their time is over, and nobody has
archived them yet."""

from __future__ import annotations

from typing import Final

# The job itself is left to the maintenance processes.
FREE: Final = """
UPDATE jobqueue_queuedjob SET unique_key = NULL
 WHERE unique_key {of} AND status = 'queued' AND expires_at <= clock_timestamp()
"""
FREE_KEYS: Final = FREE.format(of="= ANY (%(keys)s::uuid[])")
# The key that this job would have with other data.
FREE_KEY_OF_EDIT: Final = FREE.format(
    of="""= (SELECT jobqueue_unique_key(type.name, type.unique_rule, %(data)s::jsonb)
                      FROM jobqueue_queuedjob AS job
                      JOIN jobqueue_jobtype AS type ON type.name = job.job_type
                     WHERE job.id = %(id)s)"""
)
