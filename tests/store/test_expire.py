"""Expire: archived as expired, also when nobody claims."""

from __future__ import annotations

import pytest
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, Failure, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import expire
from tests.store.meanwhile import open_transaction
from tests.store.rows import (
    ADD,
    ago,
    archive,
    archived_job,
    claimed,
    make,
    make_many,
    queued_job,
)
from tests.store.test_finish import KEPT, seen


def test_an_expired_job_is_archived_with_everything_it_had(own: OwnConnection) -> None:
    kept = {**KEPT, "expires_at": ago(1)}
    id = make(**kept, attempts=3)
    before = timezone.now()
    assert expire.expire(own) == [(id, ADD)]
    held = archived_job(id)
    assert queued_job(id) is None
    assert held is not None
    assert seen(held) == kept
    assert (held.status, held.attempts, held.started_at) == ("expired", 3, None)
    assert before <= held.finished_at <= timezone.now()
    assert not Failure.objects.exists()


def test_a_job_expires_whatever_it_waits_for(own: OwnConnection) -> None:
    made = [
        make(expires_at=ago(4), run_after=ago(-3_600)),
        make(expires_at=ago(3), quarantined=True),
        make(expires_at=ago(2), attempts=1),
        make(expires_at=ago(1)),
    ]
    archive(id=made[0])  # which holds up no other
    assert sorted(expire.expire(own)) == sorted((id, ADD) for id in made)
    assert not QueuedJob.objects.exists()


def test_what_lives_or_runs_does_not_expire(own: OwnConnection, holder: int) -> None:
    make()
    make(expires_at=ago(-60))
    running = make(expires_at=ago(-60), run_after=ago(100))
    claimed(own, holder)
    QueuedJob.objects.filter(id=running).update(expires_at=ago(1))
    assert expire.expire(own) == []
    assert QueuedJob.objects.count() == 3


def test_a_batch_takes_the_longest_expired_first(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expire, "BATCH", 2)
    made = [make(expires_at=ago(seconds)) for seconds in (1, 3, 2, 5, 4)]
    gone = []
    while expire.expire(own):
        gone.append(ArchivedJob.objects.count())
    assert gone == [2, 4, 5]
    first = ArchivedJob.objects.order_by("finished_at").values_list("id", flat=True)[:2]
    assert set(first) == {made[3], made[4]}


def test_a_job_that_somebody_else_has_locked_is_skipped(
    own: OwnConnection, other: OwnConnection
) -> None:
    locked, free = make_many(2, expires_at=ago(1))
    with open_transaction(other) as transaction:
        transaction.lock(locked)
        assert expire.expire(own) == [(free, ADD)]
    assert [job.id for job in ArchivedJob.objects.all()] == [free]


def test_the_next_expiry_is_told_in_seconds(own: OwnConnection, holder: int) -> None:
    make(expires_at=ago(-60))
    claimed(own, holder)
    make()
    assert expire.next_expiry(own) is None
    make(expires_at=ago(-3_600))
    make(expires_at=ago(-60))
    assert 30 < (expire.next_expiry(own) or 0) <= 60
    make(expires_at=ago(60))
    assert -90 < (expire.next_expiry(own) or 0) <= -60
