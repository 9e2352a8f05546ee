"""Rescue: what a worker held when it died."""

from __future__ import annotations

import uuid

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
from django_jobqueue.store.queue.rescue import Rescued
from tests.store.meanwhile import Hearing, open_transaction
from tests.store.outcomes import came_to, held_by, report, succeeded
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


def test_a_crash_spends_no_attempt_and_is_counted(
    own: OwnConnection, holder: int
) -> None:
    due = ago(100)
    id = make(attempts=2, run_after=due)
    (job,) = claimed(own, holder)

    assert take(own, holder) == [Rescued(id, ADD, "queued")]

    held = queued_job(id)
    assert held is not None
    assert (held.status, held.worker_id, held.started_at) == ("queued", None, None)
    assert (held.attempts, held.crashes, held.run_after) == (2, 1, due)
    assert (held.fence, held.quarantined) == (job.fence, False)


@pytest.mark.parametrize("crashed", [True, False])
@pytest.mark.parametrize("job_type", [ADD, ONCE])
def test_the_attempt_that_was_lost_keeps_its_start(
    own: OwnConnection, holder: int, crashed: bool, job_type: str
) -> None:
    id = make(job_type)
    claimed(own, holder, 1, lane(job_type))
    before = queued_job(id)
    assert before is not None
    assert take(own, holder, crashed=crashed)
    failure = Failure.objects.get(job_id=id)
    assert failure.started_at is not None
    assert failure.started_at == before.started_at


def test_a_worker_that_was_rescued_can_finish_nothing_any_more(
    own: OwnConnection, holder: int
) -> None:
    make()
    (job,) = claimed(own, holder)
    take(own, holder)

    assert report(own, held_by(holder), came_to(job, succeeded())) == {job.id}
    assert not ArchivedJob.objects.exists()


def test_a_crash_is_recorded_with_the_worker_and_the_reason(
    own: OwnConnection,
) -> None:
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


def test_crashes_of_one_job_type_are_one_group_and_of_two_types_two(
    own: OwnConnection, holder: int
) -> None:
    make_many(3)
    make("tests.sample.write")
    claimed(own, holder, 4, lane(), lane("tests.sample.write"))
    take(own, holder)

    assert FailureGroup.objects.count() == 2
    assert Failure.objects.count() == 4


def test_a_crash_that_was_resolved_and_comes_again_has_regressed(
    own: OwnConnection, holder: int
) -> None:
    make()
    claimed(own, holder)
    take(own, holder)
    FailureGroup.objects.update(state="resolved", resolved_at=ago(60))
    claimed(own, holder)
    take(own, holder)

    group = FailureGroup.objects.get()
    assert group.state == "open"
    assert group.regressed_at is not None


def test_the_last_crash_that_a_job_is_allowed_happens_alone(
    own: OwnConnection, holder: int
) -> None:
    id = make()
    claimed(own, holder)
    take(own, holder)
    claimed(own, holder)
    take(own, holder)

    held = queued_job(id)
    assert held is not None
    assert (held.crashes, held.quarantined) == (2, True)
    assert claim.claim(own, holder, [lane()], 1) == []
    (job,) = claim.claim_quarantined(own, holder, [ADD], None)
    assert job.crashes == 2


def test_a_job_at_its_cap_of_crashes_is_archived_as_failed(
    own: OwnConnection, holder: int
) -> None:
    id = make(attempts=4, crashes=2, quarantined=True, run_after=ago(100), tags=["a"])
    claim.claim_quarantined(own, holder, [ADD], None)

    assert take(own, holder) == [Rescued(id, ADD, "failed")]

    held = archived_job(id)
    assert queued_job(id) is None
    assert held is not None
    assert (held.status, held.crashes, held.attempts) == ("failed", 3, 5)
    assert (held.error_class, held.error_message) == ("jobqueue.WorkerLost", KILLED)
    assert (held.worker, held.release, held.tags) == ("host:1", "r1", ["a"])
    assert held.fingerprint == FailureGroup.objects.get().fingerprint
    assert held.started_at is not None
    assert held.run_ms is not None
    assert 100_000 <= (held.wait_ms or 0) < 130_000


@pytest.mark.parametrize(
    ("cap", "seen"),
    [
        (1, ["failed"]),
        (2, ["quarantined", "failed"]),
        (3, ["queued", "quarantined", "failed"]),
        (4, ["queued", "queued", "quarantined", "failed"]),
    ],
)
def test_the_cap_of_crashes_is_the_job_types(
    own: OwnConnection, holder: int, cap: int, seen: list[str]
) -> None:
    JobType.objects.filter(name=ADD).update(max_crashes=cap)
    id = make()
    states = []
    for _ in seen:
        QueuedJob.objects.update(status="running", worker_id=holder, started_at=ago(1))
        take(own, holder)
        job = queued_job(id)
        states.append(
            ("quarantined" if job.quarantined else "queued") if job else "failed"
        )

    assert states == seen


