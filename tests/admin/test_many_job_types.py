"""Pages with thousands of job types: no more statements than with a few, and small."""

from __future__ import annotations

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_jobqueue.domain.histogram import BUCKETS
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob, Worker
from django_jobqueue.stats import overview, usual_job_types
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of, page_of, statements, verb_of
from tests.admin.units import listing, shown

LARGEST = 150_000  # bytes of a page
NAMES = "/admin/jobqueue/jobtype/names/"

JOB_TYPES = """
INSERT INTO jobqueue_jobtype (name, queue)
SELECT format('shop.jobs.type_%%s', lpad(n::text, 4, '0')), 'queue_' || n %% 5
  FROM generate_series(1, %(types)s) AS n
"""
JOBS = """
INSERT INTO jobqueue_queuedjob (job_type, queue, run_after, attempts)
SELECT name, queue, clock_timestamp() - interval '2 hours', 0
  FROM jobqueue_jobtype
 WHERE name LIKE 'shop.jobs.%%'
"""
ARCHIVED = """
INSERT INTO jobqueue_archivedjob (
       id, job_type, queue, priority, data, run_after, created_at, attempts, status,
       finished_at, worker, error_class, error_message)
SELECT gen_random_uuid(), name, queue, 0, '{"order": 4711}', now(), now(), 1, 'failed',
       now(), 'web-1:4100', 'shop.errors.CarrierDown', 'HTTP 503'
  FROM jobqueue_jobtype
 WHERE name LIKE 'shop.jobs.%%'
"""
ROLLUPS = """
INSERT INTO jobqueue_rollup (
       bucket, job_type, queue, succeeded, failed, run_ms, wait_ms, run_histogram,
       wait_histogram)
SELECT date_trunc('minute', now()) - step * interval '10 minutes', name, queue, 90, 10,
       0, 0, array_fill(3, ARRAY[%(buckets)s]), array_fill(3, ARRAY[%(buckets)s])
  FROM jobqueue_jobtype, generate_series(1, 3) AS step
 WHERE name LIKE 'shop.jobs.%%'
"""


def make(types: int) -> None:
    """So many job types; each has a queued job, a failed one, and some that finished,
    and a worker handles them."""
    with connection.cursor() as cursor:
        cursor.execute(JOB_TYPES, {"types": types})
        cursor.execute(JOBS, {})
        cursor.execute(ARCHIVED, {})
        cursor.execute(ROLLUPS, {"buckets": BUCKETS})
    Worker.objects.create(
        name="web-1:4100",
        host="web-1",
        pid=4100,
        threads=4,
        job_types=list(JobType.objects.values_list("name", flat=True)),
        lease_until="9999-01-01T00:00Z",
    )


def addresses() -> list[str]:
    """A page of each part, and those that name many job types."""
    lists = ("archivedjob", "queuedjob", "jobtype", "queue", "worker")
    first = JobType.objects.filter(name__startswith="shop.jobs.").order_by("name")[0]
    return [
        "/admin/jobqueue/",
        *map(list_of, lists),
        f"{list_of('archivedjob')}?job_type={first}",
        page_of("jobtype", first),
        page_of("queue", "queue_1"),
        page_of("worker", Worker.objects.get().pk),
        page_of("queuedjob", QueuedJob.objects.filter(job_type=first)[0].pk),
        verb_of("schedule", "new"),
        "/admin/jobqueue/queuedjob/search/?q=4711",
    ]


def asked(client: Client) -> tuple[list[int], dict[str, str]]:
    """How many statements each page takes, when what is cached for minutes is there;
    and the pages."""
    usual_job_types.forget()
    for address in ("/admin/jobqueue/", list_of("queuedjob")):
        client.get(address)
    numbers, pages = [], {}
    for address in addresses():
        overview.forget()
        with CaptureQueriesContext(connection) as captured:
            pages[address] = client.get(address).content.decode()
        numbers.append(len(statements(captured)))
    return numbers, pages


def test_no_page_asks_more_or_grows_where_there_are_more_job_types(
    anna: Client, db: None
) -> None:
    make(10)
    few, _pages = asked(anna)
    for model in (QueuedJob, ArchivedJob, Worker):
        model._default_manager.filter().delete()
    JobType.objects.filter(name__startswith="shop.jobs.").delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobqueue_rollup")
    make(600)
    busy = "shop.jobs.type_0496"
    for _ in range(3):
        QueuedJob.objects.create(job_type_id=busy, queue="queue_1")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobqueue_rollup SET succeeded = 5000"
            " WHERE job_type = 'shop.jobs.type_0077'"
        )
    many, texts = asked(anna)
    pages = {address: Page(text) for address, text in texts.items()}
    # A full page is counted, and the window's end is looked for; nothing else is new.
    more = [a for a, n, m in zip(pages, few, many, strict=True) if m > n + 1]
    assert more == []
    sizes = {address: len(page.html.encode()) for address, page in pages.items()}
    assert {one: size for one, size in sizes.items() if size > LARGEST} == {}
    # The usual ones are links, and any can be typed.
    page = pages[list_of("queuedjob")]
    links = [link for link in page.links if "job_type=" in link]
    assert "?job_type=shop.jobs.type_0077" in links
    assert len(links) <= 12
    (field,) = page.all("input", name="job_type")
    assert field["data-jq-names"] == NAMES
    assert not page.all("option", value="shop.jobs.type_0149")
    (field,) = pages[verb_of("schedule", "new")].all("input", name="job_type")
    assert field["data-jq-names"] == NAMES
    # A worker names the first of its handlers, and a queue the busiest job types.
    text = pages[page_of("worker", Worker.objects.get().pk)].text
    assert f"It has handlers for {JobType.objects.count():,} job types." in text
    assert text.count("shop.jobs.") <= 200
    text = pages[page_of("queue", "queue_1")].text
    assert busy in text
    assert "and 70 more job types with fewer jobs" in text


def test_a_job_type_is_found_by_a_part_of_its_name(
    anna: Client, viewer: Client, log_in: LogIn
) -> None:
    make(150)
    name = "shop.jobs.type_0149"
    for model in ("queuedjob", "archivedjob"):
        for typed in ("type_0149", name, "0149"):
            (row,) = listing(anna, model, job_type=typed).result_list
            assert row.job_type_id == name, typed
    assert shown(anna, "queuedjob", job_type="type_01") == []  # which many have
    assert shown(anna, "jobtype", q="type_0149") == [name]
    address = verb_of("schedule", "new")
    assert name in get(anna, address, job_type=name).text
    # Names are suggested by their parts, to whoever sees a list of them.
    found = viewer.get(NAMES, {"q": "type_014"}).json()
    assert found == {"names": [f"shop.jobs.type_014{n}" for n in range(10)]}
    assert len(viewer.get(NAMES).json()["names"]) == 20
    assert log_in("view_queue", name="carl").get(NAMES).status_code == 403
    assert log_in("view_queuedjob", name="dora").get(NAMES).status_code == 200
