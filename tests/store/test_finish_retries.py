"""Finish: what goes back to the queue, and what an operator cancelled meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.models import ArchivedJob, Failure, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel
from django_jobqueue.store.worker_rows import set_listening
from tests.store.meanwhile import Hearing
from tests.store.outcomes import (
    CANCELLED,
    RELEASED,
    came_to,
    failed,
    held_by,
    report,
    retried,
    snoozed,
    succeeded,
)
from tests.store.rows import ago, archived_job, claimed, make, queued_job


@pytest.mark.parametrize(
    ("outcome", "attempts"), [(retried(), 3), (snoozed(), 2), (RELEASED, 2)]
)
def test_a_retry_spends_its_attempt_and_a_snooze_or_release_does_not(
    own: OwnConnection, holder: int, outcome: Outcome, attempts: int
) -> None:
    id = make(attempts=2)
    (job,) = claimed(own, holder)
    assert job.attempts == 3

    report(own, held_by(holder), came_to(job, outcome))

    held = queued_job(id)
    assert held is not None
    assert (held.status, held.attempts, held.worker_id, held.started_at) == (
        "queued",
        attempts,
        None,
        None,
    )
    assert held.fence == job.fence


@pytest.mark.parametrize("outcome", [retried(90), snoozed(90)])
def test_a_wait_counts_from_the_report_by_the_databases_clock(
    own: OwnConnection, holder: int, outcome: Outcome
) -> None:
    id = make(run_after=ago(1_000))
    (job,) = claimed(own, holder)
    before = timezone.now()

    report(own, held_by(holder), came_to(job, outcome))

    held = queued_job(id)
    assert held is not None
    wait = timedelta(seconds=90)
    assert before + wait <= held.run_after <= timezone.now() + wait


def test_a_released_job_keeps_its_place_in_the_lane(
    own: OwnConnection, holder: int
) -> None:
    due = ago(1_000)
    id = make(run_after=due)
    (job,) = claimed(own, holder)

    report(own, held_by(holder), came_to(job, RELEASED))

    held = queued_job(id)
    assert held is not None
    assert held.run_after == due
    assert [again.id for again in claimed(own, holder)] == [id]


@pytest.mark.parametrize(
    ("outcome", "heard"),
    [
        (retried(90), ["q:default"]),
        (snoozed(90), ["q:default"]),
        (RELEASED, ["b:default"]),
    ],
)
def test_idle_workers_are_told_of_what_goes_back(
    own: OwnConnection,
    holder: int,
    ear: Hearing,
    outcome: Outcome,
    heard: list[str],
) -> None:
    make()
    make()
    for is_idle in (False, True):
        set_listening(own, holder, is_idle)
        (job,) = claimed(own, holder)
        assert ear.heard() == []
        report(own, held_by(holder), came_to(job, outcome))
        assert ear.heard() == heard * is_idle


def test_nobody_is_told_of_what_does_not_go_back(
    own: OwnConnection, holder: int, ear: Hearing
) -> None:
    make()
    make()
    set_listening(own, holder, True)
    for job, outcome in zip(
        claimed(own, holder, 2), (succeeded(), failed()), strict=True
    ):
        report(own, held_by(holder), came_to(job, outcome))
    assert ear.heard() == []


def test_a_job_that_came_back_has_a_new_fence_at_its_next_claim(
    own: OwnConnection, holder: int
) -> None:
    make()
    (first,) = claimed(own, holder)
    report(own, held_by(holder), came_to(first, retried(0)))
    (second,) = claimed(own, holder)

    assert (first.fence, second.fence) == (1, 2)
    assert report(own, held_by(holder), came_to(first, succeeded())) == {first.id}
    assert report(own, held_by(holder), came_to(second, succeeded())) == set()


@pytest.mark.parametrize("outcome", [retried(), snoozed(), RELEASED])
def test_a_job_that_was_cancelled_while_it_ran_does_not_come_back(
    own: OwnConnection, holder: int, outcome: Outcome
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    cancel.cancel(own, [id], reason="not wanted")

    assert report(own, held_by(holder), came_to(job, outcome)) == set()

    held = archived_job(id)
    assert queued_job(id) is None
    assert held is not None
    assert held.status == "cancelled"
    assert held.started_at is not None


@pytest.mark.parametrize(
    ("outcome", "status"), [(succeeded(), "succeeded"), (failed(), "failed")]
)
def test_a_job_that_ended_before_it_heard_of_its_cancelling_keeps_its_outcome(
    own: OwnConnection, holder: int, outcome: Outcome, status: str
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    cancel.cancel(own, [id], reason="not wanted")

    report(own, held_by(holder), came_to(job, outcome))

    assert ArchivedJob.objects.get().status == status


def test_a_cancelled_job_says_why(own: OwnConnection, holder: int) -> None:
    make()
    (job,) = claimed(own, holder)

    report(own, held_by(holder), came_to(job, CANCELLED))

    held = ArchivedJob.objects.get()
    assert (held.error_message, held.error_class) == ("not wanted", "")
    assert [(f.end, f.reason, f.number) for f in Failure.objects.all()] == [
        ("cancelled", "not wanted", 1)
    ]


@pytest.mark.parametrize("outcome", [snoozed(), RELEASED])
def test_the_failure_of_a_cancelled_job_has_the_number_of_its_attempt(
    own: OwnConnection, holder: int, outcome: Outcome
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    cancel.cancel(own, [id], reason="not wanted")

    report(own, held_by(holder), came_to(job, outcome))

    assert [failure.number for failure in Failure.objects.all()] == [1]


def test_a_job_that_goes_back_is_not_archived(own: OwnConnection, holder: int) -> None:
    make()
    (job,) = claimed(own, holder)

    report(own, held_by(holder), came_to(job, retried()))

    assert not ArchivedJob.objects.exists()
    assert QueuedJob.objects.count() == 1
