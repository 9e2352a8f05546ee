"""Finish: what is recorded of attempts that did not succeed, and how it is grouped."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.models import ArchivedJob, Failure, FailureGroup, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.finish import GROUPS_PER_PLACE, MOST_FAILURES
from tests.store.outcomes import (
    CANCELLED,
    RAN,
    RELEASED,
    SINCE,
    came_to,
    failed,
    failure,
    held_by,
    report,
    retried,
    snoozed,
    succeeded,
)
from tests.store.rows import ADD, ago, claimed, make, make_many


def attempt(own: OwnConnection, holder: int, outcome: Outcome) -> None:
    """Claim the one job and finish it."""
    QueuedJob.objects.update(run_after=ago(1))
    (job,) = claimed(own, holder)
    assert report(own, held_by(holder), came_to(job, outcome)) == set()


def test_a_success_records_no_failure(own: OwnConnection, holder: int) -> None:
    make()
    attempt(own, holder, succeeded())

    assert not Failure.objects.exists()
    assert not FailureGroup.objects.exists()


def test_a_failure_is_recorded_with_the_attempt_that_it_ended(
    own: OwnConnection, holder: int
) -> None:
    id = make()
    what = failure("no such order 7")
    before = timezone.now()
    attempt(own, holder, failed(what, reason="no attempt is left"))

    (held,) = Failure.objects.all()
    assert (held.job_id, held.job_type, held.number) == (id, ADD, 1)
    assert (held.end, held.reason) == ("failed", "no attempt is left")
    assert (held.worker, held.release) == ("host:1", "r1")
    assert (held.error_class, held.error_message) == ("ValueError", "no such order 7")
    assert (held.traceback, held.frames) == (what.traceback, what.frames)
    assert held.fingerprint == what.fingerprint.value
    since, ran = timedelta(seconds=SINCE), timedelta(seconds=RAN)
    assert before - since <= held.finished_at <= timezone.now() - since
    assert held.started_at == held.finished_at - ran


def test_an_archived_failure_says_what_the_last_attempt_died_of(
    own: OwnConnection, holder: int
) -> None:
    make()
    attempt(own, holder, retried(what=failure("first")))
    attempt(own, holder, failed(failure("x" * 3_000, error_class="KeyError")))

    job = ArchivedJob.objects.get()
    assert (job.error_class, job.error_message) == ("KeyError", "x" * 500)
    last = Failure.objects.get(number=2)
    assert job.fingerprint == last.fingerprint
    assert last.error_message == "x" * 3_000


@pytest.mark.parametrize(
    ("outcome", "end", "reason"),
    [
        (snoozed(), "snoozed", "later"),
        (RELEASED, "released", "stopped"),
        (CANCELLED, "cancelled", "not wanted"),
    ],
)
def test_what_was_put_off_is_recorded_without_an_exception(
    own: OwnConnection, holder: int, outcome: Outcome, end: str, reason: str
) -> None:
    make(attempts=2)
    attempt(own, holder, outcome)

    (held,) = Failure.objects.all()
    assert (held.end, held.reason, held.number) == (end, reason, 3)
    assert (held.error_class, held.traceback, held.frames) == ("", "", [])
    assert held.fingerprint is None
    assert not FailureGroup.objects.exists()


def test_the_first_failure_of_a_place_makes_a_group(
    own: OwnConnection, holder: int
) -> None:
    what = failure("order 7 is gone", template="order <n> is gone")
    make()
    attempt(own, holder, retried(what=what))
    (group,) = FailureGroup.objects.all()
    first_seen = group.first_seen
    attempt(own, holder, retried(what=what))

    (group,) = FailureGroup.objects.all()
    mark = what.fingerprint
    assert (group.fingerprint, group.coarse) == (mark.value, mark.coarse)
    assert (group.error_class, group.frame) == ("ValueError", "shop.jobs:send")
    assert (group.template, group.state) == ("order <n> is gone", "open")
    assert group.first_seen == first_seen


def test_a_batch_of_one_failure_makes_one_group(
    own: OwnConnection, holder: int
) -> None:
    make_many(50)
    jobs = claimed(own, holder, 50)
    done = [
        came_to(j, failed(failure(f"{n}", template="<n>"))) for n, j in enumerate(jobs)
    ]

    report(own, held_by(holder), *done)

    assert FailureGroup.objects.count() == 1
    assert Failure.objects.count() == 50


def test_a_failure_that_was_resolved_and_comes_again_has_regressed(
    own: OwnConnection, holder: int
) -> None:
    make()
    attempt(own, holder, retried())
    FailureGroup.objects.update(state="resolved", resolved_at=ago(60))
    attempt(own, holder, retried())

    group = FailureGroup.objects.get()
    assert group.state == "open"
    assert group.regressed_at is not None


@pytest.mark.parametrize("state", ["open", "ignored"])
def test_a_failure_that_was_not_resolved_does_not_regress(
    own: OwnConnection, holder: int, state: str
) -> None:
    make()
    attempt(own, holder, retried())
    FailureGroup.objects.update(state=state)
    attempt(own, holder, retried())

    group = FailureGroup.objects.get()
    assert (group.state, group.regressed_at) == (state, None)


def test_a_place_with_many_messages_collapses_into_one_group(
    own: OwnConnection, holder: int
) -> None:
    make()
    for number in range(GROUPS_PER_PLACE):
        attempt(own, holder, retried(what=failure(f"message {number}")))
    assert FailureGroup.objects.count() == GROUPS_PER_PLACE
    marks = [failure(f"message {n}").fingerprint for n in ("x", "y")]
    for text in ("x", "y", "x"):
        attempt(own, holder, retried(what=failure(f"message {text}")))

    assert FailureGroup.objects.count() == GROUPS_PER_PLACE + 1
    coarse = FailureGroup.objects.get(fingerprint=marks[0].coarse)
    assert (coarse.template, coarse.coarse) == ("…", marks[0].coarse)
    last = Failure.objects.order_by("-id")[:3]
    assert [held.fingerprint for held in last] == [marks[0].coarse] * 3
    assert [held.error_message for held in last] == [
        "message x",
        "message y",
        "message x",
    ]


def test_a_known_message_of_a_crowded_place_keeps_its_group(
    own: OwnConnection, holder: int
) -> None:
    make()
    for number in range(GROUPS_PER_PLACE + 1):
        attempt(own, holder, retried(what=failure(f"message {number}")))
    attempt(own, holder, retried(what=failure("message 3")))

    last = Failure.objects.order_by("-id")[0]
    assert last.fingerprint == failure("message 3").fingerprint.value


def test_another_place_is_not_crowded(own: OwnConnection, holder: int) -> None:
    make()
    for number in range(GROUPS_PER_PLACE):
        attempt(own, holder, retried(what=failure(f"message {number}")))
    elsewhere = failure("message x", frame="shop.jobs:other")
    attempt(own, holder, retried(what=elsewhere))

    last = Failure.objects.order_by("-id")[0]
    assert last.fingerprint == elsewhere.fingerprint.value


def test_of_a_job_that_fails_without_end_the_first_and_the_last_failures_are_kept(
    own: OwnConnection, holder: int
) -> None:
    make()
    for number in range(1, MOST_FAILURES + 11):
        attempt(own, holder, retried(what=failure(f"{number}", template="<n>")))

    numbers = Failure.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == [1, *range(11, MOST_FAILURES + 11)]


@pytest.mark.parametrize("outcome", [snoozed(0), RELEASED])
def test_of_a_job_that_is_put_off_without_end_not_every_time_is_kept(
    own: OwnConnection, holder: int, outcome: Outcome
) -> None:
    make()
    for _ in range(MOST_FAILURES + 10):
        attempt(own, holder, outcome)

    assert Failure.objects.count() <= MOST_FAILURES + 1


def test_failures_of_other_jobs_are_not_trimmed(
    own: OwnConnection, holder: int
) -> None:
    old = make(attempts=40, run_after=ago(9))
    Failure.objects.bulk_create(
        Failure(job_id=old, job_type=ADD, number=n, end="failed") for n in range(1, 41)
    )
    make(attempts=60, run_after=ago(5))
    first, second = claimed(own, holder, 2)

    report(own, held_by(holder), came_to(second, retried()))

    assert Failure.objects.filter(job_id=old).count() == 40
    report(own, held_by(holder), came_to(first, retried()))
    assert Failure.objects.filter(job_id=old).count() == MOST_FAILURES + 1
