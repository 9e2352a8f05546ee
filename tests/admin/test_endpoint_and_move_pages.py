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
from tests.admin.pages import Page, confirm, get, list_of, page_of, verb_of
from tests.admin.scene import ADD, MINUTE, Scene, archived, endpoint, worker
from tests.admin.test_job_types import row_of
from tests.admin.test_workers import ENDPOINT, configure, running

pytestmark = pytest.mark.usefixtures("requests_commit")

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


def test_the_page_of_an_endpoint_has_what_concerns_one(
    anna: Client, scene: Scene, settings: Any
) -> None:
    configure(settings, "shipping")
    id = endpoint("shipping", 204, failed=0, answered=5)
    jobs = running(id, 2)
    done = archived(worker="shipping", finished_at=timezone.now())
    page = get(anna, page_of("worker", id))
    assert "View endpoint" in page.text
    assert "Time limits 2 s to connect, 6.5 s to answer" in page.text
    assert "Concurrency 50 of each job type Handed over 2 Oldest" in page.text
    assert "0 of 5 failed" in page.text
    assert "The code of this site sends it no jobs." in page.text
    assert [page_of("queuedjob", job) in page.links for job in jobs] == [True] * 2
    assert page_of("archivedjob", done) in page.links
    assert [words for words in NOT_OF_ENDPOINTS if words in page.text] == []
    assert buttons_of(page, id) == []


def test_the_page_of_a_worker_has_buttons(anna: Client, scene: Scene) -> None:
    id = worker("web-9:1")
    assert len(buttons_of(get(anna, page_of("worker", id)), id)) > 3


def test_an_unlimited_endpoint_is_shown_as_such(anna: Client, settings: Any) -> None:
    unlimited = {**ENDPOINT, "concurrency": None, "read_timeout": 90}
    endpoints = {"shipping": unlimited}
    settings.JOBQUEUE = {**settings.JOBQUEUE, "ENDPOINTS": endpoints}
    id = endpoint("shipping", 204, failed=0, answered=0)
    page = get(anna, page_of("worker", id))
    assert "2 s to connect, 1 m 30 s to answer Concurrency unlimited" in page.text


def test_the_page_of_an_endpoint_names_the_job_types_that_it_is_sent(
    anna: Client,
) -> None:
    name = "shop.label"
    remote_job(name, endpoint="shipping")
    try:
        JobType.objects.create(name=name)
        page = get(anna, page_of("worker", endpoint("shipping", 204, **NO_ANSWERS)))
        other = get(anna, page_of("worker", endpoint("mail", 204, **NO_ANSWERS)))
    finally:
        registry.remove(name)
    assert "sends it jobs of 1 job type. shop.label" in page.text
    assert page_of("jobtype", name) in page.links
    assert "The code of this site sends it no jobs." in other.text


@pytest.mark.parametrize("state", ["endpoint", "moving", "running"])
def test_the_jobs_that_have_no_room_are_a_link_away(
    anna: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(worker_page, "MOST_JOBS", 2)
    id = worker('the "big" one', state=state)
    ids = running(id, 3)
    page = get(anna, page_of("worker", id))
    shown = [page_of("queuedjob", job) in page.links for job in ids]
    assert shown == [True, True, False]
    (address,) = [one for one in page.links if "state%3Arunning" in one]
    assert {*get(anna, address).rows} == {*map(str, ids)}
    monkeypatch.setattr(worker_page, "MOST_JOBS", 3)
    assert "All its running jobs" not in get(anna, page_of("worker", id)).text


def move(**columns: Any) -> int:
    """Insert the row of a move; returns its id."""
    values = {"threads": 0, "job_types": [], "versions": {}, "rss": 0, **columns}
    return worker("move to archive", state="moving", **values)


def test_the_page_of_a_move_has_what_concerns_one(anna: Client, scene: Scene) -> None:
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


def test_a_move_that_was_killed_is_lapsed(anna: Client) -> None:
    id = move(lease_until=timezone.now() - MINUTE)
    assert "moving lapsed" in get(anna, page_of("worker", id)).text
    assert "moving lapsed" in row_of(get(anna, list_of("worker")), "move to archive")


@pytest.mark.parametrize("verb", ["drain", "resume", "stop", "restart", "where"])
def test_endpoints_and_moves_are_not_asked(
    anna: Client, scene: Scene, verb: str
) -> None:
    ids = [endpoint("shipping", 204, **NO_ANSWERS), move()]
    left_alone = "2 are endpoints or moves, and are left alone."
    if verb != "where":
        query = {"keys": "\n".join(map(str, ids))}
        question = get(anna, verb_of("worker", verb), **query)
        assert left_alone in question.text
        assert "already exited" not in question.text
    page = confirm(anna, "worker", verb, *ids)
    assert left_alone in page.text
    assert "had ended already" not in page.text
    assert not LogEntry.objects.exists()
    rows = Worker.objects.filter(pk__in=ids)
    assert [*rows.values_list("desired", "request")] == [("", None)] * 2


def test_a_job_of_an_endpoint_has_no_stack_to_show(anna: Client, scene: Scene) -> None:
    (job,) = running(endpoint("shipping", 204, **NO_ANSWERS))
    page = get(anna, page_of("queuedjob", job))
    assert "/stack/" not in page.html
