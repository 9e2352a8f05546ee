"""Cancel: a queued job is archived at once; a running one is asked to stop."""

from __future__ import annotations

import uuid
from functools import partial

from django.utils import timezone

from django_jobqueue.models import ArchivedJob, Failure, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel
from tests.store.meanwhile import Background, Hearing, open_transaction, until_waiting
from tests.store.outcomes import finished_as, held_by, report, succeeded
from tests.store.rows import ago, archive, archived_job, claimed, make, queued_job
from tests.store.test_finish import KEPT, seen


def test_a_queued_job_is_archived_with_everything_it_had(own: OwnConnection) -> None:
    id = make(**KEPT, attempts=3)
    before = timezone.now()
    done = cancel.cancel(own, [id], reason="not wanted")
    assert (done.archived, done.asked) == ([id], [])
    held = archived_job(id)
    assert queued_job(id) is None
    assert held is not None
    assert seen(held) == KEPT
    assert (held.status, held.attempts) == ("cancelled", 3)
    assert held.error_message == "not wanted"
    assert before <= held.finished_at <= timezone.now()
    assert (held.started_at, held.run_ms, held.wait_ms) == (None, None, None)
    assert not Failure.objects.exists()


def test_running_jobs_are_asked_to_stop(
    own: OwnConnection, ear: Hearing, holder: int
) -> None:
    id, other = make(run_after=ago(9)), make(run_after=ago(5))
    claimed(own, holder, 2)
    done = cancel.cancel(own, [id], reason="not wanted")
    assert (done.archived, done.asked) == ([], [id])
    held = QueuedJob.objects.get(id=id)
    assert held.status == "running"
    assert held.cancel_requested_at is not None
    assert ear.heard() == [f"c:{id}"]
    assert cancel.requested(own, [id, other]) == [id]
    assert cancel.requested(own, []) == []
    # A second request keeps the time of the first.
    assert cancel.cancel(own, [id], reason="").asked == [id]
    again = QueuedJob.objects.get(id=id).cancel_requested_at
    assert again == held.cancel_requested_at


def test_ids_that_are_over_or_unknown_are_left_out(own: OwnConnection) -> None:
    over, waiting = archive(), [make(run_after=ago(-3_600)), make(quarantined=True)]
    archive(id=make())
    done = cancel.cancel(own, [over, waiting[0], uuid.uuid4(), *waiting], reason="")
    assert (sorted(done.archived), done.asked) == (sorted(waiting), [])
    assert ArchivedJob.objects.get(id=over).status == "succeeded"
    assert cancel.cancel(own, [], reason="") == cancel.Cancelled([], [])
    left = QueuedJob.objects.get().id  # one that is archived already goes too
    assert cancel.cancel(own, [left], reason="").archived == [left]
    assert not QueuedJob.objects.exists()


def test_a_job_that_is_being_finished_is_waited_for_and_left_out(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    with open_transaction(other) as transaction:
        done = finished_as(job, succeeded())
        assert report(transaction, held_by(holder), done) == set()
        future = background(partial(cancel.cancel, own, [id], reason=""))
        until_waiting()
    assert future.result(30) == cancel.Cancelled([], [])
    assert ArchivedJob.objects.get().status == "succeeded"


def test_a_job_that_is_being_claimed_or_released_is_waited_for(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    id = make()
    claim = f"SET status = 'running', worker_id = {holder}"
    release = "SET status = 'queued', worker_id = NULL"
    for change, then in (
        (claim, cancel.Cancelled([], [id])),
        (release, cancel.Cancelled([id], [])),
    ):
        with open_transaction(other) as transaction:
            transaction.run(f"UPDATE jobqueue_queuedjob {change}")
            future = background(partial(cancel.cancel, own, [id], reason=""))
            until_waiting()
        assert future.result(30) == then
    assert ArchivedJob.objects.get().status == "cancelled"
