"""How long the admin's lists take on a large archive.

Fills a database of its own on the server of the test suite with archived and queued
jobs, then asks for each page through Django's test client: sessions, permissions,
SQL and templates, everything but the network.

    python -m benchmarks.admin_lists --archived 1000000 --queued 100000
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

TYPES = 40
FAILURES = 200  # different ones

JOB_TYPES = """
INSERT INTO jobqueue_jobtype (name, queue)
SELECT 'shop.job_' || n, 'queue_' || n %% 5 FROM generate_series(1, %(types)s) AS n
    ON CONFLICT DO NOTHING
"""

# 94 % succeeded, 4 % failed, 1 % expired, 1 % cancelled, over 30 days; half of the
# jobs are of a few types, and one type has very few.
ARCHIVED = """
INSERT INTO jobqueue_archivedjob (
       id, job_type, queue, priority, data, run_after, created_at, attempts, status,
       started_at, finished_at, wait_ms, run_ms, worker, error_class, error_message,
       fingerprint)
SELECT jobqueue_uuidv7(), 'shop.job_' || made.type, 'queue_' || made.type %% 5, 0,
       jsonb_build_object('order', n, 'card', md5(n::text), 'note', repeat('x', 120)),
       made.at, made.at, 1, made.status, made.at, made.at + interval '1 second',
       random() * 1000, random() * 20000, 'web-1:4100',
       CASE made.status WHEN 'failed' THEN 'shop.errors.Error' || n %% %(failures)s
            ELSE '' END,
       CASE made.status WHEN 'failed' THEN 'HTTP 503 from the carrier' ELSE '' END,
       CASE made.status WHEN 'failed' THEN md5((n %% %(failures)s)::text)::uuid END
  FROM (SELECT n, clock_timestamp() - random() * interval '30 days' AS at,
               CASE WHEN n %% 10000 = 0 THEN %(types)s
                    ELSE 1 + floor(power(random(), 3) * (%(types)s - 1))::integer
               END AS type,
               CASE WHEN n %% 100 < 94 THEN 'succeeded' WHEN n %% 100 < 98 THEN 'failed'
                    WHEN n %% 100 = 98 THEN 'expired' ELSE 'cancelled' END AS status
          FROM generate_series(1, %(rows)s) AS n) AS made
"""
GROUPS = """
INSERT INTO jobqueue_failuregroup (fingerprint, coarse, error_class, frame, template)
SELECT md5(n::text)::uuid, md5(n::text)::uuid, 'shop.errors.Error' || n, 'shop.jobs:f',
       'HTTP <n> from the carrier'
  FROM generate_series(0, %(failures)s - 1) AS n
"""
QUEUED = """
INSERT INTO jobqueue_queuedjob (job_type, queue, data, run_after, attempts)
SELECT 'shop.job_' || 1 + n %% %(types)s, 'queue_' || n %% 5, '{"order": 1}',
       clock_timestamp() + (random() - 0.5) * interval '2 days', n %% 7 / 6
  FROM generate_series(1, %(rows)s) AS n
"""


def main() -> None:
    """Fill, measure, print, and drop the database again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archived", type=int, default=1_000_000)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django
    from django.conf import settings

    django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    from django.db import connection

    connection.settings_dict["TEST"]["NAME"] = "benchmark_admin_lists"
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        fill(options.archived, options.queued)
        report(options)
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def fill(archived: int, queued: int) -> None:
    """Write the rows, one statement for each table."""
    from django.db import connection

    fixed = {"types": TYPES, "failures": FAILURES}
    with connection.cursor() as cursor:
        cursor.execute(JOB_TYPES, fixed)
        cursor.execute(ARCHIVED, {**fixed, "rows": archived})
        cursor.execute(GROUPS, fixed)
        cursor.execute(QUEUED, {**fixed, "rows": queued})
        cursor.execute("VACUUM ANALYZE")


