"""Rescue: what a worker held when it died."""

from __future__ import annotations

import pytest

from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    JobType,
    QueuedJob,
)
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel
from django_jobqueue.store.queue import claim, rescue
from django_jobqueue.store.queue.claim_quarantined import claim_quarantined
from django_jobqueue.store.queue.rescue import Rescued
from tests.store.meanwhile import Hearing, open_transaction
from tests.store.outcomes import finished_as, held_by, report, succeeded
from tests.store.rows import (
    ADD,
    ONCE,
    ago,
    archive,
    archived_job,
    claimed,
    lane,
    make,
    make_many,
    queued_job,
    register,
)

KILLED = "killed by signal 9 (SIGKILL)"


def take(own: OwnConnection, *dead: int, crashed: bool = True) -> list[Rescued]:
    """Rescue what these workers held."""
    return rescue.rescue(own, dead, crashed=crashed, reason=KILLED)


def test_a_crash_is_counted_as_no_attempt(own: OwnConnection, holder: int) -> None:
    due = ago(100)
    id = make(attempts=2, run_after=due)
    assert take(own, holder) == take(own) == []
    (job,) = claimed(own, holder)
    assert take(own, holder) == [Rescued(id, ADD, "queued")]
    held = QueuedJob.objects.get(id=id)
    assert (held.status, held.worker_id, held.started_at) == ("queued", None, None)
    assert (held.attempts, held.crashes, held.run_after) == (2, 1, due)
    assert (held.fence, held.quarantined) == (job.fence, False)
    assert report(own, held_by(holder), finished_as(job, succeeded())) == {job.id}


def test_a_crash_is_recorded_with_worker_and_reason(own: OwnConnection) -> None:
    dead = register(own, "web-7:4711", release="r9")
    id = make(attempts=2)
    claimed(own, dead)
    started = QueuedJob.objects.get(pk=id).started_at
    worker_rows.stopped(own, [dead], end=KILLED, lost=True)
    take(own, dead)
    (held,) = Failure.objects.all()
    assert (held.job_id, held.job_type, held.number) == (id, ADD, 3)
    assert started is not None
    assert held.started_at == started
    assert (held.end, held.reason, held.error_message) == ("crashed", KILLED, KILLED)
    assert (held.worker, held.release) == ("web-7:4711", "r9")
    assert held.error_class == "jobqueue.WorkerLost"
    (group,) = FailureGroup.objects.all()
    assert group.fingerprint == held.fingerprint
    assert (group.error_class, group.frame) == ("jobqueue.WorkerLost", ADD)
    assert (group.template, group.state) == (KILLED, "open")


def test_a_job_at_its_cap_of_crashes_failed(own: OwnConnection, holder: int) -> None:
    id = make(attempts=4, crashes=2, quarantined=True, run_after=ago(100), tags=["a"])
    claim_quarantined(own, holder, [ADD], None)
    assert take(own, holder) == [Rescued(id, ADD, "failed")]
    held = archived_job(id)
    assert queued_job(id) is None
    assert held is not None
    assert (held.status, held.crashes, held.attempts) == ("failed", 3, 5)
    assert (held.error_class, held.error_message) == ("jobqueue.PoisonJob", KILLED)
    assert (held.worker, held.release, held.tags) == ("host:1", "r1", ["a"])
    assert held.fingerprint == FailureGroup.objects.get().fingerprint
    assert held.started_at is not None
    assert held.run_ms is not None
    assert 100_000 <= (held.wait_ms or 0) < 130_000


def test_the_last_crash_allowed_happens_alone(own: OwnConnection, holder: int) -> None:
    seen = {}
    for cap in (1, 2, 3, 4):
        JobType.objects.filter(name=ADD).update(max_crashes=cap)
        id, states = make(), []
        while job := queued_job(id):
            assert len(claim.claim(own, holder, [lane()], 1)) == (not job.quarantined)
            claim_quarantined(own, holder, [ADD], None)
            take(own, holder)
            states.append("q" if (job := queued_job(id)) and job.quarantined else "-")
        seen[cap] = "".join(states)
    assert seen == {1: "-", 2: "q-", 3: "-q-", 4: "--q-"}


