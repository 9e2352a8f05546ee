"""Why a job was cancelled, how many attempts it had, and whether it has failed: what
the archive and the failures remember."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from uuid import UUID

import pytest
from django.utils import timezone

from django_jobqueue import Handler, operations
from django_jobqueue.models import (
    Failure,
    FailureGroup,
    FailureRollup,
    JobType,
    QueuedJob,
)
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue import expire, release
from django_jobqueue.store.queue.rescue import rescue
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.undone import check_each
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "the order was withdrawn"


def obey(worker: HandDriven, id: str) -> None:
    """The handler is told, and stops."""
    worker.worker.cancel(id)


def fail_instead(worker: HandDriven, id: str) -> None:
    """The handler fails before it is told."""
    jobs.gates["fails"].set()


def be_told_twice(worker: HandDriven, id: str) -> None:
    """A second operator cancels, too: the first reason stands."""
    operations.cancel([id], reason="me too")
    worker.worker.cancel(id)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("way", [obey, fail_instead, be_told_twice])
def test_the_reason_for_cancelling_a_running_job_is_kept(
    worker: HandDriven, way: Callable[[HandDriven, str], None], is_async: bool
) -> None:
    jobs.gates["fails"] = threading.Event()
    handler: Handler[..., None] = (
        jobs.astay_and_fail if is_async else jobs.stay_and_fail
    )
    made = handler.enqueue("fails")
    worker.claim()
    eventually(
        lambda: any(a.started for e in worker.worker.executors for a in e.running)
    )
    operations.cancel([made.id], reason=WHY)
    way(worker, str(made.id))
    worker.run()
    worker.finish()
    (job,) = archived()
    assert (job.status, job.error_message) == ("cancelled", WHY)
    (failure,) = Failure.objects.all()
    if way is fail_instead:
        assert failure.error_message == "the gate is open"
    else:
        assert (failure.end, failure.reason) == ("cancelled", WHY)


def test_who_gives_no_reason_is_named(worker: HandDriven) -> None:
    jobs.gates["fails"] = threading.Event()
    made = jobs.stay_and_fail.enqueue("fails")
    worker.claim()
    operations.cancel([made.id], by="anna")
    worker.worker.cancel(str(made.id))
    worker.run()
    worker.finish()
    assert archived()[0].error_message == "cancelled by anna"


def test_the_reason_is_kept_when_the_worker_dies(
    worker: HandDriven, own: OwnConnection
) -> None:
    released, rescued = jobs.add.enqueue(1).id, jobs.add.enqueue(2).id
    worker.claim()
    worker.run()  # as if they waited for a slot
    operations.cancel([released, rescued], reason=WHY)
    id = worker.worker.id
    (fence,) = [a.job.fence for a in worker.worker.held if a.job.id == released]
    release.release(own, id, [released], [fence])
    rescue(own, [id], crashed=True, reason="killed")
    found = [(j.id, j.status, j.error_message) for j in archived()]
    assert found == [(id, "cancelled", WHY) for id in (released, rescued)]


def test_the_archive_keeps_the_limit(worker: HandDriven, own: OwnConnection) -> None:
    jobs.fail.enqueue()
    jobs.fail.using(max_attempts=2).enqueue()
    worker.work()
    JobType.objects.filter(name=jobs.fail.name).update(max_attempts_override=9)
    kept = {(j.attempts, j.effective_max_attempts, j.max_attempts) for j in archived()}
    # The last one is of the job alone, for a replay.
    assert kept == {(3, 3, None), (2, 2, 2)}
    lost = jobs.write_once.enqueue("/dev/null").id
    worker.claim()
    worker.run()
    rescue(own, [worker.worker.id], crashed=True, reason="killed")
    assert [job.effective_max_attempts for job in archived(id=lost)] == [1]
    assert queued() == []


def end_by_hand(id: UUID) -> None:
    operations.fail([id], reason="no")


def end_by_cancelling(id: UUID) -> None:
    operations.cancel([id])


def end_by_expiry(id: UUID) -> None:
    past = timezone.now() - timedelta(seconds=1)
    QueuedJob.objects.filter(id=id).update(expires_at=past)
    expire.expire(DjangoDatabase())


def test_so_it_does_where_no_worker_archives() -> None:
    def check(end: Callable[[UUID], None], limits: tuple[int | None, ...]) -> None:
        override, own_limit, limit = limits
        of_type = JobType.objects.filter(name=jobs.fail.name)
        of_type.update(max_attempts_override=override)
        made = jobs.fail.using(max_attempts=own_limit).enqueue()
        end(made.id)
        assert [job.effective_max_attempts for job in archived(id=made.id)] == [limit]

    ends = (end_by_hand, end_by_cancelling, end_by_expiry)
    limits = [(None, None, 3), (9, None, 9), (-1, None, None), (9, 4, 4), (None, 4, 4)]
    check_each(check, product(ends, limits))


def test_a_handler_that_asks_for_a_retry_has_not_failed(worker: HandDriven) -> None:
    made = jobs.say.enqueue(word="retry")
    worker.work()
    (job,) = queued()
    assert (job.id, job.status, job.attempts) == (made.id, "queued", 1)
    (attempt,) = Failure.objects.filter(job_id=made.id)
    assert (attempt.number, attempt.end) == (1, "failed")
    assert attempt.error_class.endswith("Retry")
    assert attempt.error_message == "again"
    assert attempt.fingerprint is None
    assert not FailureGroup.objects.exists()
    worker.worker.completer.write_counters()
    assert not FailureRollup.objects.exists()
    jobs.say.using(max_attempts=1).enqueue(word="retry")
    worker.work()
    (over,) = archived(job_type=jobs.say.name)
    assert (over.status, over.error_message) == ("failed", "again")
    assert over.fingerprint == FailureGroup.objects.get().fingerprint
