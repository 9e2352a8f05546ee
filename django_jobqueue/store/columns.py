"""The columns that move with a job when it is archived."""

from __future__ import annotations

from typing import Final

MOVED_NAMES: Final = (
    "id",
    "job_type",
    "queue",
    "priority",
    "data",
    "run_after",
    "expires_at",
    "created_at",
    "max_attempts",
    "timeout",
    "backoff",
    "limit_key",
    "weight",
    "replay_of",
    "root_id",
    "bulk_operation_id",
    "enqueued_by",
    "tags",
    "metadata",
    "followers",
    "follows",
)

MOVED: Final = ", ".join(MOVED_NAMES)
MOVED_OF_JOB: Final = ", ".join(f"job.{name}" for name in MOVED_NAMES)

# Plain SQL may have used an archived id again. Then the job is deleted and the archive
# stays as it is; else every attempt to move the job would fail, forever. Successes are
# archived without this: it costs 17 % of the INSERT, and 8 % of its WAL.
UNLESS_ARCHIVED: Final = "ON CONFLICT (id) DO NOTHING"

# The limit of attempts that applies to a row of ``gone``, which is archived without a
# worker that knows it; null is unlimited.
EFFECTIVE_MAX_ATTEMPTS: Final = """
         (SELECT CASE WHEN type.delivery = 'at_most_once' THEN 1
                      WHEN gone.max_attempts IS NOT NULL THEN gone.max_attempts
                      WHEN type.max_attempts_override = -1 THEN NULL
                      ELSE coalesce(type.max_attempts_override, type.max_attempts) END
            FROM jobqueue_jobtype AS type WHERE type.name = gone.job_type)"""
