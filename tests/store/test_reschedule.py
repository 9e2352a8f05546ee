"""Reschedule: queued to queued, at another time or in another lane."""

from __future__ import annotations

import uuid

from django.utils import timezone

from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control.reschedule import reschedule
from django_jobqueue.store.queue import claim
from tests.store.meanwhile import Hearing, open_transaction
from tests.store.rows import ago, archive, claimed, ids, lane, make, queued_job


def test_a_waiting_job_can_run_now(own: OwnConnection, holder: int) -> None:
    id = make(run_after=ago(-3_600))
    before = timezone.now()
    assert reschedule(own, [id], now=True) == [id]
    held = queued_job(id)
    assert held is not None
    assert before <= held.run_after <= timezone.now()
    assert ids(claim.claim(own, holder, [lane()], 1)) == {id}


def test_what_is_not_said_stays_as_it_was(own: OwnConnection) -> None:
    id = make(queue="a", priority=5, run_after=ago(100), attempts=2, data={"a": 1})
    before = QueuedJob.objects.values().get()
    assert reschedule(own, [id]) == [id]
    assert QueuedJob.objects.values().get() == before
    reschedule(own, [id], priority=0)
    assert QueuedJob.objects.values().get() == {**before, "priority": 0}
    reschedule(own, [id], queue="b")
    changed = {**before, "priority": 0, "queue": "b"}
    assert QueuedJob.objects.values().get() == changed


def test_only_jobs_that_wait_are_changed(own: OwnConnection, holder: int) -> None:
    running = make(run_after=ago(9))
    claimed(own, holder)
    waiting, quarantined = make(), make(quarantined=True)
    over = archive()
    changed = reschedule(
        own, [running, waiting, quarantined, over, uuid.uuid4(), waiting], priority=9
    )
    assert sorted(changed) == sorted([waiting, quarantined])
    held = queued_job(running)
    assert held is not None
    assert held.priority == 0


def test_a_job_that_is_being_claimed_this_moment_is_left_alone(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    first, second = make(run_after=ago(9)), make(run_after=ago(5))
    with open_transaction(other) as transaction:
        assert ids(claim.claim(transaction, holder, [lane()], 1)) == {first}
        assert reschedule(own, [first, second], priority=9) == [second]


def test_the_jobs_new_queue_is_notified_that_it_may_lie_behind(
    own: OwnConnection, ear: Hearing
) -> None:
    made = [make(queue="a"), make(queue="a")]
    reschedule(own, made, queue="b")
    assert ear.heard() == ["b:b"]
