"""The rows that the admin's pages are measured on: a month of a busy project."""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.histogram import BUCKETS

USUAL_TYPES: Final = 40
GROUPS: Final = 10_000
WORKERS: Final = 20

JOB_TYPES = """
INSERT INTO jobqueue_jobtype (name, queue)
SELECT 'shop.job_' || n, 'queue_' || n %% 5 FROM generate_series(1, %(types)s) AS n
    ON CONFLICT DO NOTHING
"""

WORKER_ROWS = """
INSERT INTO jobqueue_worker (name, host, pid, threads, job_types, lease_until)
SELECT 'web-' || n || ':4100', 'web-' || n, 4100, 10,
       (SELECT jsonb_agg(name) FROM jobqueue_jobtype),
       clock_timestamp() + interval '1 day'
  FROM generate_series(1, %(workers)s) AS n
"""

# 76 % succeeded, 20 % failed, 2 % expired, 2 % cancelled, over 30 days; half of the
# jobs are of a few types, and one type has very few. The ids are of the times.
ARCHIVED = """
INSERT INTO jobqueue_archivedjob (
       id, job_type, queue, priority, data, run_after, created_at, attempts, status,
       started_at, finished_at, wait_ms, run_ms, worker, error_class, error_message,
       fingerprint)
SELECT (lpad(to_hex((extract(epoch FROM made.at) * 1000)::bigint), 12, '0')
        || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15)
       )::uuid,
       'shop.job_' || made.type, 'queue_' || made.type %% 5, n %% 11 - 5,
       jsonb_build_object('order', n, 'note', repeat('x', 120)),
       made.at, made.at, 1, made.status, made.at, made.at + interval '1 second',
       random() * 1000, random() * 20000, 'web-' || n %% %(workers)s || ':4100',
       CASE made.status WHEN 'failed' THEN 'shop.errors.Error' || made.failure ELSE ''
        END,
       CASE made.status WHEN 'failed' THEN 'HTTP 503 from the carrier' ELSE '' END,
       CASE made.status WHEN 'failed' THEN md5(made.failure::text)::uuid END
  FROM (SELECT n,
               clock_timestamp() - interval '30 days' * (1 - n / %(rows)s::float8)
                 AS at,
               CASE WHEN n %% 10000 = 0 THEN %(types)s
                    ELSE 1 + floor(power(random(), 3) * (%(types)s - 1))::integer
               END AS type,
               floor(power(random(), 2) * %(groups)s)::integer AS failure,
               CASE WHEN n %% 50 < 38 THEN 'succeeded' WHEN n %% 50 < 48 THEN 'failed'
                    WHEN n %% 50 = 48 THEN 'expired' ELSE 'cancelled' END AS status
          FROM generate_series(1, %(rows)s) AS n OFFSET 0) AS made
"""
FAILURES = """
INSERT INTO jobqueue_failure (
       job_id, job_type, number, "end", started_at, finished_at, worker, error_class,
       error_message, traceback, fingerprint)
SELECT id, job_type, 1, 'failed', started_at, finished_at, worker, error_class,
       error_message, repeat('  File "shop/jobs.py", line 7, in f' || chr(10), 10),
       fingerprint
  FROM jobqueue_archivedjob
 WHERE status = 'failed'
 ORDER BY finished_at
"""
FAILURE_GROUPS = """
INSERT INTO jobqueue_failuregroup (
       fingerprint, coarse, error_class, frame, template, first_seen, last_seen)
SELECT fingerprint, fingerprint, min(error_class), 'shop.jobs:f',
       'HTTP <n> from the carrier', min(finished_at), max(finished_at)
  FROM jobqueue_archivedjob
 WHERE fingerprint IS NOT NULL
 GROUP BY fingerprint
"""
# In order of time, as workers write them.
FAILURE_ROLLUPS = """
INSERT INTO jobqueue_failurerollup (fingerprint, bucket, job_type, release, failed)
SELECT fingerprint, date_trunc('hour', finished_at, 'UTC'), job_type, release, count(*)
  FROM jobqueue_archivedjob
 WHERE fingerprint IS NOT NULL
 GROUP BY fingerprint, date_trunc('hour', finished_at, 'UTC'), job_type, release
 ORDER BY date_trunc('hour', finished_at, 'UTC')
"""
# Where there are more types than usual, the others finish jobs now and then.
# In order of time, too.
ROLLUPS = """
INSERT INTO jobqueue_rollup (
       bucket, job_type, queue, succeeded, failed, run_ms, wait_ms, run_histogram,
       wait_histogram)
SELECT date_trunc('minute', clock_timestamp(), 'UTC') - minutes * interval '1 minute',
       'shop.job_' || type, 'queue_' || type %% 5, 100, 5, 20000, 2000,
       %(histogram)s::integer[], %(histogram)s::integer[]
  FROM (SELECT generate_series(0, 60)
        UNION ALL SELECT generate_series(90, 2880, 30)
        UNION ALL SELECT generate_series(2940, 23040, 60)
        UNION ALL SELECT generate_series(24480, 43200, 1440)) AS bucket (minutes),
       generate_series(1, %(types)s) AS type
 WHERE type <= %(usual)s OR (minutes / 30 + minutes + type) %% 30 = 0
 ORDER BY minutes DESC
"""
QUEUED = """
INSERT INTO jobqueue_queuedjob (
       job_type, queue, priority, data, run_after, attempts, status, worker_id,
       started_at)
SELECT 'shop.job_' || 1 + n %% %(types)s, 'queue_' || (1 + n %% %(types)s) %% 5,
       n %% 11 - 5, '{"order": 1}',
       clock_timestamp() + (random() - 0.5) * interval '2 days', n %% 7 / 6,
       CASE WHEN n %% 500 = 0 THEN 'running' ELSE 'queued' END,
       CASE WHEN n %% 500 = 0 THEN 1 + n / 500 %% %(workers)s END,
       CASE WHEN n %% 500 = 0 THEN clock_timestamp() END
  FROM generate_series(1, %(rows)s) AS n
"""


