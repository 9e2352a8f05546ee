"""Claim: what is given, in what order, from which mark on, and what never is."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.utils import timezone

from django_jobqueue.models import JobType, Queue, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import claim
from django_jobqueue.store.queue.lanes import FRESH, START, LaneMark
from tests.store.meanwhile import open_transaction, together
from tests.store.rows import (
    ADD,
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


def test_a_claimed_job_runs_for_its_worker(own: OwnConnection, holder: int) -> None:
    id = make(
        data={"a": 1},
        run_after=ago(100),
        expires_at=ago(-100),
        max_attempts=9,
        crashes=2,
    )
    for number in (1, 2):  # each claim has a new fence and counts an attempt
        before = timezone.now()
        (job,) = claimed(own, holder)
        row = QueuedJob.objects.get(id=id)
        changed = (row.status, row.worker_id, row.fence, row.attempts)
        assert changed == ("running", holder, number, number)
        assert row.started_at is not None
        assert before <= row.started_at <= timezone.now()
        assert (job.fence, job.attempts) == (number, number)
        QueuedJob.objects.update(status="queued", worker_id=None)
    assert (job.id, job.job_type, job.queue, job.priority) == (id, ADD, "default", 0)
    assert (job.data, job.max_attempts, job.crashes) == ('{"a": 1}', 9, 2)
    assert (job.lane, 100 <= job.waited < 130) == (lane().lane, True)
    assert 70 < (job.expires_in or 0) <= 100
    QueuedJob.objects.update(expires_at=None)
    assert claimed(own, holder)[0].expires_in is None


def test_a_lane_is_claimed_in_the_order_of_run_after_and_then_of_ids(
    own: OwnConnection, holder: int
) -> None:
    last, first = make(run_after=ago(1)), make(run_after=ago(9))
    moment = ago(5)
    between = sorted(make(run_after=moment) for _ in range(4))
    order = [claimed(own, holder)[0].id for _ in range(6)]
    assert order == [first, *between, last]


def test_a_lane_is_exhausted_before_the_next(own: OwnConnection, holder: int) -> None:
    urgent = make_many(5, queue="a", priority=10, run_after=ago(1))
    old = make_many(5, queue="b", run_after=ago(1_000))
    lanes = [lane(queue="a", priority=10), lane(queue="b")]
    got = [claim.claim(own, holder, lanes, 3) for _ in range(4)]
    assert [len(jobs) for jobs in got] == [3, 3, 3, 1]
    assert ids(got[0]) < set(urgent)
    assert ids(got[1]) == set(urgent[3:]) | set(old[:1])
    assert ids(got[2] + got[3]) == set(old[1:])


def test_only_the_lanes_asked_for_are_claimed(own: OwnConnection, holder: int) -> None:
    wanted = make(queue="a", priority=1)
    make(queue="b", priority=1)
    make(queue="a", priority=2)
    make("tests.sample.aadd", queue="a", priority=1)
    asked = [lane("nobody.knows"), lane(queue="a", priority=1)]
    assert claim.claim(own, holder, [], 10) == []
    assert claim.claim(own, holder, asked, 0) == []
    assert ids(claim.claim(own, holder, asked, 10)) == {wanted}


def test_a_job_is_not_claimed_before_its_time_nor_after_it_nor_twice(
    own: OwnConnection, holder: int
) -> None:
    make(run_after=ago(-3_600))
    make(quarantined=True)
    expired = make(run_after=ago(10), expires_at=ago(1))
    due = {make(run_after=ago(5), expires_at=ago(-60)), make(run_after=ago(0))}
    assert ids(claim.claim(own, holder, [lane()], 10)) == due
    assert claim.claim(own, register(own), [lane()], 10) == []
    assert queued_job(expired) is not None  # to archive it is the expirer's
    assert archived_job(expired) is None


def test_a_paused_queue_or_job_type_is_not_claimed_until_its_pause_ends(
    own: OwnConnection, holder: int
) -> None:
    other = "tests.sample.aadd"
    Queue.objects.create(name="a", paused=True)
    Queue.objects.create(name="b")
    JobType.objects.filter(name=other).update(paused=True)
    of_queue, of_type = make(queue="a"), make(other)
    free = {make(queue="b"), make(queue="without-a-row")}
    lanes = [lane(queue=name) for name in ("a", "b", "without-a-row")]
    lanes.append(lane(other))
    assert ids(claim.claim(own, holder, lanes, 10)) == free
    for rows in (Queue.objects.filter(name="a"), JobType.objects.filter(name=other)):
        rows.update(resume_at=ago(-60))
    assert claim.claim(own, holder, lanes, 10) == []
    Queue.objects.update(resume_at=ago(1))
    assert ids(claim.claim(own, holder, lanes, 10)) == {of_queue}
    JobType.objects.filter(name=other).update(resume_at=ago(1))
    assert ids(claim.claim(own, holder, lanes, 10)) == {of_type}


def test_a_limited_type_is_not_claimed_without_it(
    own: OwnConnection, holder: int
) -> None:
    limits = {  # declared, override: whether a claim that knows of none may take it
        (None, None): True,
        (None, -1): True,
        (2, None): False,
        (2, -1): True,
        (None, 2): False,
        (0, None): False,
        (None, 0): False,
    }
    for number, (declared, override) in enumerate(limits):
        make(
            job_type(f"t{number}", concurrency=declared, concurrency_override=override)
        )
    lanes = [lane(f"t{number}") for number in range(len(limits))]

    got = {job.job_type for job in claim.claim(own, holder, lanes, 10)}

    assert [one.lane.job_type in got for one in lanes] == [*limits.values()]


def test_a_claim_locks_what_it_takes_and_skips_what_another_locked(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    made = make_many(20, queue="a") + make_many(20, queue="b")
    lanes = [lane(queue="a"), lane(queue="b")]
    with open_transaction(other) as transaction:
        first = claim.claim(transaction, holder, lanes, 3)
        assert ids(first) == set(made[:3])
        assert ids(claim.claim(own, holder, lanes, 2)) == set(made[3:5])
        rest = own.fetch("SELECT id FROM jobqueue_queuedjob FOR UPDATE SKIP LOCKED")
    assert len(rest) == 37


def test_two_claimers_at_once_never_take_the_same_job_nor_more_than_they_asked_for(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    made = make_many(60, queue="a") + make_many(60, queue="b")
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


HIGHEST = UUID(int=2**128 - 1)


def from_mark(seconds_ago: float, id: UUID = HIGHEST) -> LaneMark:
    """The lane of ADD, from this position on."""
    return LaneMark(lane().lane, (ago(seconds_ago), id))


def test_a_claim_starts_at_a_moment_and_an_id(own: OwnConnection, holder: int) -> None:
    make(run_after=ago(100))
    moment = ago(50)
    _, second, third = sorted(make(run_after=moment) for _ in range(3))
    made = make(run_after=ago(10))
    mark = LaneMark(lane().lane, (moment, second))
    assert ids(claim.claim(own, holder, [mark], 10)) == {second, third, made}


def test_the_start_is_before_all_that_python_knows(
    own: OwnConnection, holder: int
) -> None:
    made = {make(run_after="0001-01-03T00:00:00Z"), make(run_after=ago(50))}
    assert lane().mark == START
    assert ids(claim.claim(own, holder, [lane()], 10)) == made


def test_a_young_job_is_seen_whatever_the_mark(own: OwnConnection, holder: int) -> None:
    for mark_at in (0, -3_600):
        make(run_after=ago(FRESH + 10))
        young = make(run_after=ago(0))
        assert ids(claim.claim(own, holder, [from_mark(mark_at)], 10)) == {young}


def test_a_claim_looks_back_as_far_as_it_is_told_and_only_for_young_jobs(
    own: OwnConnection, holder: int
) -> None:
    moment = ago(1)
    _, near, last = sorted(make(run_after=moment) for _ in range(3))
    mark = LaneMark(lane().lane, (moment, last), back=(moment, near))
    assert ids(claim.claim(own, holder, [mark], 10)) == {near, last}
    make(queue="a", run_after=ago(100))
    seen = make(queue="a", run_after=ago(50))
    mark = LaneMark(lane(ADD, "a").lane, (ago(75), HIGHEST), back=(ago(200), HIGHEST))
    assert ids(claim.claim(own, holder, [mark], 10)) == {seen}


def test_the_position_of_the_last_claim_is_a_mark_that_hides_only_what_was_claimed(
    own: OwnConnection, holder: int
) -> None:
    for seconds in (30, 20, 10):
        make(run_after=ago(seconds))
    (first,) = claimed(own, holder)
    mark = LaneMark(lane().lane, (first.run_after, first.id))
    assert len(claim.claim(own, holder, [mark], 10)) == 2


def test_each_lane_has_a_mark_of_its_own(own: OwnConnection, holder: int) -> None:
    make(queue="a", run_after=ago(100))
    seen = make(queue="b", run_after=ago(100))
    mark = LaneMark(lane(ADD, "a").lane, (ago(50), HIGHEST))
    assert ids(claim.claim(own, holder, [mark, lane(queue="b")], 10)) == {seen}
