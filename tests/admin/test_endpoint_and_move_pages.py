"""The pages of endpoints and moves, which are rows beside those of workers: they show
what means something for them, and nobody can ask them for anything."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_jobqueue import remote_job
from django_jobqueue.admin.workers import worker_page
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import JobType, Worker
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, MINUTE, archived, endpoint, worker
from tests.admin.test_job_types import row_of
from tests.admin.test_workers import ENDPOINT, configure, running
from tests.admin.units import act, context, question

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("requests_commit"),
]

NO_ANSWERS = {"failed": 0, "answered": 0}
NOT_OF_ENDPOINTS = (  # sections and lines of the page of a process
    *("Where it is", "What operators asked", "Handlers", "Supervisor", "Release"),
    *("Threads", "Async slots", "Memory", "Lease until", "Exit", "Versions", "Process"),
)
NOT_OF_MOVES = (
    *("Where it is", "What operators asked", "Handlers", "Supervisor", "Release"),
    *("Threads", "Async slots", "Memory", "Exit", "Versions", "Last finished jobs"),
)


def buttons_of(page: Page, id: int) -> list[str]:
    """The addresses of what can be done with this worker, on its page."""
    targets = [*page.links, *(one.get("formaction") for one in page.all("button"))]
    pattern = re.compile(rf"/worker/({id}/stack|\w+)/(\?keys={id}\b|$)")
    return [one for one in map(str, targets) if pattern.search(one)]


def move(**columns: Any) -> int:
    """Insert the row of a move; returns its id."""
    values = {"threads": 0, "job_types": [], "versions": {}, "rss": 0, **columns}
    return worker("move to archive", state="moving", **values)


def test_the_page_of_an_endpoint_has_what_concerns_one(
    anna: Client, settings: Any
) -> None:
    configure(settings, "shipping")
    id = endpoint("shipping", 204, failed=0, answered=5)
    jobs = running(id, 2)
    done = archived(worker="shipping", finished_at=timezone.now())
    page = get(anna, page_of("worker", id))
    for text in (
        "View endpoint",
        "Time limits 2 s to connect, 6.5 s to answer",
        "Concurrency 50 of each job type Handed over 2 Oldest",
        "0 of 5 failed",
        "The code of this site sends it no jobs.",
    ):
        assert text in page.text
    assert [page_of("queuedjob", job) in page.links for job in jobs] == [True] * 2
    assert page_of("archivedjob", done) in page.links
    assert [words for words in NOT_OF_ENDPOINTS if words in page.text] == []
    assert buttons_of(page, id) == []
    of_worker = worker("web-9:1")
    page = get(anna, page_of("worker", of_worker))
    assert len(buttons_of(page, of_worker)) > 3
    # A job that it was handed has no stack to show.
    assert "/stack/" not in get(anna, page_of("queuedjob", jobs[0])).html


def test_an_unlimited_endpoint_and_the_job_types_that_it_is_sent(
    anna: Client, settings: Any
) -> None:
    unlimited = {**ENDPOINT, "concurrency": None, "read_timeout": 90}
    endpoints = {"shipping": unlimited}
    settings.JOBQUEUE = {**settings.JOBQUEUE, "ENDPOINTS": endpoints}
    name = "shop.label"
    remote_job(name, endpoint="shipping")
    try:
        JobType.objects.create(name=name)
        page = get(anna, page_of("worker", endpoint("shipping", 204, **NO_ANSWERS)))
        other = context(anna, "worker", endpoint("mail", 204, **NO_ANSWERS))["page"]
    finally:
        registry.remove(name)
    assert "2 s to connect, 1 m 30 s to answer Concurrency unlimited" in page.text
    assert "sends it jobs of 1 job type. shop.label" in page.text
    assert page_of("jobtype", name) in page.links
    assert other.job_types.text == "The code of this site sends it no jobs."


def test_the_jobs_that_have_no_room_are_a_link_away(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for state in ("endpoint", "moving", "running"):
        id = worker(f'the "big" {state}', state=state)
        ids = running(id, 3)
        monkeypatch.setattr(worker_page, "MOST_JOBS", 2)
        page = context(anna, "worker", id)["page"]
        first = [str(ids[0]) in str(slot.job) for slot in page.slots]
        assert first == [True, False]
        assert "state%3Arunning" in page.all_jobs, state
        monkeypatch.setattr(worker_page, "MOST_JOBS", 3)
        assert context(anna, "worker", id)["page"].all_jobs == "", state
    monkeypatch.setattr(worker_page, "MOST_JOBS", 2)
    (address,) = [
        link
        for link in get(anna, page_of("worker", id)).links
        if "state%3Arunning" in link
    ]
    assert {*get(anna, address).rows} == {*map(str, ids)}


def test_the_page_of_a_move_has_what_concerns_one(anna: Client) -> None:
    id = move()
    JobType.objects.filter(pk=ADD).update(timeout_override=timedelta(minutes=30))
    (job,) = running(id)
    page = get(anna, page_of("worker", id))
    assert "View move to another database" in page.text
    assert "Host web-1 Process 4100 Held jobs 1 Oldest" in page.text
    assert "Lease until" in page.text
    assert page_of("queuedjob", job) in page.links
    assert page.all("progress") == []
    assert "timeout" not in page.text
    assert "lapsed" not in page.text
    assert [words for words in NOT_OF_MOVES if words in page.text] == []
    assert buttons_of(page, id) == []
    # One that was killed is lapsed.
    Worker.objects.filter(pk=id).update(lease_until=timezone.now() - MINUTE)
    assert "moving lapsed" in get(anna, page_of("worker", id)).text
    assert "moving lapsed" in row_of(get(anna, list_of("worker")), "move to archive")


def test_endpoints_and_moves_are_not_asked(anna: Client) -> None:
    ids = [endpoint("shipping", 204, **NO_ANSWERS), move()]
    left_alone = "2 are endpoints or moves, and are left alone."
    for verb in ("drain", "resume", "stop", "restart", "where"):
        if verb != "where":
            asked = question(anna, "worker", verb, *ids)
            assert left_alone in asked
            assert "already exited" not in asked
        told = act(anna, "worker", verb, *ids)
        assert left_alone in told, verb
        assert "had ended already" not in told
    assert not LogEntry.objects.exists()
    rows = Worker.objects.filter(pk__in=ids)
    assert [*rows.values_list("desired", "request")] == [("", None)] * 2
