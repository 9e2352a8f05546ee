"""Release: claimed and never started, so given back with the attempt."""

from __future__ import annotations

import uuid

import pytest

from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel
from django_jobqueue.store.queue import release
from tests.store.meanwhile import Hearing
from tests.store.rows import ago, claimed, make, make_many, register

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


def test_a_released_job_waits_as_before_with_its_attempt_given_back_once(
    own: OwnConnection, holder: int
) -> None:
    due = ago(100)
    make(attempts=2, run_after=due)
    (job,) = claimed(own, holder)
    assert release.release(own, holder, [], []) == 0
    counts = [release.release(own, holder, [job.id], [job.fence]) for _ in range(2)]
    assert counts == [1, 0]
    assert columns() == [FRESH]
    assert QueuedJob.objects.get().run_after == due


def test_a_job_of_others_is_not_released(own: OwnConnection, holder: int) -> None:
    make_many(3)
    first, second, third = claimed(own, holder, 3)
    QueuedJob.objects.filter(id=second.id).update(fence=9)
    QueuedJob.objects.filter(id=third.id).update(worker_id=register(own))
    ids = [first.id, second.id, third.id, uuid.uuid4()]
    assert release.release(own, holder, ids, [1, 1, 1, 1]) == 1
    statuses = QueuedJob.objects.order_by("run_after").values_list("status", flat=True)
    assert list(statuses) == ["queued", "running", "running"]


def test_jobs_of_unheard_claims_are_recovered(own: OwnConnection, holder: int) -> None:
    make_many(4, attempts=2)
    known, *unheard = claimed(own, holder, 3)
    others = claimed(own, register(own))
    assert release.recover(own, holder, [known.id]) == 2
    assert columns(id__in=[job.id for job in unheard]) == [FRESH, FRESH]
    running = QueuedJob.objects.filter(status="running").values_list("id", flat=True)
    assert set(running) == {known.id, others[0].id}


@pytest.mark.parametrize("verb", ["release", "recover"])
def test_a_release_is_heard_by_who_may_have_passed_the_job_unless_it_was_cancelled(
    own: OwnConnection, ear: Hearing, holder: int, verb: str
) -> None:
    def give_back() -> None:
        if verb == "release":
            release.release(own, holder, [j.id for j in jobs], [j.fence for j in jobs])
        else:
            assert release.recover(own, holder, []) == 2

    make_many(2)
    jobs = claimed(own, holder, 2)
    give_back()
    assert ear.heard() == ["b:default"]
    jobs = claimed(own, holder, 2)
    cancel.cancel(own, [job.id for job in jobs], reason="not wanted")
    ear.heard()
    give_back()
    assert [job.status for job in ArchivedJob.objects.all()] == ["cancelled"] * 2
    assert ear.heard() == []
