"""Pages by key: nothing is shown twice or left out; counts say how sure they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.contrib.admin.sites import site
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue.admin.lists import counts
from django_jobqueue.admin.lists.change_list import JobChangeList
from django_jobqueue.admin.lists.positions import Key
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.text import numbers
from tests.admin import scene as rows
from tests.admin.pages import Page, get, list_of
from tests.admin.scene import ADD, FAIL


@pytest.fixture
def many(db: None) -> list[str]:
    """Archived jobs, several at each moment; their ids, newest first."""
    now = timezone.now()
    made = ArchivedJob.objects.bulk_create(
        ArchivedJob(
            job_type_id=FAIL if number % 3 else ADD,
            status="failed",
            queue="mail" if number % 10 == 0 else "default",
            finished_at=now - timedelta(seconds=number // 7),
        )
        for number in range(230)
    )
    assert len(made) == 230
    order = sorted(
        ArchivedJob.objects.all(),
        key=lambda job: (job.finished_at, job.pk),
        reverse=True,
    )
    return [str(job.pk) for job in order]


def link(page: Page, rel: str) -> str | None:
    """Where the page before or after is."""
    found = page.all("a", rel=rel)
    return list_of("archivedjob") + str(found[0]["href"]) if found else None


def walk(client: Client, page: Page, rel: str) -> list[Page]:
    """This page and all those after it, or before it."""
    pages = [page]
    while address := link(pages[-1], rel):
        pages.append(get(client, address))
    return pages


def test_pages_show_every_row_once_in_order_and_back(
    anna: Client, many: list[str]
) -> None:
    down = walk(anna, get(anna, list_of("archivedjob")), "next")
    assert [len(page.rows) for page in down] == [50, 50, 50, 50, 30]
    assert [id for page in down for id in page.rows] == many
    up = walk(anna, down[-1], "prev")
    assert [page.rows for page in up] == [page.rows for page in reversed(down)]


def test_new_rows_do_not_move_older_pages(anna: Client, many: list[str]) -> None:
    second = link(get(anna, list_of("archivedjob")), "next")
    assert second is not None
    before = get(anna, second).rows
    for _ in range(60):
        rows.archived()
    assert get(anna, second).rows == before


def test_pages_keep_the_filters(anna: Client, many: list[str]) -> None:
    first = get(anna, list_of("archivedjob"), job_type=ADD)
    found = [id for page in walk(anna, first, "next") for id in page.rows]
    assert len(found) == 77
    assert set(found) == {
        str(pk)
        for pk in ArchivedJob.objects.filter(job_type=ADD).values_list("pk", flat=True)
    }
    address = link(first, "next")
    assert address is not None
    assert "Newest" in get(anna, address).text


def test_the_count_is_exact_where_that_is_cheap(anna: Client, many: list[str]) -> None:
    assert "230 archived jobs" in get(anna, list_of("archivedjob")).text
    page = get(anna, list_of("archivedjob"), queue="mail")
    assert "23 archived jobs" in page.text


def test_a_filter_without_an_index_looks_through_a_window_and_says_so(
    anna: Client, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobChangeList, "window", 100)
    page = get(anna, list_of("archivedjob"), queue="mail")
    assert "Searched the newest 100 jobs only, back to" in page.text
    found = list(page.rows)
    while older := [a for a in page.links if "since=" in a]:
        page = get(anna, list_of("archivedjob") + older[-1])
        found += page.rows
    mail = ArchivedJob.objects.filter(queue="mail").values_list("pk", flat=True)
    assert sorted(found) == sorted(map(str, mail))
    assert "Searched the newest" not in page.text


@pytest.mark.parametrize(
    ("model", "query"),
    [
        ("archivedjob", {}),
        ("archivedjob", {"queue": "mail"}),
        ("archivedjob", {"queue": "mail", "job_type": ADD, "status": "failed"}),
        ("archivedjob", {"queue": "mail", "finished_at__range__gte_0": "2001-01-01"}),
        ("archivedjob", {"fingerprint": "01a1fefc-a7b0-7364-875d-a99c8c940e69"}),
        ("archivedjob", {"q": "01a1ff"}),
        ("queuedjob", {}),
        ("queuedjob", {"queue": "mail"}),
        ("queuedjob", {"state": "ready", "job_type": ADD}),
        ("queuedjob", {"state": "running", "queue": "mail"}),
        ("queuedjob", {"run_after__range__gte_0": "2001-01-01"}),
        ("queuedjob", {"q": "01a1ff"}),
    ],
)
def test_no_list_reads_a_table_without_a_limit(
    anna: Client, many: list[str], model: str, query: dict[str, str]
) -> None:
    with CaptureQueriesContext(connection) as captured:
        get(anna, list_of(model), **query)
    reads = [
        read["sql"]
        for read in captured.captured_queries
        if f'FROM "jobqueue_{model}"' in read["sql"]
    ]
    assert reads
    assert [sql for sql in reads if " LIMIT " not in sql and " IN (" not in sql] == []


def test_a_filter_with_an_index_looks_everywhere(
    anna: Client, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobChangeList, "window", 10)
    page = get(anna, list_of("archivedjob"), job_type=ADD, status="failed")
    assert "77 archived jobs" in page.text
    assert "Searched the newest" not in page.text


def test_the_window_is_that_of_the_other_filters(
    anna: Client, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred rows of this type, not of the table."""
    monkeypatch.setattr(JobChangeList, "window", 100)
    page = get(anna, list_of("archivedjob"), queue="mail", job_type=ADD)
    assert "8 archived jobs" in page.text
    assert "Searched the newest" not in page.text