def test_an_at_most_once_job_is_archived_with_its_outcome_unknown(
    own: OwnConnection, holder: int
) -> None:
    id = make(ONCE)
    claimed(own, holder, 1, lane(ONCE))

    assert take(own, holder) == [Rescued(id, ONCE, "failed")]

    held = archived_job(id)
    assert held is not None
    assert held.status == "failed"
    assert held.error_message == f"outcome unknown: {KILLED}"
    assert (held.crashes, held.attempts) == (1, 1)


def test_an_at_most_once_job_is_archived_also_when_its_worker_was_stopped(
    own: OwnConnection, holder: int
) -> None:
    id = make(ONCE)
    claimed(own, holder, 1, lane(ONCE))

    take(own, holder, crashed=False)

    held = archived_job(id)
    assert held is not None
    assert (held.status, held.crashes) == ("failed", 0)
    assert held.error_class == "jobqueue.WorkerStopped"


def test_a_job_that_was_asked_to_stop_is_cancelled(
    own: OwnConnection, holder: int
) -> None:
    id = make(crashes=2)
    claimed(own, holder)
    cancel.cancel(own, [id], reason="not wanted")

    assert take(own, holder) == [Rescued(id, ADD, "cancelled")]

    held = archived_job(id)
    assert held is not None
    assert (held.status, held.crashes, held.fingerprint) == ("cancelled", 3, None)


def test_a_worker_that_was_stopped_on_purpose_costs_its_jobs_nothing(
    own: OwnConnection, holder: int
) -> None:
    id = make(attempts=2, crashes=2)
    claimed(own, holder)

    assert take(own, holder, crashed=False) == [Rescued(id, ADD, "queued")]

    held = queued_job(id)
    assert held is not None
    assert (held.attempts, held.crashes, held.quarantined) == (2, 2, False)
    assert [(f.end, f.number) for f in Failure.objects.all()] == [("released", 3)]


def test_only_the_jobs_of_the_dead_are_taken(own: OwnConnection, holder: int) -> None:
    make_many(4)
    alive = register(own)
    lost = claimed(own, holder, 2)
    kept = claimed(own, alive, 1)

    rescued = take(own, holder)

    assert {job.id for job in rescued} == {job.id for job in lost}
    assert QueuedJob.objects.get(status="running").id == kept[0].id


def test_a_job_that_is_committing_this_moment_is_left_to_the_next_round(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    make_many(2)
    first, second = claimed(own, holder, 2)
    with open_transaction(other) as transaction:
        done = came_to(first, succeeded())
        assert report(transaction, held_by(holder), done) == set()
        assert [job.id for job in take(own, holder)] == [second.id]

    assert take(own, holder) == []
    assert [job.id for job in ArchivedJob.objects.all()] == [first.id]


@pytest.mark.parametrize("count", [3, 4, 7])
def test_more_than_a_batch_is_rescued_in_several(
    own: OwnConnection, holder: int, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(rescue, "BATCH", 3)
    make_many(count)
    make(ONCE)
    claimed(own, holder, count + 1, lane(), lane(ONCE))

    rescued = take(own, holder)

    assert len({job.id for job in rescued}) == count + 1
    assert not QueuedJob.objects.filter(status="running").exists()
    assert set(QueuedJob.objects.values_list("crashes", flat=True)) == {1}


def test_a_rescue_without_jobs_writes_nothing(own: OwnConnection, holder: int) -> None:
    make()

    assert take(own, holder) == []
    assert take(own) == []
    assert not Failure.objects.exists()


def test_a_rescue_of_a_worker_whose_row_is_gone_still_takes_its_jobs(
    own: OwnConnection, holder: int
) -> None:
    make()
    claimed(own, holder)
    own.run("DELETE FROM jobqueue_worker")

    assert [job.status for job in take(own, holder)] == ["queued"]
    assert [failure.worker for failure in Failure.objects.all()] == [""]


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


def test_a_job_whose_id_is_archived_already_does_not_hold_up_the_rescue(
    own: OwnConnection, holder: int
) -> None:
    id = make(ONCE)
    make()
    claimed(own, holder, 2, lane(), lane(ONCE))
    archive(id=id)

    assert len(take(own, holder)) == 2
    assert uuid.UUID(str(id)) not in QueuedJob.objects.values_list("id", flat=True)
