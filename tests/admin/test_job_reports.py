"""What attempts told, on the pages of jobs and in lists; and what follows on what."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from django_jobqueue.domain.ids import first_id
from django_jobqueue.models import ArchivedJob, Failure, QueuedJob, Report
from django_jobqueue.models.follower_search import among
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, LEAK, MINUTE, SECRET
from tests.admin.test_costs import queries
from tests.admin.units import context
from tests.progress.rows import running, told

pytestmark = pytest.mark.django_db

NOW = 1_795_000_000.25


def lines(*texts: str, level: str = "info") -> list[list[Any]]:
    return [[NOW + second, level, text] for second, text in enumerate(texts)]


def failed_attempt(id: UUID, number: int, minutes_ago: int, **columns: Any) -> datetime:
    """An attempt that failed; returns when it began."""
    began = timezone.now() - minutes_ago * MINUTE
    row = {"job_id": id, "job_type": FAIL, "number": number, "end": "failed"}
    moments = {"started_at": began, "finished_at": began + timedelta(seconds=10)}
    rows.insert(Failure, {**row, **moments, **columns})
    return began


def bars(page: Page) -> list[str | None]:
    return [bar["value"] for bar in page.all("progress")]


def test_a_running_job_shows_how_far_it_is(anna: Client) -> None:
    began = timezone.now() - timedelta(seconds=70)  # 210 s are left, give or take 30
    id = running(started_at=began)
    page = get(anna, page_of("queuedjob", id))
    assert bars(page) == []
    assert "jq-lines" not in page.html
    assert "Metadata" not in page.text
    said = {"done": 30, "total": 120, "note": "resizing", "dropped": 3}
    asked = {"queries": 1_200, "query_ms": 34.4, "started_at": began}
    told(id, lines=lines("first", "second"), **said, **asked)
    page = get(anna, page_of("queuedjob", id))
    assert bars(page) == ["25"]
    for text in (
        "30 of 120 (25 %) · resizing · about 3 m left",
        "1,200 queries, 34 ms",
        "2 lines",
        "3 earlier lines were dropped.",
    ):
        assert text in page.text
    assert page.text.index("first") < page.text.index("second")
    assert len(page.all("div", **{"data-jq-region": "job"})) == 1
    # Of a job that tells only what it is at, that is shown.
    other = running()
    told(other, note="asking the carrier")
    page = get(anna, page_of("queuedjob", other))
    assert bars(page) == []
    assert "asking the carrier" in page.text


def test_each_attempt_has_what_it_told(anna: Client) -> None:
    id = rows.archived(FAIL, "failed", attempts=2)
    for number, minutes in ((1, 30), (2, 20)):
        began = failed_attempt(id, number, minutes, error_message=f"error {number}")
        said = {"fence": number * 10, "number": number, "done": number, "total": 4}
        told(id, **said, started_at=began, lines=lines(f"line of {number}"))
    page = get(anna, page_of("archivedjob", id))
    assert bars(page) == ["50", "25"]
    order = ["error 2", "line of 2", "error 1", "line of 1"]
    assert sorted(order, key=page.text.index) == order
    assert ["open" in one for one in page.all("details")] == [True, False]
    # What a job that succeeded told is kept with its attempt.
    began = timezone.now() - MINUTE
    id = rows.archived(attempts=1, started_at=began)
    told(id, done=7, total=7, started_at=began, lines=lines("all is well"))
    page = get(anna, page_of("archivedjob", id))
    assert bars(page) == ["100"]
    assert "all is well" in page.text
    assert "left" not in page.text


def test_a_crash_spends_no_attempt_and_lines_do_not_mix(anna: Client) -> None:
    """Two attempts have the number 1, and of the first nothing is known but lines."""
    id = running(started_at=timezone.now() - MINUTE, crashes=1)
    began = failed_attempt(id, 1, 10, end="crashed", reason="killed")
    told(id, fence=1, number=1, started_at=began, lines=lines("before the crash"))
    page = get(anna, page_of("queuedjob", id))
    assert page.text.index("killed") < page.text.index("before the crash")
    second = timezone.now() - MINUTE
    told(id, fence=2, number=1, started_at=second, lines=lines("after the crash"))
    page = get(anna, page_of("queuedjob", id))
    order = ["after the crash", "killed", "before the crash"]
    assert sorted(order, key=page.text.index) == order


def test_attempts_that_failed_alike_keep_their_lines(anna: Client) -> None:
    id = rows.archived(FAIL, "failed", attempts=4)
    same = uuid4()
    for number in (1, 2, 3):
        began = failed_attempt(id, number, 40 - number, fingerprint=same)
        text = f"line of {number}."
        told(id, fence=number, number=number, started_at=began, lines=lines(text))
    # The log of a failure is shown where no lines are.
    failed_attempt(id, 4, 30, log_tail="the tail of 4", error_message="4")
    began = failed_attempt(id, 5, 20, log_tail="the tail of 5", error_message="5")
    told(id, fence=5, number=5, started_at=began, lines=lines("a line"))
    page = get(anna, page_of("archivedjob", id))
    assert len(page.all("article")) == 3
    assert [page.text.count(f"line of {number}.") for number in (1, 2, 3)] == [1, 1, 1]
    assert "the tail of 4" in page.text
    assert "the tail of 5" not in page.text


def test_lines_and_notes_are_shown_to_all_and_metadata_as_data_are(
    log_in: LogIn,
) -> None:
    id = running(job_type=LEAK, data={"token": SECRET}, metadata={"tenant": "acme"})
    told(id, note=f"note {SECRET}", lines=lines(f"line {SECRET}"))
    some = get(log_in("view_queuedjob"), page_of("queuedjob", id))
    assert "note ••••" in some.text
    assert "line ••••" in some.text
    assert '"tenant"' in some.text
    assert "acme" not in some.text
    client = log_in("view_queuedjob", "view_job_data", name="carl")
    more = get(client, page_of("queuedjob", id))
    assert '"tenant": "acme"' in more.text
    assert SECRET not in some.html + more.html


def test_lines_that_plain_sql_wrote_harm_nothing_and_are_bounded(anna: Client) -> None:
    id = running()
    told(id)
    for stored in (
        '{"a": 1}',
        "7",
        "null",
        '["x", null, [1, 2], [1, 2, 3], [1, "info", "good"], [1e300, "info", "odd"]]',
        '[["now", "info", "x"], [1, "<b>", "good"]]',
    ):
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobqueue_report SET lines = %s::jsonb", [stored])
        found = context(anna, "queuedjob", id)["page"].current.report.lines
        assert ("good" in [line.text for line in found]) == ("good" in stored), stored
    assert "good" in get(anna, page_of("queuedjob", id)).text

    id = rows.archived(FAIL, "failed", attempts=20)
    for number in range(1, 21):
        began = failed_attempt(id, number, 60 - number, error_message=str(number))
        text = ["x" * 1_000] * 60
        told(id, fence=number, number=number, started_at=began, lines=lines(*text))
    page = get(anna, page_of("archivedjob", id))
    assert len(page.html) < 1_000_000
    assert "The lines are not shown, because there are too many." in page.text


def test_what_attempts_told_is_one_query(anna: Client) -> None:
    id = rows.archived(FAIL, "failed", attempts=4)
    address = page_of("archivedjob", id)
    failed_attempt(id, 1, 30)
    few = queries(anna, address)
    for number in range(2, 5):
        began = failed_attempt(id, number, 30 - number)
        told(id, fence=number, number=number, started_at=began, lines=lines("x"))
    assert queries(anna, address) == few


def test_running_jobs_in_the_list_have_a_bar_by_one_query(anna: Client) -> None:
    rows.queued(attempts=1)
    none = queries(anna, list_of("queuedjob"))
    id, other = running(), running(fence=5)
    told(id, done=1, total=4, note="resizing")
    told(other, fence=4, done=3, total=4)  # by an attempt that is over
    page = get(anna, list_of("queuedjob"))
    assert bars(page) == ["25"]
    assert page.all("progress")[0]["aria-label"] == "1 of 4 (25 %)"
    assert "resizing" in page.text
    one = queries(anna, list_of("queuedjob"))
    for _ in range(3):
        told(running(), done=1, total=2)
    assert queries(anna, list_of("queuedjob")) == one
    assert one <= none + 1
    assert Report.objects.count() == 5


# Followers.


def ended(job_type: str, followers: dict[str, list[str]]) -> UUID:
    """A failed job that has just left the queue: the trigger enqueues."""
    id = rows.queued(job_type, followers=followers)
    rows.archived(job_type, "failed", id=id, followers=followers)
    QueuedJob.objects.filter(pk=id).delete()
    return id


def test_a_job_leads_to_the_one_that_follows_and_back(anna: Client) -> None:
    waits = rows.queued(followers={"on_complete": [ADD]})
    page = get(anna, page_of("queuedjob", waits))
    assert f"On completion {ADD}" in page.text

    id = ended(FAIL, {"on_complete": [ADD]})
    (follower,) = QueuedJob.objects.filter(enqueued_by="on_complete").values(
        "id", "data", "follows"
    )
    ended(FAIL, {"on_complete": [ADD]})  # and another one
    page = get(anna, page_of("archivedjob", id))
    assert page_of("queuedjob", follower["id"]) in page.links
    page = get(anna, page_of("queuedjob", follower["id"]))
    assert "Follows on" in page.text
    assert page_of("archivedjob", id) in page.links
    # It is found in the archive too; one that is not kept is named by its type.
    QueuedJob.objects.all().delete()
    assert f"On completion {ADD}" in get(anna, page_of("archivedjob", id)).text
    rows.archived(ADD, **follower)
    page = get(anna, page_of("archivedjob", id))
    assert page_of("archivedjob", follower["id"]) in page.links


def test_a_job_page_lists_all_followers_by_outcome(anna: Client) -> None:
    named = {"on_success": [ADD], "on_failure": [ADD, FAIL], "on_complete": [FAIL]}
    page = get(anna, page_of("queuedjob", rows.queued(followers=named)))
    assert f"On success {ADD} On failure {ADD} {FAIL} On completion {FAIL}" in page.text
    assert "Followed by" not in page.text
    id = ended(FAIL, named)
    page = get(anna, page_of("archivedjob", id))
    ids = QueuedJob.objects.filter(follows=id).values_list("pk", flat=True)
    assert len(ids) == 2, "the same follower is enqueued once"
    for follower in ids:
        assert page_of("queuedjob", follower) in page.links
    said = page.text.partition("Followed by ")[2]
    both = (f"{ADD} queued {FAIL} queued", f"{FAIL} queued {ADD} queued")
    assert said.startswith(both)  # both were enqueued in one statement


def test_followers_that_plain_sql_wrote_harm_nothing(anna: Client) -> None:
    for followers in (
        *({}, 7, "x", [1]),
        {"on_success": "x"},
        {"on_success": [7, {"a": 1}]},
    ):
        for model, id in (
            ("queuedjob", rows.queued(followers=followers)),
            ("archivedjob", rows.archived(FAIL, "succeeded", followers=followers)),
        ):
            summary = context(anna, model, id)["page"].summary
            assert "On success" not in map(str, dict(summary)), followers
    assert "On success" not in get(anna, page_of(model, id)).text


def test_the_follower_is_looked_for_by_ids_and_not_by_data(db: None) -> None:
    id = rows.archived(FAIL, "failed", followers={"on_complete": [ADD]})
    job = ArchivedJob.objects.get(pk=id)
    ended = [job.finished_at - n * MINUTE for n in range(1, 3_000)]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_archivedjob (id, job_type, status, finished_at)"
            " SELECT id, %s, 'succeeded', at FROM"
            " unnest(%s::uuid[], %s::timestamptz[]) AS ended (id, at)",
            [ADD, [*map(first_id, ended)], ended],
        )
        cursor.execute("ANALYZE jobqueue_archivedjob")
    plan = among(ArchivedJob, job).explain()
    assert "jobqueue_archivedjob_pkey" in plan
    assert "Index Cond: ((id >=" in plan
