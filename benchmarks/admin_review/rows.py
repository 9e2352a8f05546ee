"""The rows of a month, with what the plain lists are measured without: releases,
replays, an index on data, a job of a megabyte, and a year of audit entries."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.admin_rows import USUAL_TYPES
from benchmarks.admin_rows import fill as fill_lists

INDEXED: Final = "shop.job_2"  # a frequent type, whose jobs an index finds by order
LARGE: Final = 1_000_000  # bytes of the data of one job
AUDIT: Final = 100_000  # entries
PEOPLE: Final = 20

# A release of all workers every two days.
RELEASES: Final = """
UPDATE jobqueue_{table}
   SET release = '2026.' || floor(extract(epoch FROM bucket) / 172800)
"""

# One in a hundred succeeded jobs is a replay of one that had failed.
REPLAYS: Final = """
WITH failed AS (
    SELECT id, row_number() OVER () AS number
      FROM jobqueue_archivedjob TABLESAMPLE SYSTEM (8) REPEATABLE (1)
     WHERE status = 'failed'),
again AS (
    SELECT id, row_number() OVER () AS number
      FROM jobqueue_archivedjob TABLESAMPLE SYSTEM (1) REPEATABLE (2)
     WHERE status = 'succeeded')
UPDATE jobqueue_archivedjob AS job
   SET replay_of = failed.id, root_id = failed.id
  FROM failed JOIN again USING (number)
 WHERE job.id = again.id
"""

LARGE_JOB: Final = """
UPDATE jobqueue_archivedjob
   SET data = (SELECT jsonb_object_agg('line ' || n, jsonb_build_object(
                      'article', n, 'text', repeat(md5(n::text), 6)))
                 FROM generate_series(1, %(bytes)s / 240) AS n)
 WHERE id = (SELECT id FROM jobqueue_archivedjob WHERE status = 'failed'
              ORDER BY finished_at DESC, id DESC LIMIT 1)
"""

AUDIT_ENTRIES: Final = """
INSERT INTO jobqueue_auditentry (at, by, verb, count, about, details)
SELECT clock_timestamp() - n * interval '5 minutes', 'operator ' || n %% %(people)s,
       (ARRAY['replay', 'cancel', 'pause', 'resume', 'reschedule', 'resolve'])
           [1 + n %% 6],
       1 + n %% 50, jsonb_build_array('shop.job_' || 1 + n %% 40),
       '{"reason": "the carrier was closed"}'
  FROM generate_series(1, %(entries)s) AS n
"""

DECLARED: Final = """
UPDATE jobqueue_jobtype SET indexed = '["order"]' WHERE name = %(job_type)s
"""


def fill(archived: int, queued: int) -> None:
    """Write all of them."""
    from django.db import connection

    from django_jobqueue.store import data_indexes
    from django_jobqueue.store.connection import DjangoDatabase

    fixed: dict[str, Any] = {
        "bytes": LARGE,
        "entries": AUDIT,
        "people": PEOPLE,
        "job_type": INDEXED,
    }
    fill_lists(archived, queued, USUAL_TYPES)
    with connection.cursor() as cursor:
        for table in ("rollup", "failurerollup"):
            cursor.execute(RELEASES.format(table=table))
        for statement in (REPLAYS, LARGE_JOB, AUDIT_ENTRIES, DECLARED):
            cursor.execute(statement, fixed)
    db = DjangoDatabase()
    for index in data_indexes.differences(db).missing:
        data_indexes.make(db, index)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
