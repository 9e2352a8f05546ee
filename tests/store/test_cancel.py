"""Cancel: a queued job is archived at once; a running one is asked to stop."""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, Failure, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel
from tests.store.meanwhile import (
    Background,
    Hearing,
    open_transaction,
    until_waiting,
)
from tests.store.outcomes import came_to, held_by, report, succeeded
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


@pytest.mark.parametrize(
    "columns",
    [
        {"run_after": ago(-3_600)},
        {"expires_at": ago(60)},
        {"quarantined": True},
        {"attempts": 4},
    ],
)
def test_whatever_a_queued_job_waits_for_it_can_be_cancelled(
    own: OwnConnection, columns: dict[str, object]
) -> None:
    id = make(**columns)

    assert cancel.cancel(own, [id], reason="").archived == [id]


def test_a_running_job_is_asked_to_stop(
    own: OwnConnection, ear: Hearing, holder: int
) -> None:
    id = make()
    claimed(own, holder)

    done = cancel.cancel(own, [id], reason="not wanted")

    assert (done.archived, done.asked) == ([], [id])
    held = queued_job(id)
    assert held is not None
    assert held.status == "running"
    assert held.cancel_requested_at is not None
    assert ear.heard() == [f"c:{id}"]


def test_a_second_request_keeps_the_time_of_the_first(
    own: OwnConnection, holder: int
) -> None:
    id = make()
    claimed(own, holder)
    cancel.cancel(own, [id], reason="")
    first = QueuedJob.objects.get().cancel_requested_at

    assert cancel.cancel(own, [id], reason="").asked == [id]
    assert QueuedJob.objects.get().cancel_requested_at == first


def test_ids_that_are_over_or_unknown_are_left_out(own: OwnConnection) -> None:
    over = archive()
    id = make()

    done = cancel.cancel(own, [over, id, uuid.uuid4(), id], reason="")

    assert (done.archived, done.asked) == ([id], [])
    held = archived_job(over)
    assert held is not None
    assert held.status == "succeeded"


def test_no_ids_cancel_nothing(own: OwnConnection) -> None:
    make()

    done = cancel.cancel(own, [], reason="")

    assert (done.archived, done.asked) == ([], [])
    assert QueuedJob.objects.count() == 1


def test_a_job_that_is_being_finished_is_waited_for_and_left_out(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    with open_transaction(other) as transaction:
        done = came_to(job, succeeded())
        assert report(transaction, held_by(holder), done) == set()
        future = background(partial(cancel.cancel, own, [id], reason=""))
        until_waiting()

    assert future.result(30) == cancel.Cancelled([], [])
    assert ArchivedJob.objects.get().status == "succeeded"


def test_a_job_that_is_being_claimed_is_waited_for_and_asked_to_stop(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    id = make()
    with open_transaction(other) as transaction:
        transaction.run(
            "UPDATE jobqueue_queuedjob SET status = 'running', worker_id = %(worker)s",
            {"worker": holder},
        )
        future = background(partial(cancel.cancel, own, [id], reason=""))
        until_waiting()

    assert future.result(30) == cancel.Cancelled([], [id])
    assert QueuedJob.objects.get().cancel_requested_at is not None


def test_a_job_that_is_being_released_is_waited_for_and_archived(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    id = make()
    claimed(own, holder)
    with open_transaction(other) as transaction:
        transaction.run(
            "UPDATE jobqueue_queuedjob SET status = 'queued', worker_id = NULL"
        )
        future = background(partial(cancel.cancel, own, [id], reason=""))
        until_waiting()

    assert future.result(30) == cancel.Cancelled([id], [])
    assert ArchivedJob.objects.get().status == "cancelled"


def test_the_requests_about_a_workers_jobs_can_be_read(
    own: OwnConnection, holder: int
) -> None:
    first, second = make(run_after=ago(9)), make(run_after=ago(5))
    claimed(own, holder, 2)
    cancel.cancel(own, [first], reason="")

    assert cancel.requested(own, [first, second]) == [first]
    assert cancel.requested(own, []) == []


def test_a_job_whose_id_is_archived_already_can_be_cancelled(
    own: OwnConnection,
) -> None:
    id = make()
    archive(id=id)

    assert cancel.cancel(own, [id], reason="").archived == [id]
    assert not QueuedJob.objects.exists()


def test_the_time_of_cancelling_is_the_databases(own: OwnConnection) -> None:
    id = make()
    with own.raw() as connection, connection.transaction():
        ((began,),) = connection.execute("SELECT now()").fetchall()
        connection.execute(cancel.CANCEL, {"ids": [id], "reason": ""})

    held = archived_job(id)
    assert held is not None
    assert held.finished_at - began < timedelta(minutes=1)
    assert held.finished_at > began