# Jobs with a megabyte of data: many small objects, or one text.
LARGE: Final = {
    "objects": UUID("00000000-0000-7000-8000-000000000001"),
    "text": UUID("00000000-0000-7000-8000-000000000002"),
}
LARGE_SIZE: Final = 1_000_000  # characters
MADE_LARGE = """
UPDATE jobqueue_archivedjob SET id = %(id)s, data = %(data)s
 WHERE id = (SELECT id FROM jobqueue_archivedjob WHERE status = 'succeeded' LIMIT 1)
"""


def fill(archived: int, queued: int, types: int) -> None:
    """Write the rows, one statement for each table."""
    from django.db import connection

    fixed: dict[str, Any] = {
        "types": types,
        "usual": USUAL_TYPES,
        "groups": GROUPS,
        "workers": WORKERS,
        "histogram": [3] * BUCKETS,
    }
    with connection.cursor() as cursor:
        cursor.execute(JOB_TYPES, fixed)
        cursor.execute(WORKER_ROWS, fixed)
        cursor.execute(ARCHIVED, {**fixed, "rows": archived})
        cursor.execute(FAILURES)
        cursor.execute(FAILURE_GROUPS)
        cursor.execute(FAILURE_ROLLUPS)
        cursor.execute(ROLLUPS, fixed)
        cursor.execute(QUEUED, {**fixed, "rows": queued})
        for name, id in LARGE.items():
            cursor.execute(MADE_LARGE, {"id": id, "data": json.dumps(_large(name))})
        cursor.execute("VACUUM ANALYZE")


def _large(name: str) -> Any:
    if name == "text":
        return {"letter": "Dear customer, " * (LARGE_SIZE // 15)}
    row = {"order": 4711, "sku": "A-17", "note": "leave at the door", "paid": True}
    return {"orders": [row] * (LARGE_SIZE // len(json.dumps(row)))}
