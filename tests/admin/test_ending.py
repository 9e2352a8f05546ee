"""How waiting jobs may end: more attempts, or none."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import confirm, get, page_of, select, verb_of
from tests.admin.scene import ADD, FAIL, ONCE, Scene


def test_a_waiting_job_is_archived_as_failed_with_the_reason(
    anna: Client, scene: Scene, operated: list[dict[str, Any]]
) -> None:
    id = scene.queued["retrying"]
    page = confirm(anna, "queuedjob", "fail", id, reason="<b>OPS-7</b>")
    assert "1 job was archived as failed." in page.text
    job = ArchivedJob.objects.get(pk=id)
    assert (job.status, job.error_message, job.attempts) == (
        "failed",
        "<b>OPS-7</b>",
        2,
    )
    assert not QueuedJob.objects.filter(pk=id).exists()
    entry = LogEntry.objects.get()
    assert entry.get_change_message() == "Archived as failed. <b>OPS-7</b>"
    assert "&lt;b&gt;OPS-7" in get(anna, page_of("archivedjob", id)).html
    assert [(one["verb"], one["count"]) for one in operated] == [("fail", 1)]


def test_failing_needs_a_reason(anna: Client, scene: Scene) -> None:
    page = confirm(anna, "queuedjob", "fail", scene.queued["later"])
    assert "This field is required." in page.text
    assert QueuedJob.objects.filter(pk=scene.queued["later"]).exists()


def test_a_waiting_job_gets_more_attempts(
    anna: Client, db: None, operated: list[dict[str, Any]]
) -> None:
    id = rows.queued(FAIL, attempts=3)
    page = confirm(anna, "queuedjob", "allow_attempts", id, max_attempts="7")
    assert "1 job was changed." in page.text
    assert QueuedJob.objects.get().max_attempts == 7
    assert LogEntry.objects.get().get_change_message() == "Attempts: 7."
    assert [one["verb"] for one in operated] == ["allow attempts"]
    assert "3 / 7" in get(anna, page_of("queuedjob", id)).text


@pytest.mark.parametrize("number", ["0", "-1", "x", "", "9" * 30])
def test_a_number_that_there_is_not_is_asked_again(
    anna: Client, db: None, number: str
) -> None:
    id = rows.queued(ADD)
    page = confirm(anna, "queuedjob", "allow_attempts", id, max_attempts=number)
    assert "errorlist" in page.html
    assert QueuedJob.objects.get().max_attempts is None


@pytest.mark.parametrize("number", ["2", "3"])
def test_a_number_of_attempts_that_were_made_is_asked_again(
    anna: Client, db: None, number: str
) -> None:
    id = rows.queued(FAIL, attempts=3)
    page = confirm(anna, "queuedjob", "allow_attempts", id, max_attempts=number)
    assert "Ensure this value is greater than or equal to 4." in page.text
    assert 'min="4"' in page.html
    assert QueuedJob.objects.get().max_attempts is None


def test_that_once_is_once_is_said(anna: Client, db: None) -> None:
    id = rows.queued(ONCE)
    page = select(anna, "queuedjob", "allow_attempts", id)
    assert "has one attempt whatever is said here" in page.text


@pytest.mark.parametrize(
    ("verb", "said"),
    [("fail", {"reason": "x"}), ("allow_attempts", {"max_attempts": 9})],
)
def test_a_running_job_is_left_alone(
    anna: Client, scene: Scene, verb: str, said: dict[str, Any]
) -> None:
    id = scene.queued["running"]
    assert verb_of("queuedjob", verb) not in get(anna, page_of("queuedjob", id)).html
    before = QueuedJob.objects.filter(pk=id).values().get()
    page = confirm(anna, "queuedjob", verb, id, **said)
    assert "1 was skipped" in page.text
    assert QueuedJob.objects.filter(pk=id).values().get() == before


@pytest.mark.parametrize(
    ("verb", "right", "said"),
    [
        ("fail", "cancel_queuedjob", {"reason": "x"}),
        ("allow_attempts", "reschedule_queuedjob", {"max_attempts": 9}),
    ],
)
def test_each_needs_its_right(
    log_in: LogIn, scene: Scene, verb: str, right: str, said: dict[str, Any]
) -> None:
    sent = {"keys": str(scene.queued["later"]), "confirmed": "1", **said}
    client = log_in("view_queuedjob", "release_queuedjob", "view_job_data")
    assert client.post(verb_of("queuedjob", verb), sent).status_code == 403
    client = log_in("view_queuedjob", right, name="carl")
    assert client.post(verb_of("queuedjob", verb), sent).status_code == 302
    assert LogEntry.objects.count() == 1
