"""Searches through all jobs in the admin: started, watched, stopped, read by others."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_jobqueue.admin.lists.change_list import JobChangeList
from django_jobqueue.contrib.console import job_searches
from django_jobqueue.contrib.console.admin import job_search_list
from django_jobqueue.contrib.console.models import JobSearch
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from tests.admin import scene as rows
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, get, list_of, page_of, post
from tests.admin.scene import ADD, LEAK

pytestmark = pytest.mark.django_db

SEARCH = reverse("admin:jobqueue_search")
START = reverse("admin:jobqueue_console_jobsearch_start")
SEES = (*VIEWS, "view_jobsearch", "view_job_data")
STARTS = (*SEES, "start_jobsearch")
QUERY = "data.order:7"


def jobs(count: int, **columns: Any) -> list[UUID]:
    """So many archived jobs with the order 7, the newest last."""
    return [rows.archived(data={"order": 7}, **columns) for _ in range(count)]


def started(client: Client, query: str = QUERY) -> JobSearch:
    response = client.post(START, {"q": query})
    assert response.status_code == 302
    search = JobSearch.objects.latest("created_at")
    assert response["Location"] == page_of("jobsearch", search.pk)
    return search


def finish(search: JobSearch) -> None:
    job_searches.WORK.run_for(search.pk, 60)


def result(client: Client, search: JobSearch, **query: Any) -> Page:
    return get(client, page_of("jobsearch", search.pk), **query)


def test_a_search_that_did_not_look_at_everything_offers_to_those_who_may(
    anna: Client, log_in: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs(12)
    assert "Search all in the background" not in get(anna, SEARCH, q=QUERY).html
    monkeypatch.setattr(JobChangeList, "window", 10)
    page = get(anna, SEARCH, q=QUERY)
    assert "Search all in the background" in page.text
    assert page.all("form", method="post", action=START)
    shown = get(anna, list_of("archivedjob"), q=QUERY)
    assert f"{SEARCH}?q=data.order%3A7" in shown.links
    reader = log_in(*SEES)
    assert "Search all in the background" not in get(reader, SEARCH, q=QUERY).text
    assert reader.post(START, {"q": QUERY}).status_code == 403
    assert not JobSearch.objects.exists()


def test_a_search_is_watched_to_its_result(anna: Client) -> None:
    old = jobs(2)
    waiting = rows.queued(data={"order": "7"})
    rows.archived(data={"order": 8})
    search = started(anna)
    page = result(anna, search)
    assert "queued 0 found among 0 jobs" in page.text
    assert "data-jq-soon" in page.html
    assert "No living worker serves its queue, default." in page.text
    job_searches.WORK.do_chunk(search.pk, max_rows=100)
    page = result(anna, search)
    assert "running 1 found among" in page.text
    assert page_of("queuedjob", waiting) in page.links
    finish(search)
    page = result(anna, search)
    assert "done 3 found among" in page.text
    assert "Archived jobs: 2" in page.text
    assert {page_of("archivedjob", one) for one in old} <= set(page.links)
    assert f"{list_of('archivedjob')}?q=data.order%3A7" in page.links
    assert "data-jq-soon" not in page.html
    assert "Stop" not in page.text
    # A job is shown where it is now.
    QueuedJob.objects.filter(pk=waiting).delete()
    ArchivedJob.objects.create(id=waiting, job_type_id=ADD, status="succeeded")
    ArchivedJob.objects.filter(pk=old[0]).delete()
    page = result(anna, search)
    assert page_of("archivedjob", waiting) in page.links
    assert page_of("archivedjob", old[0]) not in page.links
    assert "1 of these jobs is gone" in page.text


def test_a_stop_keeps_what_was_found(anna: Client) -> None:
    jobs(3)
    other = started(anna)
    job_searches.WORK.do_chunk(other.pk, max_rows=100)
    stop = page_of("jobsearch", other.pk).replace("/change/", "/stop/")
    assert "Stop" in result(anna, other).text
    assert anna.get(stop).status_code == 302
    assert JobSearch.objects.get(pk=other.pk).state == "running"
    page = post(anna, stop, {})
    assert "Stopped. Its results stay." in page.text
    assert JobSearch.objects.get(pk=other.pk).state == "stopped"
    assert "its state has changed" in post(anna, stop, {}).text


def test_many_jobs_are_shown_page_by_page(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_search_list, "ROWS", 2)
    expected = {page_of("archivedjob", one) for one in jobs(5)}
    search = started(anna)
    finish(search)
    found: list[str] = []
    page = result(anna, search)
    while True:
        found += [one for one in page.links if one in expected]
        following = page.all("a", rel="next")
        if not following:
            break
        page = get(anna, page_of("jobsearch", search.pk) + str(following[0]["href"]))
    assert len(found) == 5
    assert set(found) == expected
    for odd in ("-1", "x", "9999", "²"):
        assert result(anna, search, p=odd)


def test_a_colleague_opens_the_result_and_sees_what_is_theirs(
    anna: Client, log_in: LogIn
) -> None:
    (old,) = jobs(1)
    waiting = rows.queued(data={"order": 7})
    search = started(anna)
    finish(search)
    page = result(log_in(*SEES), search)
    assert {page_of("archivedjob", old), page_of("queuedjob", waiting)} <= {*page.links}
    assert "Stop" not in page.text
    archive_only = ("view_archivedjob", "view_jobsearch", "view_job_data")
    carl = log_in(*archive_only, "start_jobsearch", name="carl")
    page = result(carl, search)
    assert page_of("archivedjob", old) in page.links
    assert page_of("queuedjob", waiting) not in page.links
    assert "1 found among" in page.text
    own = started(carl)  # searches only what he may see
    finish(own)
    assert JobSearch.objects.get(pk=own.pk).matched == {"archived": 1}
    types_only = log_in("view_jobtype", "view_jobsearch", "view_job_data", name="dora")
    assert types_only.get(page_of("jobsearch", search.pk)).status_code == 403


def test_who_may_not_see_data_learns_nothing_from_a_result(
    anna: Client, log_in: LogIn
) -> None:
    jobs(1)
    search = started(anna)
    blind = log_in(*VIEWS, "view_jobsearch")
    assert blind.get(page_of("jobsearch", search.pk)).status_code == 403
    page = get(blind, list_of("jobsearch"))
    assert "a value that you may not see" in page.text
    assert "data.order" not in page.text
    assert "found among" not in page.text
    assert "data.order:7" in get(anna, list_of("jobsearch")).text


def test_a_secret_is_searched_by_those_who_may_reveal_it(log_in: LogIn) -> None:
    JobType.objects.filter(name=LEAK).update(sensitive=["card"])
    rows.archived(LEAK, data={"card": "4711"})
    starter = log_in(*STARTS)
    response = starter.post(START, {"q": "data.card:4711"})
    assert response["Location"].startswith(SEARCH)
    assert not JobSearch.objects.exists()
    revealer = log_in(*STARTS, "reveal_job_data", name="carl")
    search = started(revealer, "data.card:4711")
    finish(search)
    assert "Archived jobs: 1" in result(revealer, search).text
    assert starter.get(page_of("jobsearch", search.pk)).status_code == 403
    assert "4711" not in get(starter, list_of("jobsearch")).text


def test_what_means_nothing_or_is_found_at_once_is_not_searched(anna: Client) -> None:
    id = "01a1fefc-a7b0-7364-875d-a99c8c940e69"
    for query in ("", " ", "type:", 'data."', id, "no.such:thing"):
        assert anna.post(START, {"q": query})["Location"].startswith(SEARCH), query
    assert anna.get(START, {"q": QUERY}).status_code == 302
    assert not JobSearch.objects.exists()
    # A term of one table searches that table.
    assert list(started(anna, "status:failed").selections) == ["archived"]
    assert list(started(anna, "state:ready").selections) == ["queued"]
    started(anna)
    told = post(anna, START, {"q": QUERY}).text
    assert "At most 3 of your searches can run at once." in told


def test_one_whose_job_is_gone_or_paused_says_so_and_goes_on(anna: Client) -> None:
    search = started(anna)
    JobType.objects.filter(name="jobqueue.bulk").update(
        paused=True, paused_at=timezone.now()
    )
    assert "is paused, so it waits: jobqueue.bulk, default" in result(anna, search).text
    QueuedJob.objects.all().delete()
    page = result(anna, search)
    assert "The job that did the work is gone." in page.text
    post(anna, page_of("jobsearch", search.pk).replace("/change/", "/resume/"), {})
    assert QueuedJob.objects.get().data == {"search": str(search.pk)}
    post(anna, page_of("jobsearch", search.pk).replace("/change/", "/step/"), {})
    assert JobSearch.objects.get().state == "done"
    # Nor does what plain SQL wrote break one.
    for stored in ({}, [], {"archived": 3}, {"nowhere": {}}):
        JobSearch.objects.update(selections=stored)
        assert anna.get(page_of("jobsearch", search.pk)).status_code == 403
        assert get(anna, list_of("jobsearch"))
