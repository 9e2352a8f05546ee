"""Cancel, run now, pause and resume, and what workers are asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, JobType, Queue, QueuedJob, Worker
from tests.admin.pages import confirm, get, page_of, post, select, verb_of
from tests.admin.scene import ADD, FAIL, LEAK, Scene


def entries() -> dict[str, str]:
    """What was written down, by object."""
    found = LogEntry.objects.order_by("pk")
    return {str(entry.object_id): entry.get_change_message() for entry in found}


def test_cancel_says_what_becomes_of_waiting_and_of_running_jobs(
    anna: Client, scene: Scene
) -> None:
    ids = scene.queued["later"], scene.queued["ready"], scene.queued["running"]
    page = select(anna, "queuedjob", "cancel", *ids)
    for text in (
        "Cancel 3 jobs?",
        "2 wait: they are archived as cancelled at once.",
        "1 runs: its handler is asked to stop, and what it did stays.",
    ):
        assert text in page.text
    assert QueuedJob.objects.count() == len(scene.queued)


def test_cancel_archives_what_waits_and_asks_what_runs(
    anna: Client, scene: Scene
) -> None:
    later, running = scene.queued["later"], scene.queued["running"]
    page = confirm(anna, "queuedjob", "cancel", later, running, reason="wrong price")
    assert "1 job was cancelled. 1 running job was asked to stop." in page.text
    over = ArchivedJob.objects.get(pk=later)
    assert (over.status, over.error_message) == ("cancelled", "wrong price")
    assert QueuedJob.objects.get(pk=running).cancel_requested_at is not None
    assert entries() == {
        str(later): "Cancelled. wrong price",
        str(running): "Cancelled. wrong price",
    }
    assert "wrong price" in get(anna, page_of("archivedjob", later)).text
    assert "asked to stop" in get(anna, page_of("queuedjob", running)).text


def test_cancelling_from_a_job_s_page_leads_to_where_it_is_now(
    anna: Client, scene: Scene
) -> None:
    id = scene.queued["later"]
    said = {"reason": "", "next": page_of("queuedjob", id)}
    page = confirm(anna, "queuedjob", "cancel", id, **said)
    assert "1 job was cancelled." in page.text
    assert "This job has finished; it is in the archive." in page.text
    assert "cancelled by anna" in page.text


def test_what_is_over_meanwhile_is_not_cancelled(anna: Client, scene: Scene) -> None:
    id = scene.queued["later"]
    QueuedJob.objects.filter(pk=id).delete()
    page = confirm(anna, "queuedjob", "cancel", id)
    assert "Nothing of what was selected is here any more." in page.text
    assert entries() == {}


def test_a_reason_that_is_too_long_is_asked_again(anna: Client, scene: Scene) -> None:
    page = confirm(anna, "queuedjob", "cancel", scene.queued["later"], reason="x" * 501)
    assert "at most 500 characters" in page.text
    assert QueuedJob.objects.filter(pk=scene.queued["later"]).exists()


def test_run_now_makes_waiting_jobs_due(anna: Client, scene: Scene) -> None:
    later, retrying = scene.queued["later"], scene.queued["retrying"]
    page = confirm(anna, "queuedjob", "run_now", later, retrying)
    assert "2 jobs are due now." in page.text
    for id in (later, retrying):
        assert QueuedJob.objects.get(pk=id).run_after <= timezone.now()
    assert QueuedJob.objects.get(pk=retrying).attempts == 2
    assert set(entries().values()) == {"Made due now."}


def test_run_now_leaves_running_jobs_alone(anna: Client, scene: Scene) -> None:
    ids = scene.queued["running"], scene.queued["later"]
    before = QueuedJob.objects.get(pk=ids[0])
    page = select(anna, "queuedjob", "run_now", *ids)
    assert "1 is running already and is left alone." in page.text
    page = confirm(anna, "queuedjob", "run_now", *ids)
    assert "1 job is due now." in page.text
    assert "1 was skipped" in page.text
    assert QueuedJob.objects.get(pk=ids[0]).run_after == before.run_after
    assert list(entries()) == [str(ids[1])]


def test_waiting_jobs_get_another_time_priority_and_queue(
    anna: Client, scene: Scene
) -> None:
    ids = scene.queued["later"], scene.queued["retrying"]
    said = {"run_after": "2030-01-02T03:04", "priority": "-7", "queue": "mail"}
    page = confirm(anna, "queuedjob", "reschedule", *ids, **said)
    assert "2 jobs were rescheduled." in page.text
    moment = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    for row in QueuedJob.objects.filter(pk__in=ids):
        assert (row.run_after, row.priority, row.queue) == (moment, -7, "mail")
    assert set(entries().values()) == {
        "Rescheduled: run after 2030-01-02 03:04:00+00:00, priority -7, queue mail."
    }


def test_what_is_left_empty_stays_as_it_is(anna: Client, scene: Scene) -> None:
    id = scene.queued["later"]
    before = QueuedJob.objects.get(pk=id)
    said = {"run_after": "", "priority": "0", "queue": ""}
    confirm(anna, "queuedjob", "reschedule", id, **said)
    row = QueuedJob.objects.get(pk=id)
    assert (row.run_after, row.queue) == (before.run_after, before.queue)
    assert row.priority == 0
    assert list(entries().values()) == ["Rescheduled: priority 0."]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({}, "Choose a time, a priority or a queue."),
        ({"priority": "101"}, "less than or equal to 100"),
        ({"queue": "nowhere"}, "not one of the available choices"),
        ({"run_after": "soon"}, "Enter a valid date/time."),
        ({"run_after": "2030-01-02T03:04"}, "1 job expires before that."),
    ],
)
def test_a_schedule_that_makes_no_sense_is_asked_again(
    anna: Client, scene: Scene, said: dict[str, str], text: str
) -> None:
    id = scene.queued["later"]
    QueuedJob.objects.filter(pk=id).update(expires_at="2029-01-01T00:00Z")
    before = QueuedJob.objects.get(pk=id)
    page = confirm(anna, "queuedjob", "reschedule", id, **said)
    assert text in page.text
    after = QueuedJob.objects.get(pk=id)
    assert (after.run_after, after.priority) == (before.run_after, before.priority)
    assert entries() == {}


def test_a_running_job_is_not_rescheduled(anna: Client, scene: Scene) -> None:
    id = scene.queued["running"]
    page = select(anna, "queuedjob", "reschedule", id)
    assert "1 is running already and is left alone." in page.text
    confirm(anna, "queuedjob", "reschedule", id, priority="5")
    assert QueuedJob.objects.get(pk=id).priority != 5
    assert entries() == {}


def test_a_job_type_is_paused_with_a_reason_and_until_when(
    anna: Client, scene: Scene
) -> None:
    until = timezone.now().replace(microsecond=0, second=0) + timedelta(hours=3)
    said = {"reason": "carrier is down", "resume_at": f"{until:%Y-%m-%dT%H:%M}"}
    page = confirm(anna, "jobtype", "pause", ADD, FAIL, **said)
    assert f"Paused: {ADD}, {FAIL}." in page.text
    row = JobType.objects.get(pk=FAIL)
    assert (row.paused, row.paused_by, row.resume_at) == (True, "anna", until)
    assert row.paused_reason == "carrier is down"
    assert entries() == dict.fromkeys([ADD, FAIL], "Paused: carrier is down")
    page = get(anna, page_of("jobtype", FAIL))
    assert f"paused until {until:%Y-%m-%d %H:%M}" in page.text
    assert "carrier is down" in page.text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"reason": ""}, "This field is required."),
        (
            {"reason": "x", "resume_at": "2001-01-01T00:00"},
            "This moment is in the past.",
        ),
        ({"reason": "x", "resume_at": "soon"}, "Enter a valid date/time."),
        ({"reason": "x" * 501}, "at most 500 characters"),
    ],
)
def test_a_pause_that_is_not_clear_is_asked_again(
    anna: Client, scene: Scene, said: dict[str, str], text: str
) -> None:
    assert text in confirm(anna, "jobtype", "pause", FAIL, **said).text
    assert not JobType.objects.get(pk=FAIL).paused
    assert entries() == {}


def test_the_end_of_a_pause_is_in_the_time_zone_that_the_page_names(
    anna: Client, scene: Scene, settings: Any
) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    page = select(anna, "jobtype", "pause", FAIL)
    assert "Time zone: Asia/Tokyo." in page.text
    said = {"reason": "x", "resume_at": "2100-01-01T08:00"}
    confirm(anna, "jobtype", "pause", FAIL, **said)
    until = JobType.objects.get(pk=FAIL).resume_at
    assert until == datetime(2099, 12, 31, 23, tzinfo=UTC)
    page = get(anna, page_of("jobtype", FAIL))
    assert "paused until 2100-01-01 08:00:00 JST" in page.text


def test_a_pause_that_ended_by_itself_is_none(anna: Client, scene: Scene) -> None:
    past = timezone.now() - timedelta(minutes=1)
    JobType.objects.filter(pk=LEAK).update(resume_at=past)
    page = get(anna, page_of("jobtype", LEAK))
    assert "open" in page.text
    assert verb_of("jobtype", "pause") in page.html


def test_a_job_type_is_resumed(anna: Client, scene: Scene) -> None:
    page = select(anna, "jobtype", "resume", LEAK)
    assert f"{LEAK} was paused by carl: leaks" in page.text
    page = confirm(anna, "jobtype", "resume", LEAK)
    assert f"Resumed: {LEAK}." in page.text
    assert not JobType.objects.get(pk=LEAK).paused
    assert entries() == {LEAK: "Resumed."}


def test_queues_are_paused_and_resumed(anna: Client, scene: Scene) -> None:
    confirm(anna, "queue", "pause", "images", reason="disk is full")
    assert Queue.objects.get(pk="images").paused_reason == "disk is full"
    confirm(anna, "queue", "resume", "images", "mail")
    assert not Queue.objects.filter(paused=True).exists()
    assert entries() == {"images": "Resumed.", "mail": "Resumed."}


def test_a_queue_without_a_row_is_paused_by_its_name(
    anna: Client, scene: Scene
) -> None:
    address = verb_of("queue", "pause-by-name")
    assert "Known queues: default, images, mail" in get(anna, address).text
    form = {"name": "reports", "reason": "month's end", "confirmed": "1"}
    page = post(anna, address, form)
    assert "Paused: reports." in page.text
    row = Queue.objects.get(pk="reports")
    assert (row.paused, row.paused_by) == (True, "anna")
    assert entries() == {"reports": "Paused: month's end"}


@pytest.mark.parametrize("name", ["", "a b", "a,b", "x" * 101, "a\x00b", "\x1b"])
def test_a_name_that_no_queue_can_have_is_asked_again(
    anna: Client, scene: Scene, name: str
) -> None:
    form = {"name": name, "reason": "x", "confirmed": "1"}
    page = post(anna, verb_of("queue", "pause-by-name"), form)
    assert page.all("ul", **{"class": "errorlist", "id": "id_name_error"})
    assert Queue.objects.count() == 2


@pytest.mark.usefixtures("requests_commit")
@pytest.mark.parametrize("what", ["drain", "resume", "stop", "restart"])
def test_workers_are_asked(anna: Client, scene: Scene, what: str) -> None:
    alive, dead = scene.workers["running"], scene.workers["stopped"]
    page = select(anna, "worker", what, alive, dead)
    for text in ("2 workers?", "1 job runs there now.", "1 worker has already exited"):
        assert text in page.text
    page = confirm(anna, "worker", what, alive, dead)
    assert "1 worker was asked" in page.text
    assert "1 worker had ended already." in page.text
    assert Worker.objects.get(pk=alive).desired == what
    assert Worker.objects.get(pk=dead).desired == ""
    assert list(entries()) == [str(alive)]


def test_a_worker_shows_what_it_was_asked_for(anna: Client, scene: Scene) -> None:
    """Until it is so."""
    Worker.objects.filter(pk=scene.workers["running"]).update(desired="stop")
    page = get(anna, page_of("worker", scene.workers["running"]))
    assert "running asked to stop" in page.text
    page = get(anna, page_of("worker", scene.workers["draining"]))
    assert "asked to drain" not in page.text


def test_only_one_of_two_buttons_is_named_for_cancelling(
    anna: Client, scene: Scene
) -> None:
    keys = [scene.queued["ready"], scene.queued["later"]]
    page = get(anna, verb_of("queuedjob", "cancel"), keys="\n".join(map(str, keys)))
    (button,) = page.all("input", name="confirmed")
    assert button["value"] == "Cancel 2 jobs"
    assert "Cancel" not in page.texts
    assert "Back" in page.texts
