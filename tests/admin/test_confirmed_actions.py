"""Actions that ask first: on waiting and running jobs, job types, queues, workers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    JobType,
    Queue,
    QueuedJob,
    UniqueWindow,
    Worker,
)
from django_jobqueue.stats.why_not_running import why_not_one
from tests.admin.pages import get, list_of, page_of, post, select, verb_of
from tests.admin.scene import (
    ADD,
    FAIL,
    ONCE,
    Scene,
    archived,
    insert_all,
    queued,
    worker,
)
from tests.admin.units import (
    act,
    answer,
    buttons,
    context,
    errors_of,
    press,
    problems,
    question,
    shown,
)
from tests.commands.conftest import jobqueue
from tests.sample import jobs
from tests.store.rows import ago, make

pytestmark = pytest.mark.django_db

ATTEMPTS: dict[str, Any] = {"max_attempts": 9}
REASON: dict[str, Any] = {"reason": "x"}


def entries() -> dict[str, str]:
    found = LogEntry.objects.order_by("pk")
    return {str(entry.object_id): entry.get_change_message() for entry in found}


def running(**columns: Any) -> Any:
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
        "1 runs: its handler is asked to stop; its effects stay.",
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
    gone = "The selected rows no longer exist."
    assert act(anna, "queuedjob", "cancel", later) == gone


def test_cancelling_from_a_job_s_page_leads_to_where_it_is_now(anna: Client) -> None:
    id = queued()
    there = page_of("queuedjob", id)
    sent = {"keys": str(id), "confirmed": "1", "reason": "", "next": there}
    text = post(anna, verb_of("queuedjob", "cancel"), sent).text
    assert "1 job was cancelled." in text
    assert "This job has finished; it is in the archive." in text
    assert "cancelled by anna" in text


def test_run_now_makes_waiting_jobs_due_and_leaves_running_ones(anna: Client) -> None:
    later = timezone.now() + timedelta(hours=1)
    first, retrying = queued(run_after=later), queued(run_after=later, attempts=2)
    runs = running()
    before = row(runs).run_after
    asked = question(anna, "queuedjob", "run_now", runs, first)
    assert "1 is already running and is left alone." in asked
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
    assert "1 is already running and is left alone." in asked
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


def test_a_moment_or_a_reason_that_makes_no_sense_is_asked_again(anna: Client) -> None:
    id = queued(expires_at=datetime(2029, 1, 1, tzinfo=UTC))
    before = QueuedJob.objects.values().get()
    for said, text in (
        ({}, "Choose a time, a priority or a queue."),
        ({"priority": "101"}, "less than or equal to 100"),
        ({"queue": "nowhere"}, "not one of the available choices"),
        ({"run_after": "soon"}, "Enter a valid date/time."),
        ({"run_after": "2030-01-02T03:04"}, "1 job expires before that."),
    ):
        assert text in problems(anna, "queuedjob", "reschedule", id, **said)
    assert QueuedJob.objects.values().get() == before
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
            "1 job is running there.",
            "1 worker has already exited",
        ):
            assert text in asked, what
        told = act(anna, "worker", what, alive, dead)
        assert "Request sent to 1 worker" in told
        assert "1 worker had already ended." in told
        assert Worker.objects.get(pk=alive).desired == what
        assert Worker.objects.get(pk=dead).desired == ""
        assert list(entries()) == [str(alive)]
    # It shows what it was asked for until it is so.
    assert "running asked to restart" in get(anna, page_of("worker", alive)).text
    drains = worker("web-1:2", desired="drain", state="draining")
    assert "asked to drain" not in str(context(anna, "worker", drains)["state"])


# How waiting jobs may end.


def test_a_waiting_job_is_archived_as_failed_with_the_reason(
    anna: Client, db: None, operated: list[dict[str, Any]]
) -> None:
    id = queued(FAIL, attempts=2)
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
    id = queued(FAIL, attempts=3)
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
    asked = question(anna, "queuedjob", "allow_attempts", queued(ONCE))
    assert "has one attempt whatever you enter here" in asked


def test_a_running_job_is_left_alone(anna: Client, scene: Scene) -> None:
    id = scene.queued["running"]
    before = QueuedJob.objects.filter(pk=id).values().get()
    for verb, said in (("fail", REASON), ("allow_attempts", ATTEMPTS)):
        assert verb not in buttons(anna, "queuedjob", id)
        assert "1 was skipped" in act(anna, "queuedjob", verb, id, **said)
    assert QueuedJob.objects.filter(pk=id).values().get() == before


# Releasing running jobs: only from workers that are gone.


def release(client: Client, *ids: object) -> str:
    return act(client, "queuedjob", "release", *ids)


def test_a_job_of_a_lost_worker_waits_again(
    anna: Client, scene: Scene, operated: list[dict[str, Any]]
) -> None:
    for which in ("lapsed", "unclaimed"):
        id = scene.queued[which]
        assert "release" in buttons(anna, "queuedjob", id)
        said = question(anna, "queuedjob", "release", id)
        assert "Its worker is presumed dead." in said
        assert release(anna, id) == "1 job waits again."
        job = QueuedJob.objects.get(pk=id)
        found = (job.status, job.worker_id, job.attempts, job.crashes)
        assert found == ("queued", None, 0, 1)
        failure = Failure.objects.get(job_id=id)
        assert failure.reason == "its worker is gone; released by anna"
        assert LogEntry.objects.latest("pk").object_id == str(id)
    assert [(one["verb"], one["count"]) for one in operated] == [("release", 1)] * 2


def test_a_job_of_a_living_worker_and_one_that_waits_are_left_alone(
    anna: Client, scene: Scene
) -> None:
    id = scene.queued["running"]
    said = question(anna, "queuedjob", "release", id)
    assert "its worker is alive" in said
    assert "Cancel it instead" in said
    told = release(anna, id)
    assert "1 is left alone: it does not run, or its worker is alive" in told
    assert "changed meanwhile" not in told
    assert QueuedJob.objects.get(pk=id).status == "running"
    waits = scene.queued["ready"]
    assert "release" not in buttons(anna, "queuedjob", waits)
    release(anna, waits)
    assert QueuedJob.objects.get(pk=waits).crashes == 0
    assert not LogEntry.objects.exists()
    # Of many, only the lost ones are taken.
    told = release(anna, *scene.queued.values())
    assert "2 jobs wait again." in told
    assert "7 are left alone: they do not run, or their workers" in told


def test_a_job_of_an_endpoint_or_a_move_is_not_lost_though_it_renews_no_lease(
    anna: Client, scene: Scene
) -> None:
    for state in ("endpoint", "moving"):
        holder = worker(f"shop-{state}", state=state, lease_until=ago(60))
        id = make(ADD, status="running", worker_id=holder, started_at=ago(60))
        listed = get(anna, list_of("queuedjob"), q=str(id)).text
        assert f"running on shop-{state}" in listed
        assert str(id) not in shown(anna, "queuedjob", q="state:lapsed")
        reasons = why_not_one(QueuedJob.objects.get(pk=id))
        assert [one.remedy for one in reasons] == (
            [f"jobqueue release {id}"] if state == "moving" else []
        )
        # Whoever names it may take it back: the endpoint may never call back, and the
        # other database may be lost.
        said = question(anna, "queuedjob", "release", id)
        assert "Its worker is presumed dead." in said
        jobqueue("release", str(id))
        assert QueuedJob.objects.get(pk=id).status == "queued"


def test_a_job_of_a_move_that_goes_on_is_not_released(
    anna: Client, scene: Scene
) -> None:
    holder = worker("shop-moving", state="moving", lease_until=ago(-60))
    id = make(ADD, status="running", worker_id=holder, started_at=ago(60))
    assert why_not_one(QueuedJob.objects.get(pk=id)) == []
    assert "its worker is alive" in question(anna, "queuedjob", "release", id)
    assert operations.release([id]) == []
    with pytest.raises(CommandError, match="only a job whose worker is dead"):
        jobqueue("release", str(id))
    assert QueuedJob.objects.get(pk=id).status == "running"


def test_a_job_that_may_run_once_only_is_archived_and_that_is_said_before(
    anna: Client, scene: Scene
) -> None:
    runs = {"status": "running", "attempts": 1, "started_at": timezone.now()}
    id = queued(ONCE, worker_id=scene.workers["lost"], **runs)
    said = question(anna, "queuedjob", "release", id)
    assert "it is archived as failed, because its progress is unknown" in said
    assert release(anna, id) == "1 job was archived."
    job = ArchivedJob.objects.get(pk=id)
    assert job.status == "failed"
    assert job.error_message.startswith("outcome unknown: its worker is gone")
    assert "Released from a lost worker." in get(anna, page_of("archivedjob", id)).text


# Unique keys: until when they are held, and freeing them.


def window(job_id: Any, seconds: float | None) -> UniqueWindow:
    """A window of this job, open for so many seconds; None is forever."""
    until = None if seconds is None else timezone.now() + timedelta(seconds=seconds)
    return UniqueWindow.objects.create(key=new_id(), job_id=job_id, held_until=until)


def test_the_page_of_a_job_says_until_when_it_holds_its_key(
    anna: Client, db: None
) -> None:
    for seconds in (3_600, None):
        for model, id in (("queuedjob", queued()), ("archivedjob", archived())):
            held = window(id, seconds)
            text = str(context(anna, model, id)["page"].summary)
            assert str(held.key) in text
            assert ("forever" in text) is (seconds is None)
            assert ("(in 59 m" in text or "(in 1 h" in text) is (seconds == 3_600)
            assert "free_key" in buttons(anna, model, id)
    page = get(anna, page_of(model, id))
    assert "Key held until forever" in page.text
    key = new_id()
    until_it_starts = {"unique_key": new_id(), "unique_until_started": True}
    for columns, expected in (
        ({"unique_key": key}, f"Unique key {key} Copy until it finishes"),
        (until_it_starts, "until it starts"),
    ):
        page = get(anna, page_of("queuedjob", queued(**columns)))
        assert expected in page.text
    # A job without a key does not mention it.
    id = archived()
    window(id, -1)
    page = get(anna, page_of("archivedjob", id))
    assert "Unique key" not in page.text
    assert verb_of("archivedjob", "free_key") not in page.html


def test_a_freed_key_lets_a_duplicate_through(
    anna: Client, db: None, operated: list[dict[str, Any]]
) -> None:
    for handler in (jobs.remind, jobs.index):  # held by a window, and by the queue
        first = handler.enqueue(1)
        asked = question(anna, "queuedjob", "free_key", first.id)
        assert "Free the unique key of 1 job?" in asked
        assert "makes another job, which may run at the same time." in asked
        assert not handler.enqueue(1).is_new
        told = act(anna, "queuedjob", "free_key", first.id)
        assert told == "1 unique key was freed."
        assert handler.enqueue(1).is_new
        assert "Unique key freed." in get(anna, page_of("queuedjob", first.id)).text
        assert LogEntry.objects.latest("pk").object_id == str(first.id)
    assert [(one["verb"], one["count"]) for one in operated] == [("free key", 1)] * 2
    # One that was freed meanwhile is no error.
    told = act(anna, "queuedjob", "free_key", queued())
    assert told == "1 was skipped: it changed meanwhile."
