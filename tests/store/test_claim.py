"""Claim: what is given, in what order, and what never is."""

from __future__ import annotations

from functools import partial

import pytest
from django.utils import timezone

from django_jobqueue.models import JobType, Queue, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import claim
from tests.store.meanwhile import open_transaction, together
from tests.store.rows import (
    ADD,
    LIMITED,
    ago,
    archived_job,
    claimed,
    ids,
    job_type,
    lane,
    make,
    make_many,
    queued_job,
    register,
)


def test_a_claimed_job_runs_in_the_name_of_its_worker(
    own: OwnConnection, holder: int
) -> None:
    id = make(data={"a": 1}, run_after=ago(10))
    before = timezone.now()

    (job,) = claimed(own, holder)

    row = queued_job(id)
    assert row is not None
    assert (row.status, row.worker_id, row.fence, row.attempts) == (
        "running",
        holder,
        1,
        1,
    )
    assert row.started_at is not None
    assert before <= row.started_at <= timezone.now()
    assert (job.id, job.job_type, job.queue, job.priority) == (id, ADD, "default", 0)
    assert (job.data, job.fence, job.attempts, job.crashes) == ('{"a": 1}', 1, 1, 0)
    assert job.lane == lane().lane


def test_a_claim_tells_how_long_a_job_waited_and_when_it_expires(
    own: OwnConnection, holder: int
) -> None:
    make(run_after=ago(100), expires_at=ago(-100), max_attempts=9, crashes=2)

    (job,) = claimed(own, holder)

    assert 100 <= job.waited < 130
    assert job.expires_in is not None
    assert 70 < job.expires_in <= 100
    assert (job.max_attempts, job.crashes) == (9, 2)


def test_a_job_that_never_expires_says_so(own: OwnConnection, holder: int) -> None:
    make()

    assert claimed(own, holder)[0].expires_in is None


def test_each_claim_of_a_job_has_a_new_fence_and_counts_an_attempt(
    own: OwnConnection, holder: int
) -> None:
    id = make()
    seen = []
    for _ in range(3):
        (job,) = claimed(own, holder)
        seen.append((job.fence, job.attempts))
        QueuedJob.objects.filter(id=id).update(status="queued", worker_id=None)

    assert seen == [(1, 1), (2, 2), (3, 3)]


def test_a_lane_is_claimed_in_the_order_of_run_after(
    own: OwnConnection, holder: int
) -> None:
    last, first, second = (
        make(run_after=ago(1)),
        make(run_after=ago(9)),
        make(run_after=ago(5)),
    )

    order = [claimed(own, holder)[0].id for _ in range(3)]

    assert order == [first, second, last]


def test_jobs_due_at_the_same_moment_are_claimed_in_the_order_of_their_ids(
    own: OwnConnection, holder: int
) -> None:
    moment = ago(1)
    made = [make(run_after=moment) for _ in range(5)]

    order = [claimed(own, holder)[0].id for _ in range(5)]

    assert order == sorted(made)


def test_a_lane_is_exhausted_before_the_next_one_is_touched(
    own: OwnConnection, holder: int
) -> None:
    urgent = make_many(5, queue="a", priority=10, run_after=ago(1))
    old = make_many(5, queue="b", run_after=ago(1_000))
    lanes = [lane(queue="a", priority=10), lane(queue="b")]

    got = [claim.claim(own, holder, lanes, 3) for _ in range(4)]

    assert [len(jobs) for jobs in got] == [3, 3, 3, 1]
    assert ids(got[0]) < set(urgent)
    assert ids(got[1]) == set(urgent[3:]) | set(old[:1])
    assert ids(got[2] + got[3]) == set(old[1:])


def test_only_the_lanes_that_were_asked_for_are_claimed(
    own: OwnConnection, holder: int
) -> None:
    wanted = make(queue="a", priority=1)
    for queue, priority, name in [
        ("b", 1, ADD),
        ("a", 2, ADD),
        ("a", 1, "tests.sample.aadd"),
    ]:
        make(name, queue=queue, priority=priority)

    jobs = claim.claim(own, holder, [lane(queue="a", priority=1)], 10)

    assert ids(jobs) == {wanted}


def test_no_lanes_give_no_jobs(own: OwnConnection, holder: int) -> None:
    make()

    assert claim.claim(own, holder, [], 10) == []


def test_a_claim_of_nothing_takes_nothing(own: OwnConnection, holder: int) -> None:
    make()

    assert claim.claim(own, holder, [lane()], 0) == []


def test_a_job_of_the_future_is_never_claimed(own: OwnConnection, holder: int) -> None:
    make(run_after=ago(-3_600))
    due = make(run_after=ago(0))

    assert ids(claim.claim(own, holder, [lane()], 10)) == {due}


def test_an_expired_job_is_never_claimed(own: OwnConnection, holder: int) -> None:
    expired = make(run_after=ago(10), expires_at=ago(1))
    alive = make(run_after=ago(5), expires_at=ago(-60))

    assert ids(claim.claim(own, holder, [lane()], 10)) == {alive}
    assert queued_job(expired) is not None
    assert archived_job(expired) is None  # that is the expirer's


def test_a_lane_of_an_unknown_job_type_gives_nothing(
    own: OwnConnection, holder: int
) -> None:
    due = make()

    jobs = claim.claim(own, holder, [lane("nobody.knows"), lane()], 10)

    assert ids(jobs) == {due}


