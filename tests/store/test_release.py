"""Release: claimed and never started, so given back with the attempt."""

from __future__ import annotations

import uuid

import pytest

from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel
from django_jobqueue.store.queue import release
from tests.store.meanwhile import Hearing
from tests.store.rows import ago, archived_job, claimed, make, make_many, register

FRESH = {
    "status": "queued",
    "worker_id": None,
    "started_at": None,
    "attempts": 2,
    "fence": 1,
}


def columns(**filters: object) -> list[dict[str, object]]:
    """The columns that a claim changes, of each job."""
    return list(QueuedJob.objects.filter(**filters).values(*FRESH))


def test_a_released_job_waits_as_before_with_its_attempt_given_back(
    own: OwnConnection, holder: int
) -> None:
    due = ago(100)
    make(attempts=2, run_after=due)
    (job,) = claimed(own, holder)

    assert release.release(own, holder, [job.id], [job.fence]) == 1

    assert columns() == [FRESH]
    assert QueuedJob.objects.get().run_after == due


def test_a_job_that_is_ours_no_more_is_not_released(
    own: OwnConnection, holder: int
) -> None:
    make_many(3)
    first, second, third = claimed(own, holder, 3)
    QueuedJob.objects.filter(id=second.id).update(fence=9)
    QueuedJob.objects.filter(id=third.id).update(worker_id=register(own))
    ids = [first.id, second.id, third.id, uuid.uuid4()]

    assert release.release(own, holder, ids, [1, 1, 1, 1]) == 1

    statuses = QueuedJob.objects.order_by("run_after").values_list("status", flat=True)
    assert list(statuses) == ["queued", "running", "running"]


def test_a_release_that_is_sent_twice_gives_back_one_attempt(
    own: OwnConnection, holder: int
) -> None:
    make(attempts=2)
    (job,) = claimed(own, holder)
    counts = [release.release(own, holder, [job.id], [job.fence]) for _ in range(2)]

    assert counts == [1, 0]
    assert columns() == [FRESH]


def test_nothing_to_release_releases_nothing(own: OwnConnection, holder: int) -> None:
    make()
    claimed(own, holder)

    assert release.release(own, holder, [], []) == 0
    assert QueuedJob.objects.get().status == "running"


def test_jobs_whose_claim_was_not_heard_of_are_recovered(
    own: OwnConnection, holder: int
) -> None:
    make_many(4, attempts=2)
    known, *unheard = claimed(own, holder, 3)
    others = claimed(own, register(own))

    assert release.recover(own, holder, [known.id]) == 2

    assert columns(id__in=[job.id for job in unheard]) == [FRESH, FRESH]
    running = QueuedJob.objects.filter(status="running").values_list("id", flat=True)
    assert set(running) == {known.id, others[0].id}


def test_a_worker_that_knows_of_no_job_recovers_all_of_its_own(
    own: OwnConnection, holder: int
) -> None:
    make_many(3)
    claimed(own, holder, 3)

    assert release.recover(own, holder, []) == 3
    assert release.recover(own, holder, []) == 0


@pytest.mark.parametrize("verb", ["release", "recover"])
def test_a_release_is_heard_by_who_may_have_passed_the_job(
    own: OwnConnection, ear: Hearing, holder: int, verb: str
) -> None:
    make_many(2)
    jobs = claimed(own, holder, 2)
    if verb == "release":
        release.release(own, holder, [j.id for j in jobs], [j.fence for j in jobs])
    else:
        release.recover(own, holder, [])

    assert ear.heard() == ["b:default"]


@pytest.mark.parametrize("verb", ["release", "recover"])
def test_a_job_that_was_cancelled_after_its_claim_is_archived_when_it_is_released(
    own: OwnConnection, holder: int, verb: str
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    cancel.cancel(own, [id], reason="not wanted")
    if verb == "release":
        release.release(own, holder, [job.id], [job.fence])
    else:
        release.recover(own, holder, [])

    held = archived_job(id)
    assert held is not None
    assert held.status == "cancelled"
