"""Replay: a new queued job that remembers the archived one."""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import partial

from django.utils import timezone

from django_jobqueue.domain.operation_options import Options
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import replay as store_replay
from django_jobqueue.store.queue import claim, expire
from django_jobqueue.store.worker_rows import set_listening
from tests.store.meanwhile import Hearing, together
from tests.store.rows import (
    ADD,
    ago,
    archive,
    archived_job,
    lane,
    make,
    queued_job,
    register,
)

OLD = {
    "queue": "q",
    "priority": 7,
    "data": {"a": 1},
    "run_after": ago(1_000),
    "created_at": ago(1_000),
    "expires_at": ago(400),
    "attempts": 5,
    "max_attempts": 9,
    "crashes": 2,
    "error_class": "ValueError",
    "tags": ["a"],
    "enqueued_by": "anna",
    "result": 5,
}


def again(
    own: OwnConnection,
    id: uuid.UUID,
    *,
    data: str | None = None,
    by: str = "",
    operation: uuid.UUID | None = None,
    **options: object,
) -> QueuedJob:
    """Replay one job, which must be possible; return the new one."""
    chosen = Options(**options)  # type: ignore[arg-type]
    made = store_replay.replay(own, [id], chosen, data=data, by=by, operation=operation)
    job = queued_job(made[id])
    assert job is not None
    return job


def test_a_replayed_job_is_a_new_one_with_the_old_ones_data(own: OwnConnection) -> None:
    for status in ("succeeded", "failed", "expired", "cancelled"):
        id = archive(status=status, **OLD)
        old = ArchivedJob.objects.values().get(id=id)
        before = timezone.now()

        job = again(own, id)

        assert job.id != id
        assert job.id.version == 7
        assert (job.job_type_id, job.queue, job.priority) == (ADD, "q", 7)
        assert (job.data, job.max_attempts, job.tags) == ({"a": 1}, 9, ["a"])
        assert (job.status, job.attempts, job.crashes, job.fence) == ("queued", 0, 0, 0)
        assert (job.replay_of, job.root_id, job.enqueued_by) == (id, id, None)
        assert before <= job.run_after <= timezone.now()
        assert before <= job.created_at <= timezone.now()
        assert ArchivedJob.objects.values().get(id=id) == old
    # As often as one likes; a replay of a replay remembers the last and the first.
    assert again(own, id).id != job.id
    job = again(own, second := archive(replay_of=id, root_id=id))
    assert (job.replay_of, job.root_id) == (second, id)


def test_what_is_asked_for_replaces_what_the_old_job_had(own: OwnConnection) -> None:
    moment, operation = ago(-60), uuid.uuid4()
    job = again(
        own,
        archive(**OLD),
        run_after=moment,
        queue="other",
        priority=0,
        data='{"a": 2}',
        by="bert",
        operation=operation,
    )
    assert (job.run_after, job.queue, job.priority) == (moment, "other", 0)
    assert (job.data, job.enqueued_by) == ({"a": 2}, "bert")
    assert job.bulk_operation_id == operation


def test_a_replay_expires_as_it_was_asked_to(own: OwnConnection) -> None:
    old = archive(**{**OLD, "expires_at": ago(400), "created_at": ago(1_000)})
    never = archive()
    for expires, seconds in {"keep": -400, "same": 600, "new": 7_200}.items():
        job = again(own, old, expires=expires, expires_at=ago(-7_200))
        assert job.expires_at is not None
        left = job.expires_at - job.created_at
        assert abs(left - timedelta(seconds=seconds)) < timedelta(seconds=30)
    assert again(own, old, expires="never").expires_at is None
    assert again(own, never, expires="same").expires_at is None
    assert again(own, never, expires="keep").expires_at is None


def test_a_replayed_job_that_had_expired_expires_again_and_is_never_claimed(
    own: OwnConnection, holder: int
) -> None:
    job = again(own, archive(status="expired", **OLD), expires="keep")
    assert claim.claim(own, holder, [lane(queue="q", priority=7)], 10) == []
    expire.expire(own)
    held = archived_job(job.id)
    assert held is not None
    assert held.status == "expired"


def test_only_archived_jobs_of_known_types_are_replayed(own: OwnConnection) -> None:
    over, waiting = archive(), make()
    orphan = archive("gone.type")
    made = store_replay.replay(
        own, [over, waiting, orphan, uuid.uuid4(), over], Options()
    )
    assert list(made) == [over]
    assert QueuedJob.objects.filter(replay_of__isnull=False).count() == 1
    assert not JobType.objects.filter(name="gone.type").exists()


def test_replays_at_once_make_two_jobs(
    own: OwnConnection, other: OwnConnection
) -> None:
    ids = [archive() for _ in range(20)]
    made = together(
        [partial(store_replay.replay, db, ids, Options()) for db in (own, other)]
    )
    assert [set(one) for one in made] == [set(ids), set(ids)]
    assert QueuedJob.objects.count() == 40


def test_idle_workers_hear_of_each_queue_once(own: OwnConnection, ear: Hearing) -> None:
    gone = archive("gone.type", queue="b")
    ids = [gone, *(archive(queue=queue) for queue in ("a", "a", "b"))]
    store_replay.replay(own, ids, Options())
    assert ear.heard() == []  # nobody waits
    worker = register(own)
    set_listening(own, worker, True)
    store_replay.replay(own, ids, Options())
    assert sorted(ear.of_queues()) == ["q:a", "q:b"]
    assert QueuedJob.objects.filter(announce=True).count() == 4
    store_replay.replay(own, [], Options())
    assert ear.heard() == []
