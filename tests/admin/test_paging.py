"""Pages by key: nothing is shown twice or left out, few statements however many rows
there are, and counts that say how sure they are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl
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
from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.admin import scene as rows
from tests.admin import units
from tests.admin.pages import get, list_of, page_of, statements, table_of
from tests.admin.scene import ADD, FAIL, Scene

LISTS = """
archivedjob? archivedjob?status=failed archivedjob?status=succeeded
archivedjob?status=expired archivedjob?queue=mail archivedjob?priority=>0
archivedjob?status=failed&job_type={ADD}&finished_at__range__gte_0=2001-01-01
archivedjob?queue=mail&job_type={ADD}&status=failed archivedjob?worker=web-1:1
archivedjob?queue=mail&finished_at__range__gte_0=2001-01-01
archivedjob?error=ValueError archivedjob?replayed=no archivedjob?q=data.a:1
archivedjob?fingerprint=01a1fefc-a7b0-7364-875d-a99c8c940e69
archivedjob?q=ran:>1s+type:{ADD} archivedjob?q=01a1ff
queuedjob? queuedjob?state=ready queuedjob?state=later queuedjob?state=retrying
queuedjob?state=running queuedjob?state=lapsed queuedjob?state=running&queue=mail
queuedjob?job_type={ADD}&queue=default queuedjob?run_after__range__gte_0=2001-01-01
queuedjob?error=ValueError queuedjob?worker=web-1:1 queuedjob?q=data.a:1
queuedjob?q=01a1ff
"""
# Of any list, without user and session. Names of job types, queues, page, its job
# types, count and its limit, replays. Among queued jobs also: workers and what they
# handle, failures, why not.
MOST = {"archivedjob": 8, "queuedjob": 13}
# Of a page, with user, session and saved views.
MOST_OF_A_PAGE = {
    **{"archivedjob": 10, "queuedjob": 14, "failuregroup": 12, "schedule": 11},
    **dict.fromkeys(("host", "keylimit", "lease", "token"), 9),
}
COPIED = {
    "archivedjob": "'id', gen_random_uuid()",
    "queuedjob": "'id', gen_random_uuid()",
    "failuregroup": "'fingerprint', gen_random_uuid()",
    "host": "'id', gen_random_uuid()",
    **dict.fromkeys(("lease", "schedule"), "'name', gen_random_uuid()"),
}
LARGE = re.compile(r'"(data|result|traceback|log_tail|frames)"')


@pytest.fixture
def many(db: None) -> list[str]:
    """Archived jobs, several at each moment; their ids, newest first."""
    now = timezone.now()
    made = [
        rows.archived_row(
            FAIL if number % 3 else ADD,
            "failed",
            queue="mail" if number % 10 == 0 else "default",
            finished_at=now - timedelta(seconds=number // 7),
        )
        for number in range(230)
    ]
    rows.insert_all(ArchivedJob, made)
    found = ArchivedJob.objects.order_by("-finished_at", "-pk")
    return [str(pk) for pk in found.values_list("pk", flat=True)]


def ids(page: Any) -> list[str]:
    return [str(job.pk) for job in page.result_list]


def walk(client: Client, page: Any, way: str) -> list[Any]:
    """This page and all those that are older, or newer."""
    pages = [page]
    while getattr(pages[-1], f"has_{way}"):
        link = getattr(pages[-1], f"{way}_link")
        pages.append(units.following(client, "archivedjob", link))
    return pages


def test_pages_show_every_row_once_in_order_and_back(
    anna: Client, many: list[str]
) -> None:
    down = walk(anna, units.listing(anna, "archivedjob"), "older")
    assert [len(ids(page)) for page in down] == [50, 50, 50, 50, 30]
    assert [id for page in down for id in ids(page)] == many
    up = walk(anna, down[-1], "newer")
    assert [ids(page) for page in up] == [ids(page) for page in reversed(down)]
    # An order from an address is not taken.
    assert units.shown(anna, "archivedjob", o="-3.1") == many[:50]
    # Pages keep the filters.
    first = units.listing(anna, "archivedjob", job_type=ADD)
    found = [id for page in walk(anna, first, "older") for id in ids(page)]
    of_type = ArchivedJob.objects.filter(job_type=ADD).values_list("pk", flat=True)
    assert sorted(found) == sorted(map(str, of_type))
    (link,) = get(anna, list_of("archivedjob"), job_type=ADD).all("a", rel="next")
    page = get(anna, list_of("archivedjob") + str(link["href"]))
    assert page.rows == found[50:]
    assert "Newest" in page.text
    # New rows do not move older pages.
    for _ in range(60):
        rows.archived()
    second = units.following(anna, "archivedjob", down[0].older_link)
    assert ids(second) == ids(down[1])
    queued = [rows.queued_row() for _ in range(120)]
    newest = sorted(
        (str(pk) for pk in rows.insert_all(QueuedJob, queued)), reverse=True
    )
    page = units.listing(anna, "queuedjob")
    assert ids(page) == newest[:50]
    assert page.count_text == "120 queued jobs"


def test_a_filter_without_an_index_looks_through_a_window_and_says_so(
    anna: Client, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "230 archived jobs" in get(anna, list_of("archivedjob")).text
    monkeypatch.setattr(JobChangeList, "window", 100)
    text = get(anna, list_of("archivedjob"), queue="mail").text
    assert "Searched the newest 100 jobs only, back to" in text
    page = units.listing(anna, "archivedjob", queue="mail")
    found = ids(page)
    while page.searched_back_to:
        page = units.following(anna, "archivedjob", page.search_older_link)
        found += ids(page)
    mail = ArchivedJob.objects.filter(queue="mail").values_list("pk", flat=True)
    assert sorted(found) == sorted(map(str, mail))
    for window, query, count in (
        (10, {"job_type": ADD, "status": "failed"}, 77),  # an index serves these
        (100, {"queue": "mail", "job_type": ADD}, 8),  # of a type, not of the table
    ):
        monkeypatch.setattr(JobChangeList, "window", window)
        page = units.listing(anna, "archivedjob", **query)
        assert page.count_text == f"{count} archived jobs"
        assert page.searched_back_to is None


# What lists ask the database.


def make(number: int) -> None:
    """Jobs of several kinds, so that every column has something to look up."""
    worker = rows.worker(f"web-{number}:1")
    began = {"status": "running", "attempts": 1, "started_at": timezone.now()}
    for turn in range(number):
        failed = rows.archived(FAIL, "failed", fingerprint=rows.uuid4(), data={"a": 1})
        rows.archived(priority=turn % 3, run_ms=5_000, error_class="ValueError")
        rows.queued(FAIL, replay_of=failed, attempts=1, data={"a": 1})
        rows.queued(worker_id=worker, **began)


def asked(client: Client, model: str, **query: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        page = units.listing(client, model, **query)
        assert len(page.result_list) <= 50
    found = statements(captured)
    users = ('"auth_', '"django_session"')
    return [sql for sql in found if not any(one in sql for one in users)]


def test_few_statements_however_many_rows_all_with_a_limit_and_none_for_data(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobChangeList, "window", 10_000)
    lists = [
        (model, dict(parse_qsl(query)))
        for model, _mark, query in (
            one.partition("?") for one in LISTS.replace("{ADD}", ADD).split()
        )
    ]
    assert len(lists) > 25
    make(3)
    few = [len(asked(anna, model, **query)) for model, query in lists]
    make(40)
    wrong = []
    for before, (model, query) in zip(few, lists, strict=True):
        found = asked(anna, model, **query)
        reads = [sql for sql in found if f'FROM "{table_of(model)}"' in sql]
        # A full page is counted, and the window's end is looked for; no more is new.
        if (
            len(found) > MOST[model] + ("q" in query)
            or len(found) - before > 1
            or not reads
            or not all(" LIMIT " in sql or " IN (" in sql for sql in reads)
            or any(LARGE.search(sql.partition(" FROM ")[0]) for sql in found)
        ):
            wrong.append((model, query, before, found))
    assert wrong == []
    read = asked(anna, "archivedjob", q=f"type:{ADD} data.a:1 data.b:2")
    indexes = [sql for sql in read if "pg_index" in sql]
    assert len(indexes) == len(set(indexes)) == 2  # those declared, and any


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        get(client, address)
    return len(statements(captured))


def test_queries_of_a_page_do_not_grow_with_its_rows(
    anna: Client, scene: Scene
) -> None:
    # What is asked only once may be among the first.
    few = {model: queries(anna, list_of(model)) for model in MOST_OF_A_PAGE}
    with connection.cursor() as cursor:
        for table, key in COPIED.items():  # three times more, with new keys
            cursor.execute(
                f"INSERT INTO {table_of(table)} SELECT (jsonb_populate_record(o,"
                f" jsonb_build_object({key}))).* FROM {table_of(table)} o,"
                " generate_series(1, 3)"
            )
    many = {model: queries(anna, list_of(model)) for model in MOST_OF_A_PAGE}
    too_many = {k: v for k, v in many.items() if v > min(few[k], MOST_OF_A_PAGE[k])}
    assert too_many == {}
    # Nor do those of a job with many attempts and replays.
    archived, queued = scene.archived["failed"], scene.queued["ready"]
    for model, id, most in (("archivedjob", archived, 13), ("queuedjob", queued, 17)):
        attempt = {"job_id": id, "job_type": FAIL, "end": "failed"}
        rows.insert_all(rows.Failure, [{"number": n, **attempt} for n in range(9, 69)])
        rows.insert_all(
            ArchivedJob, [rows.archived_row(replay_of=id) for _ in range(60)]
        )
        assert queries(anna, page_of(model, id)) <= most


# Counts.


@pytest.fixture
def thirty(db: None) -> None:
    """Queued jobs, of which the planner knows how many there are."""
    rows.insert_all(QueuedJob, [rows.queued_row() for _ in range(30)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobqueue_queuedjob")


def test_a_count_says_how_sure_it_is(thirty: None) -> None:
    jobs = QueuedJob.objects.all()
    counted = counts.count(jobs, cap=20)
    assert (str(counted), counted > 20) == ("20+", True)
    assert counts.count(jobs, cap=30) == 30
    assert str(counts.count(jobs, cap=5)) == "≈ 30"
    # Of conditions the planner knows too little; here it expects 1 row or all.
    for narrowed in (
        jobs.filter(queue="default"),
        jobs.exclude(queue="mail"),
        jobs.extra(where=["length(queue) = 7"]),
        jobs.filter(run_after__lt=timezone.now() + timedelta(days=1)),
    ):
        counted = counts.count(narrowed, cap=5)
        assert (str(counted), int(counted)) == ("5+", 6)


def test_a_count_that_takes_too_long_says_what_is_sure(thirty: None) -> None:
    slow = QueuedJob.objects.extra(where=["pg_sleep(10) IS NOT NULL"])
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '77s'")
        counted = counts.count(slow, known=50, budget=20)
        assert (str(counted), int(counted)) == ("50+", 51)
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("77s",)
    assert transaction.get_connection().in_atomic_block
    assert QueuedJob.objects.count() == 30


def test_every_page_is_a_range_of_an_index(db: None) -> None:
    """One row comparison on each page, whatever the page."""
    key: Key = site.get_model_admin(ArchivedJob).key  # type: ignore[attr-defined]
    moment = datetime(2026, 11, 21, 9, 30, 1, 123_456, tzinfo=UTC)
    position = (moment, UUID("01a1fefc-a7b0-7364-875d-a99c8c940e69"))
    assert key.read(key.write(position)) == position  # it survives the address
    with connection.cursor() as cursor:
        for other in ("seqscan", "sort", "bitmapscan"):
            cursor.execute(f"SET LOCAL enable_{other} = off")
    queryset = ArchivedJob.objects.order_by(*key.order)
    plan = queryset.filter(key.after(position))[:51].explain()
    assert "Index Scan Backward using jobqueue_a_newest" in plan
    assert "Index Cond: (ROW(finished_at, id) < ROW(" in plan
