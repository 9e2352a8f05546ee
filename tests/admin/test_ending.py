"""How waiting jobs may end: more attempts, or none."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import get, page_of, verb_of
from tests.admin.scene import ADD, FAIL, ONCE, Scene
from tests.admin.units import act, buttons, problems, question

SAID: dict[str, tuple[str, dict[str, Any]]] = {
    "fail": ("cancel_queuedjob", {"reason": "x"}),
    "allow_attempts": ("reschedule_queuedjob", {"max_attempts": 9}),
}


def test_a_waiting_job_is_archived_as_failed_with_the_reason(
    anna: Client, db: None, operated: list[dict[str, Any]]
) -> None:
    id = rows.queued(FAIL, attempts=2)
    assert "This field is required." in problems(anna, "queuedjob", "fail", id)
    told = act(anna, "queuedjob", "fail", id, reason="<b>OPS-7</b>")
    assert told == "1 job was archived as failed."
    job = ArchivedJob.objects.get(pk=id)
    found = (job.status, job.error_message, job.attempts)
    assert found == ("failed", "<b>OPS-7</b>", 2)
    assert not QueuedJob.objects.filter(pk=id).exists()
    entry = LogEntry.objects.get()
    assert entry.get_change_message() == "Archived as failed. <b>OPS-7</b>"
    assert "&lt;b&gt;OPS-7" in get(anna, page_of("archivedjob", id)).html
    assert [(one["verb"], one["count"]) for one in operated] == [("fail", 1)]


def test_a_waiting_job_gets_more_attempts(
    anna: Client, db: None, operated: list[dict[str, Any]]
) -> None:
    id = rows.queued(FAIL, attempts=3)
    few = "Ensure this value is greater than or equal to 4."  # 3 were made
    for number, why in (
        *(("0", few), ("-1", few), ("2", few), ("3", few)),
        *(("x", "whole number"), ("", "required"), ("9" * 30, "less than")),
    ):
        said = problems(anna, "queuedjob", "allow_attempts", id, max_attempts=number)
        assert why in said, number
    told = act(anna, "queuedjob", "allow_attempts", id, max_attempts="7")
    assert told == "1 job was changed."
    assert QueuedJob.objects.get().max_attempts == 7
    assert LogEntry.objects.get().get_change_message() == "Attempts: 7."
    assert [one["verb"] for one in operated] == ["allow attempts"]
    assert "3 / 7" in get(anna, page_of("queuedjob", id)).text
    asked = question(anna, "queuedjob", "allow_attempts", rows.queued(ONCE))
    assert "has one attempt whatever is said here" in asked


def test_a_running_job_is_left_alone(anna: Client, scene: Scene) -> None:
    id = scene.queued["running"]
    before = QueuedJob.objects.filter(pk=id).values().get()
    for verb, (_right, said) in SAID.items():
        assert verb not in buttons(anna, "queuedjob", id)
        assert "1 was skipped" in act(anna, "queuedjob", verb, id, **said)
    assert QueuedJob.objects.filter(pk=id).values().get() == before


def test_each_needs_its_right(log_in: LogIn) -> None:
    wrong = log_in("view_queuedjob", "release_queuedjob", "view_job_data")
    for verb, (right, said) in SAID.items():
        sent = {"keys": str(rows.queued(ADD)), "confirmed": "1", **said}
        assert wrong.post(verb_of("queuedjob", verb), sent).status_code == 403
        client = log_in("view_queuedjob", right, name=verb)
        assert client.post(verb_of("queuedjob", verb), sent).status_code == 302
    assert LogEntry.objects.count() == 2
