"""How schedules stand, and which of them need attention."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone, translation

from django_jobqueue.contrib.schedules import schedule_states as schedules
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.contrib.schedules.schedule_states import (
    ScheduleNow,
    ScheduleState,
    typed_text,
)
from django_jobqueue.domain.schedule_rules import cron, every, parse
from django_jobqueue.models import JobType, QueuedJob, Worker
from django_jobqueue.stats.attention import Concern
from tests.stats.rows import ADD, ago, concerns, fired, schedule, worker

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_schedules")]
MINUTE = timedelta(minutes=1)


def stands() -> ScheduleNow:
    """How the only schedule stands, if nobody claims."""
    (found,) = schedules.read([], timezone.now())
    return found


def told() -> list[Concern]:
    return [one for one in concerns() if one.code.startswith("schedule")]


def test_a_schedule_has_one_state() -> None:
    gone = {"origin": "code", "gone_at": timezone.now()}
    states: dict[str, tuple[dict[str, Any], timedelta | None, ScheduleState]] = {
        "soon": ({}, MINUTE, ScheduleState.ACTIVE),
        "just due": ({}, -MINUTE / 2, ScheduleState.ACTIVE),
        "due": ({}, -2 * MINUTE, ScheduleState.OVERDUE),
        "paused": ({"paused": True}, -2 * MINUTE, ScheduleState.PAUSED),
        "gone": (gone, -MINUTE, ScheduleState.GONE),
        "a rule": ({"rule": "cron of my own"}, -2 * MINUTE, ScheduleState.BROKEN),
        "a zone": ({"time_zone": "Europe/Berlim"}, -2 * MINUTE, ScheduleState.BROKEN),
        "over": ({"ends_at": timezone.now() - MINUTE}, None, ScheduleState.ENDED),
    }
    for name, (columns, due, _) in states.items():
        schedule(name, due=due, **columns)
    all_now = schedules.read([], timezone.now())
    assert all((one.next_at is not None) == one.fires for one in all_now)
    expected = {name: state for name, (*_, state) in states.items()}
    assert {one.row.name: one.state for one in all_now} == expected
    Schedule.objects.all().delete()
    row = schedule(due=-5 * MINUTE)
    row.rule_override = "cron 0 0 1 1 *"
    row.save()
    found = stands()  # not planned yet: its next moment is that of its rule
    assert found.state == ScheduleState.ACTIVE
    assert found.next_at is not None
    assert (found.next_at.month, found.next_at.day) == (1, 1)


def test_its_newest_firing_and_its_last_finished_job_are_known() -> None:
    schedule()
    fired(4 * MINUTE)  # whose job was pruned
    status = stands().status
    assert status.newest is not None
    assert (status.newest.status, status.finished) == (None, None)
    fired(3 * MINUTE, "succeeded")
    failed = fired(2 * MINUTE, "failed")
    job = fired(MINUTE, "running")
    Firing.objects.create(
        schedule="nightly", fires_at=ago(hours=3), outcome="missed", number=7
    )
    found = stands()
    newest, finished = found.status.newest, found.status.finished
    assert newest is not None
    assert (newest.job_id, newest.status, newest.outcome) == (job, "running", "fired")
    assert finished is not None
    assert (finished.id, found.bad_end) == (failed, "failed")
    QueuedJob.objects.create(job_type_id=ADD, replay_of=failed)
    assert stands().bad_end == ""


# What needs attention.


def test_schedules_that_are_well_are_not_told() -> None:
    schedule(due=-5 * MINUTE)
    assert [one.code for one in concerns()] == ["no_worker"]  # that alone is told
    worker()
    Schedule.objects.all().delete()
    schedule(due=MINUTE)
    fired(MINUTE, "succeeded")
    schedule("off", due=-5 * MINUTE, paused=True)
    fired(MINUTE, "failed", name="off")
    schedule("over", ends_at=ago(hours=1))
    assert told() == []


def test_one_that_did_not_fire_is_told_with_a_link_the_latest_last() -> None:
    worker()
    schedule(due=-5 * MINUTE)
    schedule("hourly", due=-125 * MINUTE)
    assert [(one.code, one.model, one.key, one.message) for one in told()] == [
        (
            "schedule_not_fired",
            "jobqueue_schedules.schedule",
            name,
            f"Schedule {name} has not fired; {was}",
        )
        for name, was in (
            ("hourly", "it was due 2 h 05 m ago."),
            ("nightly", "it was due 5 m ago."),
        )
    ]


def test_one_that_cannot_fire_or_whose_last_job_failed_is_told() -> None:
    worker()
    schedule(rule="cron 61 * * * *")
    schedule("daily", due=MINUTE)
    fired(MINUTE, "failed", name="daily")
    schedule("hourly", due=MINUTE)
    fired(MINUTE, "expired", name="hourly")
    reason = (
        "cron('61 * * * *'): cannot read the minute; it takes a number from 0 to 59."
    )
    assert [(one.code, one.message) for one in told()] == [
        ("schedule_not_fired", f"Schedule nightly cannot fire: {reason}"),
        ("schedule_failed", "The last job of schedule daily failed."),
        ("schedule_failed", "The last job of schedule hourly expired."),
    ]


def test_one_whose_jobs_nobody_claims_is_told() -> None:
    schedule(due=MINUTE)
    scenes: list[list[dict[str, Any]]] = [
        [{"job_types": []}],
        [{"queues": ["mail"]}],
        [{"state": "draining"}, {"name": "web-1:2", "job_types": []}],
    ]
    for workers in scenes:
        Worker.objects.all().delete()
        for columns in workers:
            worker(**columns)
        said = f"Schedule nightly enqueues jobs of type {ADD}, which no living worker "
        assert [(one.code, one.message) for one in told()] == [
            ("schedule_not_served", f"{said}claims.")
        ]


def test_the_queue_of_its_own_counts() -> None:
    worker(queues=["night"])
    schedule(due=MINUTE, options={"queue": "night"})
    assert told() == []
    JobType.objects.filter(name=ADD).update(queue="night")
    Schedule.objects.update(options={"queue": "mail"})
    assert [one.code for one in told()] == ["schedule_not_served"]


def test_one_that_no_code_declares_any_more_is_told_until_it_is_deleted() -> None:
    worker(job_types=[])
    row = schedule(origin="code", gone_at=ago(days=3), due=-5 * MINUTE)
    (one,) = told()
    assert (one.code, one.is_bad) == ("schedule_gone", False)
    assert one.message == "Schedule nightly is no longer declared by any code."
    row.delete()
    assert told() == []


# A rule in words.


WORDS = [
    *(
        ("1", "every second", "every 1 second"),
        ("60", "every minute", "every 1 minute"),
    ),
    *(("45", "every 45 seconds", ""), ("300", "every 5 minutes", "")),
    *(("5400", "every 90 minutes", ""), ("172800", "every 2 days", "")),
    *(("3600", "every hour", "every 1 hour"), ("86400", "every day", "every 1 day")),
    (
        "3601 since 1760000000",
        "every 3,601 seconds since 2025-10-09 08:53:20 UTC",
        "every 3601 seconds since 1760000000",
    ),
]


def test_a_rule_in_words_can_be_typed_again_in_any_language() -> None:
    rows = [(f"every {text}", words, typed or words) for text, words, typed in WORDS]
    for text, words, typed in (*rows, ("cron 30 2 * * MON", *["30 2 * * MON"] * 2)):
        rule = parse(text, "UTC")
        assert (schedules.rule_text(rule), typed_text(rule)) == (words, typed)
        assert parse(typed, "UTC") == rule
    since = datetime(2026, 1, 1, tzinfo=UTC)
    with translation.override("de"):
        assert typed_text(every(days=2, since=since)).startswith("every 2 days since")
        assert typed_text(cron("@daily")) == "0 0 * * *"