def test_a_paused_job_type_is_not_claimed(own: OwnConnection, holder: int) -> None:
    make()
    other = make("tests.sample.aadd")
    JobType.objects.filter(name=ADD).update(paused=True)

    jobs = claim.claim(own, holder, [lane(), lane("tests.sample.aadd")], 10)

    assert ids(jobs) == {other}


def test_a_paused_queue_is_not_claimed(own: OwnConnection, holder: int) -> None:
    Queue.objects.create(name="a", paused=True)
    Queue.objects.create(name="b", paused=False)
    make(queue="a")
    open = {make(queue="b"), make(queue="without-a-row")}

    lanes = [lane(queue=name) for name in ("a", "b", "without-a-row")]

    assert ids(claim.claim(own, holder, lanes, 10)) == open


@pytest.mark.parametrize("of", ["job type", "queue"])
def test_a_pause_ends_by_itself_at_resume_at(
    own: OwnConnection, holder: int, of: str
) -> None:
    id = make()
    rows = JobType.objects.filter(name=ADD)
    if of == "queue":
        rows = Queue.objects.filter(name=Queue.objects.create(name="default").name)

    rows.update(paused=True, resume_at=ago(-60))
    assert claim.claim(own, holder, [lane()], 10) == []
    rows.update(resume_at=ago(1))
    assert ids(claim.claim(own, holder, [lane()], 10)) == {id}


@pytest.mark.parametrize(
    ("declared", "override", "claimable"),
    [
        (None, None, True),
        (None, -1, True),
        (2, None, False),
        (2, -1, True),
        (None, 2, False),
        (0, None, False),
        (None, 0, False),
    ],
)
def test_a_limited_job_type_is_not_claimed_without_its_limit(
    own: OwnConnection,
    holder: int,
    declared: int | None,
    override: int | None,
    claimable: bool,
) -> None:
    job_type("t", concurrency=declared, concurrency_override=override)
    make("t")

    assert len(claim.claim(own, holder, [lane("t")], 10)) == claimable


def test_a_limited_job_type_does_not_hold_up_the_others(
    own: OwnConnection, holder: int
) -> None:
    make(LIMITED, run_after=ago(100))
    due = make()

    assert ids(claim.claim(own, holder, [lane(LIMITED), lane()], 10)) == {due}


def test_a_job_that_runs_alone_is_left_out(own: OwnConnection, holder: int) -> None:
    make(quarantined=True)

    assert claim.claim(own, holder, [lane()], 10) == []


def test_a_running_job_is_not_claimed_again(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    make()
    claimed(own, holder)

    assert claim.claim(other, register(own), [lane()], 10) == []


def test_a_row_that_another_transaction_locked_is_skipped(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    locked, free = make(run_after=ago(10)), make(run_after=ago(5))
    with open_transaction(other) as transaction:
        transaction.fetch(
            "SELECT id FROM jobqueue_queuedjob WHERE id = %(id)s FOR UPDATE",
            {"id": locked},
        )
        assert ids(claim.claim(own, holder, [lane()], 10)) == {free}

    assert ids(claim.claim(own, holder, [lane()], 10)) == {locked}


def test_a_job_whose_insert_is_not_committed_is_not_claimed(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    with open_transaction(other) as transaction:
        transaction.run(
            "INSERT INTO jobqueue_queuedjob (job_type) VALUES (%(job_type)s)",
            {"job_type": ADD},
        )
        assert claim.claim(own, holder, [lane()], 10) == []

    assert len(claim.claim(own, holder, [lane()], 10)) == 1


def test_a_claim_locks_no_more_rows_than_it_takes(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    make_many(20, queue="a")
    make_many(20, queue="b")
    lanes = [lane(queue="a"), lane(queue="b")]
    with open_transaction(other) as transaction:
        assert len(claim.claim(transaction, holder, lanes, 3)) == 3
        rest = own.fetch("SELECT id FROM jobqueue_queuedjob FOR UPDATE SKIP LOCKED")

    assert len(rest) == 37


def test_a_claim_that_is_rolled_back_leaves_its_jobs_queued(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    id = make()
    with other.raw() as connection, connection.transaction(force_rollback=True):
        connection.execute("UPDATE jobqueue_queuedjob SET status = 'running'")

    assert ids(claim.claim(own, holder, [lane()], 10)) == {id}


def test_two_claimers_at_once_never_take_the_same_job_nor_more_than_they_asked_for(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    made = make_many(150, queue="a") + make_many(150, queue="b")
    lanes = [lane(queue="a"), lane(queue="b")]

    def take(db: OwnConnection, worker: int) -> list[int]:
        sizes = []
        while jobs := claim.claim(db, worker, lanes, 7):
            sizes.append(len(jobs))
        return sizes

    second = register(own, "host:2")
    sizes = together([partial(take, own, holder), partial(take, other, second)])

    assert max(sizes[0] + sizes[1]) <= 7
    assert sum(sizes[0] + sizes[1]) == len(made)
    attempts = QueuedJob.objects.values_list("attempts", flat=True)
    assert set(attempts) == {1}
    counts = [QueuedJob.objects.filter(worker_id=w).count() for w in (holder, second)]
    assert counts == [sum(sizes[0]), sum(sizes[1])]