def test_an_at_most_once_job_is_archived_with_its_outcome_unknown(
    own: OwnConnection, holder: int
) -> None:
    for crashed, error in ((True, "WorkerLost"), (False, "WorkerStopped")):
        id = make(ONCE)
        claimed(own, holder, 1, lane(ONCE))
        started = QueuedJob.objects.get(id=id).started_at
        assert take(own, holder, crashed=crashed) == [Rescued(id, ONCE, "failed")]
        held = ArchivedJob.objects.get(id=id)
        assert (held.status, held.error_class) == ("failed", f"jobqueue.{error}")
        assert held.error_message == f"outcome unknown: {KILLED}"
        assert (held.crashes, held.attempts) == (int(crashed), 1)
        assert Failure.objects.get(job_id=id).started_at == started is not None


def test_a_job_that_was_asked_to_stop_is_cancelled_and_one_of_a_stopped_worker_waits(
    own: OwnConnection, holder: int
) -> None:
    id = make(attempts=2, crashes=2)
    claimed(own, holder)
    assert take(own, holder, crashed=False) == [Rescued(id, ADD, "queued")]
    held = QueuedJob.objects.get(id=id)
    assert (held.attempts, held.crashes, held.quarantined) == (2, 2, False)
    assert [(f.end, f.number) for f in Failure.objects.all()] == [("released", 3)]
    claimed(own, holder)
    cancel.cancel(own, [id], reason="not wanted")
    assert take(own, holder) == [Rescued(id, ADD, "cancelled")]
    over = ArchivedJob.objects.get(id=id)
    assert (over.status, over.crashes, over.fingerprint) == ("cancelled", 3, None)


def test_only_the_jobs_of_the_dead_are_taken_whose_row_may_be_gone(
    own: OwnConnection, holder: int
) -> None:
    make_many(4)
    once = make(ONCE)
    alive = register(own)
    lost = claimed(own, holder, 3, lane(), lane(ONCE))
    kept = claimed(own, alive, 2, lane(), lane(ONCE))
    assert once in {job.id for job in kept}
    own.run(f"UPDATE jobqueue_queuedjob SET worker_id = {holder} WHERE id = '{once}'")
    archive(id=once)  # which holds up no other
    own.run("DELETE FROM jobqueue_worker")

    rescued = take(own, holder)

    assert {job.id for job in rescued} == {once, *(job.id for job in lost)}
    assert {failure.worker for failure in Failure.objects.all()} == {""}
    left = QueuedJob.objects.get(status="running").id
    assert left in {job.id for job in kept} - {once}
    assert not QueuedJob.objects.filter(id=once).exists()
    assert FailureGroup.objects.count() == 2  # one of each job type


def test_a_job_that_is_committing_this_moment_is_left_to_the_next_round(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    make_many(2)
    first, second = claimed(own, holder, 2)
    with open_transaction(other) as transaction:
        done = finished_as(first, succeeded())
        assert report(transaction, held_by(holder), done) == set()
        assert [job.id for job in take(own, holder)] == [second.id]
    assert take(own, holder) == []
    assert [job.id for job in ArchivedJob.objects.all()] == [first.id]


def test_more_than_a_batch_is_rescued_in_several(
    own: OwnConnection, holder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescue, "BATCH", 3)
    for count in (2, 3, 6):
        make_many(count)
        make(ONCE)
        claimed(own, holder, count + 1, lane(), lane(ONCE))
        assert len({job.id for job in take(own, holder)}) == count + 1
        assert not QueuedJob.objects.filter(status="running").exists()
        assert set(QueuedJob.objects.values_list("crashes", flat=True)) == {1}
        QueuedJob.objects.all().delete()


def test_whoever_may_have_passed_the_jobs_is_notified_once_for_each_queue(
    own: OwnConnection, ear: Hearing, holder: int
) -> None:
    for queue in ("a", "a", "b"):
        make(queue=queue)
    make(ONCE, queue="c")
    lanes = [lane(queue="a"), lane(queue="b"), lane(ONCE, "c")]
    claimed(own, holder, 4, *lanes)
    take(own, holder)
    assert sorted(ear.heard()) == ["b:a", "b:b"]
