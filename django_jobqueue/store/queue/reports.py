"""Writes the reports of running attempts: one row each, only for the attempt's own
claim."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.report import TakenReport
from django_jobqueue.store.connection import Database

MOST_REPORTS: Final = 20  # reports of each job, the last ones

# A claim that was lost writes nothing: its job has another fence, or no worker. What an
# atomic job told last comes when it is archived already. Both tables are read by their
# primary keys, once for each report; the job's row is not touched.
WRITE: Final = f"""
WITH told AS MATERIALIZED (
  SELECT given.*
    FROM jsonb_to_recordset(%(reports)s::jsonb) AS given (
           job_id uuid, fence bigint, number integer, done float8, total float8,
           note text, lines jsonb, dropped integer, queries integer, query_ms float8,
           ago float8)
   WHERE EXISTS (SELECT FROM jobqueue_queuedjob AS job
                  WHERE job.id = given.job_id AND job.fence = given.fence
                    AND job.worker_id IS NOT NULL)
      OR EXISTS (SELECT FROM jobqueue_archivedjob AS job
                  WHERE job.id = given.job_id AND job.attempts = given.number
                    AND job.worker = %(worker)s)
), trimmed AS (
  DELETE FROM jobqueue_report AS report
   WHERE report.id = ANY (ARRAY(
           SELECT old.id
             FROM told,
                  LATERAL (SELECT held.id
                             FROM jobqueue_report AS held
                            WHERE held.job_id = told.job_id AND held.fence < told.fence
                            ORDER BY held.fence DESC
                           OFFSET {MOST_REPORTS - 1}) AS old))
)
INSERT INTO jobqueue_report (
       job_id, fence, number, done, total, note, lines, dropped, queries, query_ms,
       started_at, updated_at)
SELECT job_id, fence, number, done, total, note, lines, dropped, queries, query_ms,
       clock_timestamp() - ago * interval '1 second', clock_timestamp()
  FROM told
    ON CONFLICT (job_id, fence) DO UPDATE
   SET done = excluded.done, total = excluded.total, note = excluded.note,
       lines = excluded.lines, dropped = excluded.dropped, queries = excluded.queries,
       query_ms = excluded.query_ms, updated_at = excluded.updated_at
"""


class Report(NamedTuple):
    """The report of one attempt."""

    job_id: UUID
    fence: int
    number: int  # of the attempt
    ago: float  # seconds since it started
    content: TakenReport


def write(db: Database, worker: str, reports: Sequence[Report]) -> None:
    """Insert these reports, or overwrite the earlier ones of the same attempts."""
    text = json.dumps([_row(report) for report in reports])
    db.run(WRITE, {"reports": text, "worker": worker})


def _row(report: Report) -> dict[str, Any]:
    content = report.content
    return {
        "job_id": str(report.job_id),
        "fence": report.fence,
        "number": report.number,
        "done": content.done,
        "total": content.total,
        "note": content.note,
        "lines": content.lines,
        "dropped": content.dropped,
        "queries": content.queries,
        "query_ms": content.query_ms,
        "ago": report.ago,
    }
