"""What needs attention, rule by rule."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import override_settings

from django_jobqueue import operations
from django_jobqueue.models import BulkOperation, FailureGroup, JobType, QueuedJob
from django_jobqueue.stats.attention import CODES, MOST
from tests.stats.rows import (
    ADD,
    SAY,
    ago,
    concerns,
    crashed,
    fired,
    queued,
    rollup,
    schedule,
    worker,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_schedules")]


def told(code: str) -> list[str]:
    return [concern.message for concern in concerns() if concern.code == code]


def group(**columns: object) -> FailureGroup:
    """Insert a failure group, first seen long ago."""
    values = {"first_seen": ago(days=9), "last_seen": ago(minutes=3), **columns}
    return FailureGroup.objects.create(
        fingerprint=uuid4(),
        coarse=uuid4(),
        error_class="builtins.KeyError",
        frame="shop.gateway:charge",
        **values,
    )


def operation(**columns: object) -> BulkOperation:
    return BulkOperation.objects.create(
        kind="replay", selection={}, created_by="anna", **columns
    )


def test_where_all_is_well_nothing_is_told_and_without_a_worker_that_first() -> None:
    queued(2, run_after=ago(hours=3))
    first = concerns()[0]
    assert (first.code, first.model, first.key) == ("no_worker", "worker", None)
    assert told("slow") == []
    QueuedJob.objects.all().delete()
    worker()
    queued(5)
    rollup(ago(minutes=5), succeeded=1_000, failed=1)
    assert concerns() == []


def test_a_queue_that_nobody_serves_leads_to_its_jobs() -> None:
    worker(queues=["mail"])
    queued(queue="night")
    (concern,) = concerns()
    assert (concern.model, concern.query) == ("queuedjob", {"queue": "night"})
    assert concern.is_bad


def test_jobs_that_have_been_ready_for_long_are_told_oldest_first() -> None:
    worker()
    queued(2, run_after=ago(minutes=10))
    queued(1, job_type_id=SAY, run_after=ago(hours=2))
    queued(1, queue="mail", run_after=ago(minutes=4))
    assert told("slow") == [
        f"1 job of type {SAY} is ready in queue default; the oldest has waited for "
        "2 h 00 m.",
        f"2 jobs of type {ADD} are ready in queue default; the oldest has waited for "
        "10 m.",
    ]
    with override_settings(JOBQUEUE={"ALERT_WAIT": 3_600}):
        assert len(told("slow")) == 1


def test_what_is_paused_is_not_slow_but_paused() -> None:
    worker()
    queued(3, run_after=ago(hours=1))
    queued(1, queue="mail", run_after=ago(hours=1))
    operations.pause([ADD], by="anna")
    operations.pause(["mail", "empty"], queues=True, by="anna")
    assert told("slow") == []
    assert told("job_type_paused") == [f"Job type {ADD} is paused; 4 ready jobs wait."]
    assert told("queue_paused") == ["Queue mail is paused; 1 ready job waits."]


def test_a_share_of_failures_above_the_limit_is_told() -> None:
    worker()
    rollup(ago(minutes=5), succeeded=10, failed=2)
    rollup(ago(minutes=6), succeeded=6, failed=2)
    rollup(ago(minutes=5), SAY, succeeded=9, failed=10)  # too few to tell
    rollup(ago(hours=2), failed=100)
    assert told("failing") == [
        f"20.0 % of the 20 jobs of type {ADD} that finished in the last hour failed."
    ]
    with override_settings(JOBQUEUE={"ALERT_FAILED": 20}):
        assert told("failing") == []


def test_new_and_regressed_failures_are_told_once() -> None:
    worker()
    group()
    group(state="ignored", first_seen=ago(hours=1))
    new = group(first_seen=ago(hours=1))
    back = group(regressed_at=ago(minutes=12))
    found = {concern.code: concern for concern in concerns()}
    assert set(found) == {"regressed", "new_failure"}
    assert (found["regressed"].key, found["new_failure"].key) == (back.pk, new.pk)
    assert found["regressed"].is_bad
    assert found["new_failure"].message == (
        "A new failure: builtins.KeyError in shop.gateway:charge, first seen 1 h 00 m "
        "ago, last 3 m ago."
    )


def test_a_worker_that_does_not_renew_its_lease_or_was_lost_is_told() -> None:
    worker("web-2:1")
    found = worker(lease_until=ago(minutes=-1), running=3)
    assert concerns() == []
    found.lease_until = ago(minutes=1)
    found.save()
    assert told("worker_lapsed") == [
        "Worker web-1:1 has not renewed its lease for 1 m; 3 jobs that it ran "
        "will be taken over."
    ]
    found.state, found.end, found.stopped_at = "lost", "killed", ago(minutes=2)
    found.save()
    said = "Worker web-1:1 was lost in the last ten minutes: killed"
    assert told("worker_lost") == [said]
    found.stopped_at = ago(minutes=11)
    found.save()
    assert concerns() == []


def test_bulk_operations_that_failed_or_wait_for_somebody_are_told() -> None:
    worker()
    operation(state="failed", finished_at=ago(days=2))
    for state in ("running", "draft"):
        operation(state=state)
    operation(state="done", finished_at=ago(hours=1))
    failed = operation(state="failed", finished_at=ago(hours=1))
    paused = operation(state="paused")
    assert [(concern.code, concern.key) for concern in concerns()] == [
        ("bulk_failed", failed.pk),
        ("bulk_paused", paused.pk),
    ]
    rollup(ago(hours=5).replace(minute=30), succeeded=1)
    assert told("rollups_lag") == []
    rollup(ago(hours=5).replace(minute=31), succeeded=1)  # that nobody folds
    assert len(told("rollups_lag")) == 1


def everything_at_once() -> None:
    """Of every kind some, the worse one later in the alphabet."""
    now = ago(hours=0)
    worker("web-1:1", queues=["default", "a", "b"], job_types=[ADD])
    worker("web-2:1", queues=["night"], job_types=[SAY])
    for name, jobs in (("a", 1), ("b", 4)):
        lapsed = {"lease_until": ago(minutes=1), "running": jobs}
        worker(f"lapsed-{name}:1", **lapsed)
        worker(f"lost-{name}:1", state="lost", stopped_at=now, end="gone")
        queued(jobs, queue=f"nobody-{name}")
        queued(jobs, queue=name, run_after=ago(hours=jobs))
        queued(jobs, queue=name, job_type_id=SAY)  # no worker both serves and knows
        for kind in (f"shop.{name}", f"unknown.{name}"):
            JobType.objects.create(name=kind)
        queued(jobs, job_type_id=f"unknown.{name}")
        rollup(ago(minutes=5), f"shop.{name}", succeeded=20, failed=5 * jobs)
        crashed(5 * jobs, f"shop.{name}", minutes=1)
        group(first_seen=ago(hours=1), last_seen=ago(minutes=9 - jobs))
        group(regressed_at=ago(minutes=12), last_seen=ago(minutes=9 - jobs))
        operation(state="failed")
        operation(state="paused")
        queued(jobs, queue=f"paused-{name}")
        operations.pause([f"paused-{name}"], queues=True, by="anna")
        operations.pause([f"unknown.{name}"], by="anna")
        schedule(f"late-{name}", due=timedelta(hours=-jobs))
        fired(timedelta(minutes=2), "failed", f"late-{name}")
        schedule(f"unserved-{name}", job_type_id=f"unknown.{name}")
        schedule(f"gone-{name}", origin="code", gone_at=now)
    rollup(ago(hours=5).replace(minute=7))


EQUALS = (
    *("worker_lost", "bulk_failed", "bulk_paused", "rollups_lag"),
    *("schedule_not_served", "schedule_failed", "schedule_gone"),
)


def test_the_most_urgent_comes_first() -> None:
    """Whatever there is: no note before what is urgent, and of each kind the worst
    first."""
    everything_at_once()
    found = concerns()
    others = {"no_worker", "all_draining", "old_transaction"}
    ours = {"schedule_not_fired", "schedule_not_served", "schedule_failed"}
    ours.add("schedule_gone")
    assert {concern.code for concern in found} == {*CODES, *ours} - others
    assert found == sorted(found, key=lambda concern: concern.rank)
    assert [c.is_bad for c in found] == sorted((c.is_bad for c in found), reverse=True)
    for code in (*CODES, *ours):
        weights = [concern.weight for concern in found if concern.code == code]
        assert weights == sorted(weights, reverse=True)
        assert code in EQUALS or not weights or len(set(weights)) > 1


def test_of_too_many_of_a_kind_the_worst_are_told() -> None:
    worker(queues=["default"])
    for number in range(1, MOST + 4):
        queued(number, queue=f"queue-{number:02}")
    found = [c for c in concerns() if c.code == "queue_not_served"]
    assert [c.weight for c in found] == [8, 7, 6, 5, 4]
    assert [c.others for c in found] == [0, 0, 0, 0, 3]
