"""Cancel, run now, pause and resume, and what workers are asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, JobType, Queue, QueuedJob, Worker
from tests.admin.pages import get, page_of, select, verb_of
from tests.admin.scene import ADD, FAIL, insert_all, queued, worker
from tests.admin.units import (
    act,
    answer,
    context,
    errors_of,
    press,
    problems,
    question,
)

pytestmark = pytest.mark.django_db


def entries() -> dict[str, str]:
    """What was written down, by object."""
    found = LogEntry.objects.order_by("pk")
    return {str(entry.object_id): entry.get_change_message() for entry in found}


def running(**columns: Any) -> Any:
    """A job that runs."""
    now = timezone.now()
    return queued(status="running", started_at=now, attempts=1, **columns)


def row(id: object) -> QueuedJob:
    return QueuedJob.objects.get(pk=id)


def test_cancel_archives_what_waits_and_asks_what_runs(anna: Client) -> None:
    later, ready, runs = queued(), queued(), running(worker_id=worker())
    page = select(anna, "queuedjob", "cancel", later, ready, runs)
    for text in (
        "Cancel 3 jobs?",
        "2 wait: they are archived as cancelled at once.",
        "1 runs: its handler is asked to stop, and what it did stays.",
    ):
        assert text in page.text
    (button,) = page.all("input", name="confirmed")
    assert button["value"] == "Cancel 3 jobs"
    assert "Cancel" not in page.texts  # one of two buttons is named for cancelling
    assert "Back" in page.texts
    assert QueuedJob.objects.count() == 3
    long = problems(anna, "queuedjob", "cancel", later, reason="x" * 501)
    assert "at most 500 characters" in long

    told = act(anna, "queuedjob", "cancel", later, runs, reason="wrong price")
    assert told == "1 job was cancelled. 1 running job was asked to stop."
    over = ArchivedJob.objects.get(pk=later)
    assert (over.status, over.error_message) == ("cancelled", "wrong price")
    assert row(runs).cancel_requested_at is not None
    cancelled = "Cancelled. wrong price"
    assert entries() == {str(later): cancelled, str(runs): cancelled}
    assert "wrong price" in get(anna, page_of("archivedjob", later)).text
    assert "asked to stop" in get(anna, page_of("queuedjob", runs)).text
    gone = "Nothing of what was selected is here any more."
    assert act(anna, "queuedjob", "cancel", later) == gone


def test_cancelling_from_a_job_s_page_leads_to_where_it_is_now(anna: Client) -> None:
    id = queued()
    there = page_of("queuedjob", id)
    sent = {"keys": str(id), "confirmed": "1", "reason": "", "next": there}
    response = anna.post(verb_of("queuedjob", "cancel"), sent, follow=True)
    text = response.content.decode()
    assert "1 job was cancelled." in text
    assert "This job has finished; it is in the archive." in text
    assert "cancelled by anna" in text


def test_run_now_makes_waiting_jobs_due_and_leaves_running_ones(anna: Client) -> None:
    later = timezone.now() + timedelta(hours=1)
    first, retrying = queued(run_after=later), queued(run_after=later, attempts=2)
    runs = running()
    before = row(runs).run_after
    asked = question(anna, "queuedjob", "run_now", runs, first)
    assert "1 is running already and is left alone." in asked
    told = act(anna, "queuedjob", "run_now", first, retrying, runs)
    assert told == "2 jobs are due now. 1 was skipped: it changed meanwhile."
    assert row(first).run_after <= timezone.now()
    assert row(retrying).run_after <= timezone.now()
    assert (row(retrying).attempts, row(runs).run_after) == (2, before)
    assert entries() == dict.fromkeys(map(str, (first, retrying)), "Made due now.")


def test_waiting_jobs_get_another_time_priority_and_queue(anna: Client) -> None:
    insert_all(Queue, [{"name": "mail"}])
    first, second, runs = queued(), queued(attempts=1), running()
    said = {"run_after": "2030-01-02T03:04", "priority": "-7", "queue": "mail"}
    asked = question(anna, "queuedjob", "reschedule", runs)
    assert "1 is running already and is left alone." in asked
    told = act(anna, "queuedjob", "reschedule", first, second, runs, **said)
    assert "2 jobs were rescheduled." in told
    moment = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    for id in (first, second):
        changed = row(id)
        values = (changed.run_after, changed.priority, changed.queue)
        assert values == (moment, -7, "mail")
    assert row(runs).priority == 0
    text = "Rescheduled: run after 2030-01-02 03:04:00+00:00, priority -7, queue mail."
    assert entries() == dict.fromkeys(map(str, (first, second)), text)
    # What is left empty stays as it is.
    said = {"run_after": "", "priority": "0", "queue": ""}
    act(anna, "queuedjob", "reschedule", first, **said)
    changed = row(first)
    assert (changed.run_after, changed.queue, changed.priority) == (moment, "mail", 0)
    assert entries()[str(first)] == "Rescheduled: priority 0."


def test_a_time_that_makes_no_sense_is_asked_again(anna: Client) -> None:
    id = queued(expires_at=datetime(2029, 1, 1, tzinfo=UTC))
    before = row(id)
    for said, text in (
        ({}, "Choose a time, a priority or a queue."),
        ({"priority": "101"}, "less than or equal to 100"),
        ({"queue": "nowhere"}, "not one of the available choices"),
        ({"run_after": "soon"}, "Enter a valid date/time."),
        ({"run_after": "2030-01-02T03:04"}, "1 job expires before that."),
    ):
        assert text in problems(anna, "queuedjob", "reschedule", id, **said)
    after = row(id)
    assert (after.run_after, after.priority) == (before.run_after, before.priority)
    assert entries() == {}


# Pauses.


def test_job_types_are_paused_with_a_reason_and_until_when_and_resumed(
    anna: Client,
) -> None:
    until = timezone.now().replace(microsecond=0, second=0) + timedelta(hours=3)
    said = {"reason": "carrier is down", "resume_at": f"{until:%Y-%m-%dT%H:%M}"}
    told = act(anna, "jobtype", "pause", ADD, FAIL, **said)
    assert told == f"Paused: {ADD}, {FAIL}."
    paused = JobType.objects.get(pk=FAIL)
    assert (paused.paused, paused.paused_by, paused.resume_at) == (True, "anna", until)
    assert paused.paused_reason == "carrier is down"
    assert entries() == dict.fromkeys([ADD, FAIL], "Paused: carrier is down")
    page = get(anna, page_of("jobtype", FAIL))
    assert f"paused until {until:%Y-%m-%d %H:%M}" in page.text
    assert "carrier is down" in page.text

    page = select(anna, "jobtype", "resume", FAIL)
    assert f"{FAIL} was paused by anna: carrier is down" in page.text
    assert act(anna, "jobtype", "resume", FAIL) == f"Resumed: {FAIL}."
    assert not JobType.objects.get(pk=FAIL).paused
    assert entries()[FAIL] == "Resumed."
    # A pause that ended by itself is none.
    past = timezone.now() - timedelta(minutes=1)
    JobType.objects.filter(pk=ADD).update(resume_at=past)
    page = get(anna, page_of("jobtype", ADD))
    assert "active" in page.text
    assert verb_of("jobtype", "pause") in page.html


def test_a_pause_that_is_not_clear_is_asked_again(anna: Client) -> None:
    for said, text in (
        ({"reason": ""}, "This field is required."),
        ({"resume_at": "2001-01-01T00:00"}, "This moment is in the past."),
        ({"resume_at": "soon"}, "Enter a valid date/time."),
        ({"reason": "x" * 501}, "at most 500 characters"),
    ):
        said = {"reason": "x", **said}
        assert text in problems(anna, "jobtype", "pause", FAIL, **said)
    assert not JobType.objects.get(pk=FAIL).paused
    assert entries() == {}


def test_the_end_of_a_pause_is_in_the_time_zone_that_the_page_names(
    anna: Client, settings: Any
) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    page = select(anna, "jobtype", "pause", FAIL)
    assert "Time zone: Asia/Tokyo." in page.text
    said = {"reason": "x", "resume_at": "2100-01-01T08:00"}
    act(anna, "jobtype", "pause", FAIL, **said)
    until = JobType.objects.get(pk=FAIL).resume_at
    assert until == datetime(2099, 12, 31, 23, tzinfo=UTC)
    page = get(anna, page_of("jobtype", FAIL))
    assert "paused until 2100-01-01 08:00:00 JST" in page.text


def test_queues_are_paused_and_resumed_with_and_without_a_row(anna: Client) -> None:
    insert_all(Queue, [{"name": "images"}, {"name": "mail", "paused": True}])
    act(anna, "queue", "pause", "images", reason="disk is full")
    assert Queue.objects.get(pk="images").paused_reason == "disk is full"
    act(anna, "queue", "resume", "images", "mail")
    assert not Queue.objects.filter(paused=True).exists()
    assert entries() == {"images": "Resumed.", "mail": "Resumed."}

    address = verb_of("queue", "pause-by-name")
    assert "Known queues: default, images, mail" in get(anna, address).text
    form = {"reason": "month's end", "confirmed": "1"}
    assert press(anna, address, name="reports", **form) == "Paused: reports."
    made = Queue.objects.get(pk="reports")
    assert (made.paused, made.paused_by) == (True, "anna")
    assert entries()["reports"] == "Paused: month's end"
    for name in ("", "a b", "a,b", "x" * 101, "a\x00b", "\x1b"):
        errors = errors_of(answer(anna, address, {"name": name, **form}))
        assert errors.startswith("name: "), name
    assert Queue.objects.count() == 3


# Workers.


@pytest.mark.usefixtures("requests_commit")
def test_workers_are_asked(anna: Client) -> None:
    dead = worker("web-1:4", state="stopped", stopped_at=timezone.now())
    for what in ("drain", "resume", "stop", "restart"):
        LogEntry.objects.all().delete()
        alive = worker(f"web-1:{what}", running=1)
        asked = question(anna, "worker", what, alive, dead)
        for text in (
            "2 workers?",
            "1 job runs there now.",
            "1 worker has already exited",
        ):
            assert text in asked, what
        told = act(anna, "worker", what, alive, dead)
        assert "1 worker was asked" in told
        assert "1 worker had ended already." in told
        assert Worker.objects.get(pk=alive).desired == what
        assert Worker.objects.get(pk=dead).desired == ""
        assert list(entries()) == [str(alive)]


def test_a_worker_shows_what_it_was_asked_for_until_it_is_so(anna: Client) -> None:
    asked, drains = (
        worker("web-1:1", desired="stop"),
        worker("web-1:2", desired="drain"),
    )
    Worker.objects.filter(pk=drains).update(state="draining")
    assert "running asked to stop" in get(anna, page_of("worker", asked)).text
    assert "asked to drain" not in str(context(anna, "worker", drains)["state"])