def pages() -> dict[str, str]:
    """The pages by what is measured there."""
    from django.utils import timezone

    now = timezone.now()
    job_type = {"job_type": "shop.job_3"}
    rare = {"job_type": f"shop.job_{TYPES}"}
    month = {**bound("gte", now - timedelta(days=21))}
    week = {**month, **bound("lte", now - timedelta(days=17.5))}
    found: dict[str, dict[str, Any]] = {
        "all": {},
        "status=failed": {"status": "failed"},
        "status=succeeded": {"status": "succeeded"},
        "status=expired": {"status": "expired"},
        "status=cancelled": {"status": "cancelled"},
        "type": job_type,
        "rare type": rare,
        "queue": {"queue": "queue_3"},
        "queue that has no job": {"queue": "none"},
        "dates (3.5 days)": week,
        "failed, type": {"status": "failed", **job_type},
        "succeeded, type": {"status": "succeeded", **job_type},
        "cancelled, rare type": {"status": "cancelled", **rare},
        "failed, type, dates": {"status": "failed", **job_type, **week},
        "failed, queue, dates": {"status": "failed", "queue": "queue_1", **week},
        "one failure group": {"fingerprint": fingerprint()},
        "search: text": {"q": "order 7"},
        "search: id": {"q": archived_id()},
        "search: beginning of an id": {"q": archived_id()[:13]},
    }
    archive = "/admin/jobqueue/archivedjob/"
    measured = {f"archive: {k}": f"{archive}?{urlencode(v)}" for k, v in found.items()}
    measured["archive: far page"] = far_page(archive)
    for state in ("", "ready", "later", "retrying", "running"):
        query = f"?state={state}" if state else ""
        measured[f"queued: {state or 'all'}"] = f"/admin/jobqueue/queuedjob/{query}"
    measured["queued: type"] = f"/admin/jobqueue/queuedjob/?{urlencode(job_type)}"
    measured["failure groups"] = "/admin/jobqueue/failuregroup/"
    measured["job types"] = "/admin/jobqueue/jobtype/"
    measured["archived job"] = f"{archive}{archived_id()}/change/"
    return measured


def bound(end: str, at: Any) -> dict[str, str]:
    """One end of a range of dates, as the filter's form sends it."""
    name = f"finished_at__range__{end}"
    return {f"{name}_0": f"{at:%Y-%m-%d}", f"{name}_1": f"{at:%H:%M:%S}"}


def fingerprint() -> str:
    """That of some failure group."""
    from django_jobqueue.models import FailureGroup

    return str(FailureGroup.objects.values_list("pk", flat=True)[0])


def archived_id() -> str:
    """That of some archived job."""
    from django_jobqueue.models import ArchivedJob

    return str(ArchivedJob.objects.order_by("pk").values_list("pk", flat=True)[5000])


def far_page(archive: str) -> str:
    """A page three weeks back."""
    from django.utils import timezone

    from django_jobqueue.admin.positions import Key
    from django_jobqueue.models import ArchivedJob

    key = Key(ArchivedJob, ("finished_at", "id"))
    at = timezone.now() - timedelta(days=21)
    row = ArchivedJob.objects.filter(finished_at__lt=at).order_by("-finished_at")[0]
    return f"{archive}?{urlencode({'after': key.write(key.of(row))})}"


def report(options: argparse.Namespace) -> None:
    """Ask for every page in turn, some rounds; print percentiles."""
    from django.contrib.auth import get_user_model
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    user = get_user_model().objects.create_superuser("anna", "", "x")
    client = Client()
    client.force_login(user)
    measured = pages()
    times: dict[str, list[float]] = {name: [] for name in measured}
    queries: dict[str, tuple[int, float]] = {}
    for name, address in measured.items():
        with CaptureQueriesContext(connection) as captured:
            response = client.get(address)
        assert response.status_code == 200, (name, response.status_code)
        spent = sum(float(query["time"]) for query in captured.captured_queries)
        queries[name] = len(captured), spent * 1_000
    for _ in range(options.rounds):
        for name, address in measured.items():
            began = time.perf_counter()
            client.get(address)
            times[name].append((time.perf_counter() - began) * 1_000)
    print(f"{options.archived:,} archived, {options.queued:,} queued; milliseconds")
    print(f"{'page':34} {'p50':>7} {'p95':>7} {'queries':>8} {'SQL':>7}")
    for name, spent_each in times.items():
        p95 = statistics.quantiles(spent_each, n=20)[-1]
        count, sql = queries[name]
        print(
            f"{name:34} {statistics.median(spent_each):7.0f} {p95:7.0f} "
            f"{count:8} {sql:7.0f}"
        )


if __name__ == "__main__":
    main()
