"""Finish: what goes back to the queue or was cancelled, and which failures are kept."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.models import ArchivedJob, Failure, FailureGroup, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel
from django_jobqueue.store.queue.finish_unsuccessful import (
    GROUPS_PER_PLACE,
    MOST_FAILURES,
)
from django_jobqueue.store.worker_rows import set_listening
from tests.store.meanwhile import Hearing
from tests.store.outcomes import (
    CANCELLED,
    RAN,
    RELEASED,
    SINCE,
    failed,
    failure,
    finished_as,
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
    assert report(own, held_by(holder), finished_as(job, outcome)) == set()


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


def test_what_was_put_off_has_no_exception(own: OwnConnection, holder: int) -> None:
    ends = {
        ("snoozed", "later"): snoozed(),
        ("released", "stopped"): RELEASED,
        ("cancelled", "not wanted"): CANCELLED,
    }
    make(attempts=2)
    for outcome in (*ends.values(), succeeded()):
        if not QueuedJob.objects.exists():
            make(attempts=2)
        attempt(own, holder, outcome)
    held = Failure.objects.order_by("id")
    assert [*held.values_list("end", "reason", "number")] == [(*e, 3) for e in ends]
    nothing = ("error_class", "traceback", "frames", "fingerprint")
    assert {*map(str, held.values_list(*nothing))} == {"('', '', [], None)"}
    assert not FailureGroup.objects.exists()


def test_the_first_failure_makes_a_group(own: OwnConnection, holder: int) -> None:
    what = failure("order 7 is gone", template="order <n> is gone")
    make()
    attempt(own, holder, retried(what=what))
    first_seen = FailureGroup.objects.get().first_seen
    make_many(50, run_after=ago(9))
    jobs = claimed(own, holder, 50)
    report(own, held_by(holder), *(finished_as(job, failed(what)) for job in jobs))
    (group,) = FailureGroup.objects.all()
    mark = what.fingerprint
    assert (group.fingerprint, group.coarse) == (mark.value, mark.coarse)
    assert (group.error_class, group.frame) == ("ValueError", "shop.jobs:send")
    assert (group.template, group.state) == ("order <n> is gone", "open")
    assert group.first_seen == first_seen
    assert Failure.objects.count() == 51


def test_a_place_with_many_messages_collapses_into_one_group(
    own: OwnConnection, holder: int
) -> None:
    def last(message: str, **values: str) -> Failure:
        attempt(own, holder, retried(what=failure(f"message {message}", **values)))
        return Failure.objects.latest("id")

    make()
    for number in range(GROUPS_PER_PLACE):
        last(str(number))
    assert FailureGroup.objects.count() == GROUPS_PER_PLACE
    mark = failure("message x").fingerprint
    for text in ("x", "y", "x"):
        held = last(text)
        assert held.fingerprint == mark.coarse
        assert held.error_message == f"message {text}"

    assert FailureGroup.objects.count() == GROUPS_PER_PLACE + 1
    coarse = FailureGroup.objects.get(fingerprint=mark.coarse)
    assert (coarse.template, coarse.coarse) == ("…", mark.coarse)
    # What is known keeps its group, and another place is not crowded.
    assert last("3").fingerprint == failure("message 3").fingerprint.value
    elsewhere = failure("message x", frame="shop.jobs:other").fingerprint
    assert last("x", frame="shop.jobs:other").fingerprint == elsewhere.value


def test_of_a_job_that_fails_without_end_the_first_and_the_last_failures_are_kept(
    own: OwnConnection, holder: int
) -> None:
    make()
    for number in range(1, MOST_FAILURES + 11):
        attempt(own, holder, retried(what=failure(f"{number}", template="<n>")))
    numbers = Failure.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == [1, *range(11, MOST_FAILURES + 11)]


def test_of_a_job_that_is_put_off_without_end_not_every_time_is_kept(
    own: OwnConnection, holder: int
) -> None:
    make()
    for _ in range(MOST_FAILURES // 2 + 5):
        attempt(own, holder, snoozed(0))
        attempt(own, holder, RELEASED)
    assert Failure.objects.count() <= MOST_FAILURES + 1


def test_failures_of_others_are_not_trimmed(own: OwnConnection, holder: int) -> None:
    old = make(attempts=40, run_after=ago(9))
    Failure.objects.bulk_create(
        Failure(job_id=old, job_type=ADD, number=n, end="failed") for n in range(1, 41)
    )
    make(attempts=60, run_after=ago(5))
    first, second = claimed(own, holder, 2)
    report(own, held_by(holder), finished_as(second, retried()))
    assert Failure.objects.filter(job_id=old).count() == 40
    report(own, held_by(holder), finished_as(first, retried()))
    assert Failure.objects.filter(job_id=old).count() == MOST_FAILURES + 1


BACK = {"retried": retried(90), "snoozed": snoozed(90), "released": RELEASED}


def test_a_retry_spends_its_attempt_and_a_snooze_or_release_does_not(
    own: OwnConnection, holder: int
) -> None:
    due = ago(1_000)
    for name, outcome in BACK.items():
        id = make(attempts=2, run_after=due)
        (job,) = claimed(own, holder)
        assert job.attempts == 3
        before = timezone.now()

        report(own, held_by(holder), finished_as(job, outcome))

        held = QueuedJob.objects.get(id=id)
        assert (held.status, held.worker_id, held.started_at) == ("queued", None, None)
        assert (held.attempts, held.fence) == (3 if name == "retried" else 2, job.fence)
        if name == "released":  # it keeps its place in the lane
            assert held.run_after == due
            assert [again.id for again in claimed(own, holder)] == [id]
        else:  # the wait counts from the report, by the database's clock
            wait = timedelta(seconds=90)
            assert before + wait <= held.run_after <= timezone.now() + wait
    assert not ArchivedJob.objects.exists()


def test_idle_workers_are_told_of_what_goes_back_and_of_nothing_else(
    own: OwnConnection, holder: int, ear: Hearing
) -> None:
    heard = {
        "retried": ["q:default"],
        "snoozed": ["q:default"],
        "released": ["b:default"],
        "succeeded": [],
        "failed": [],
    }
    outcomes = {**BACK, "succeeded": succeeded(), "failed": failed()}
    told = {}
    for name, outcome in outcomes.items():
        for is_idle in (False, True):
            QueuedJob.objects.all().delete()
            set_listening(own, holder, False)
            make()
            set_listening(own, holder, is_idle)
            (job,) = claimed(own, holder)
            assert ear.heard() == []
            report(own, held_by(holder), finished_as(job, outcome))
            told[name] = ear.heard()
            assert is_idle or told[name] == []
    assert told == heard


def test_a_job_that_came_back_has_a_new_fence_at_its_next_claim(
    own: OwnConnection, holder: int
) -> None:
    make()
    (first,) = claimed(own, holder)
    report(own, held_by(holder), finished_as(first, retried(0)))
    (second,) = claimed(own, holder)
    assert (first.fence, second.fence) == (1, 2)
    assert report(own, held_by(holder), finished_as(first, succeeded())) == {first.id}
    assert report(own, held_by(holder), finished_as(second, succeeded())) == set()


def test_a_job_that_was_cancelled_while_it_ran_does_not_come_back(
    own: OwnConnection, holder: int
) -> None:
    outcomes = {
        **BACK,
        "cancelled": CANCELLED,
        "succeeded": succeeded(),
        "failed": failed(),
    }
    ends = {}
    for name, outcome in outcomes.items():
        id = make()
        (job,) = claimed(own, holder)
        cancel.cancel(own, [id], reason="not wanted")
        assert report(own, held_by(holder), finished_as(job, outcome)) == set()
        held = ArchivedJob.objects.get(id=id)
        assert held.started_at is not None
        numbers = Failure.objects.filter(job_id=id).values_list("number", flat=True)
        assert [*numbers] == ([] if name == "succeeded" else [1])
        ends[name] = held.status
        if name == "cancelled":
            assert (held.error_message, held.error_class) == ("not wanted", "")
    # One that ended before it heard of its cancelling keeps its outcome.
    kept = {"succeeded": "succeeded", "failed": "failed"}
    assert ends == {**dict.fromkeys(outcomes, "cancelled"), **kept}
    assert not QueuedJob.objects.exists()