def test_the_list_of_queued_jobs_is_newest_first(anna: Client, db: None) -> None:
    made = sorted((str(rows.queued()) for _ in range(120)), reverse=True)
    page = get(anna, list_of("queuedjob"))
    assert page.rows == made[:50]
    assert "120 queued jobs" in page.text


def test_an_order_from_an_address_is_not_taken(anna: Client, many: list[str]) -> None:
    page = get(anna, list_of("archivedjob"), o="-3.1")
    assert page.rows == many[:50]


def test_a_count_says_when_it_was_capped(db: None) -> None:
    for _ in range(30):
        rows.queued()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobqueue_queuedjob")
    counted = counts.count(QueuedJob.objects.all(), cap=20)
    assert (str(counted), counted > 20) == ("20+", True)
    assert counts.count(QueuedJob.objects.all(), cap=30) == 30
    about = counts.count(QueuedJob.objects.all(), cap=5)
    assert str(about) == "≈ 30"


def test_only_a_whole_table_is_estimated(db: None) -> None:
    """Of conditions the planner knows too little; here it expects 1 row or all."""
    for _ in range(30):
        rows.queued()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobqueue_queuedjob")
    jobs = QueuedJob.objects.all()
    for narrowed in (
        jobs.filter(queue="default"),
        jobs.exclude(queue="mail"),
        jobs.extra(where=["length(queue) = 7"]),
        jobs.filter(run_after__lt=timezone.now() + timedelta(days=1)),
    ):
        counted = counts.count(narrowed, cap=5)
        assert (str(counted), int(counted)) == ("5+", 6)


def test_a_count_that_takes_too_long_says_what_is_sure(db: None) -> None:
    slow = QueuedJob.objects.extra(where=["pg_sleep(10) IS NOT NULL"])
    rows.queued()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobqueue_queuedjob")
        cursor.execute("SET LOCAL statement_timeout = '77s'")
    counted = counts.count(slow, known=50, budget=20)
    assert (str(counted), int(counted)) == ("50+", 51)
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("77s",)
    assert transaction.get_connection().in_atomic_block
    assert QueuedJob.objects.count() == 1


@pytest.mark.parametrize(
    ("number", "text"),
    [(7, "≈ 7"), (12_345, "≈ 12 K"), (5_001_459, "≈ 5.0 M")],
)
def test_how_an_estimate_reads(number: int, text: str) -> None:
    assert numbers.about(number) == text


def test_a_position_survives_the_address() -> None:
    key = Key(ArchivedJob, ("finished_at", "id"))
    position = (
        datetime(2026, 11, 21, 9, 30, 1, 123_456, tzinfo=UTC),
        UUID("01a1fefc-a7b0-7364-875d-a99c8c940e69"),
    )
    assert key.read(key.write(position)) == position


def test_every_page_is_a_range_of_an_index(db: None) -> None:
    """One row comparison on each page, whatever the page."""
    key = site._registry[ArchivedJob].key
    position = (timezone.now(), rows.uuid4())
    queryset = ArchivedJob.objects.order_by(*key.order)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
    plan = queryset.filter(key.after(position))[:51].explain()
    assert "Index Scan Backward using jobqueue_a_newest" in plan
    assert "Index Cond: (ROW(finished_at, id) < ROW(" in plan
    assert JobType.objects.exists()
