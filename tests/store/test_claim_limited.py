"""Claim within a limit, and claim of jobs that run alone."""

from __future__ import annotations

import time
from functools import partial

from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.models import JobType, Queue
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import claim, claim_limited, finish
from django_jobqueue.store.queue.claim_quarantined import claim_quarantined
from django_jobqueue.store.queue.finish import Finished, Holder
from tests.store.meanwhile import (
    Background,
    open_transaction,
    together,
    until_waiting,
    waiting,
)
from tests.store.rows import (
    ADD,
    LIMITED,
    ago,
    archived_job,
    ids,
    job_type,
    lane,
    make,
    make_many,
    register,
    running,
)
from tests.support.waiting import eventually

JOBS = 60
LIMIT = 3


def _succeed(db: OwnConnection, worker: int, jobs: list[claim.ClaimedJob]) -> None:
    done = Outcome(verb=Verb.SUCCEED)
    now = time.monotonic()
    finished = [Finished(job.id, job.fence, done, 0.001, now) for job in jobs]
    assert finish.succeed(db, Holder(worker, "host:1", ""), finished, now) == set()


def test_a_limit_is_never_exceeded_by_claimers_at_once(
    claimers: list[tuple[OwnConnection, int]],
) -> None:
    JobType.objects.filter(name=LIMITED).update(concurrency_override=LIMIT)
    made = make_many(JOBS, LIMITED)

    def work(db: OwnConnection, worker: int) -> list[int]:
        seen = []
        while db.fetch("SELECT FROM jobqueue_queuedjob LIMIT 1"):
            jobs = claim_limited.claim_limited(db, worker, [lane(LIMITED)], 5)
            seen.append(running(db, LIMITED))
            if jobs:
                _succeed(db, worker, jobs)
        return seen

    seen = together([partial(work, *one) for one in claimers])
    assert max(max(counts) for counts in seen if counts) == LIMIT
    assert all(archived_job(id) for id in made)


def test_the_operators_limit_wins(own: OwnConnection, holder: int) -> None:
    limits = {  # declared, override: how many start
        (2, None): 2,
        (2, 4): 4,
        (4, 1): 1,
        (2, 0): 0,
        (0, None): 0,
        (2, -1): 6,
        (None, None): 6,
        (None, 3): 3,
    }
    started = {}
    for declared, override in limits:
        name = job_type(
            f"t{declared} {override}",
            concurrency=declared,
            concurrency_override=override,
        )
        make_many(6, name)
        if override == 4:
            assert len(claim_limited.claim_limited(own, holder, [lane(name)], 1)) == 1
        claim_limited.claim_limited(own, holder, [lane(name)], 10)
        started[declared, override] = running(own, name)

    assert started == limits


def test_what_others_run_counts_against_the_limit_and_other_types_do_not(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    make_many(6)
    assert len(claim.claim(own, holder, [lane()], 5)) == 5
    make_many(6, LIMITED)
    second = register(own, "host:2")
    (first,) = claim_limited.claim_limited(own, holder, [lane(LIMITED)], 1)
    assert len(claim_limited.claim_limited(other, second, [lane(LIMITED)], 5)) == 1
    assert claim_limited.claim_limited(other, second, [lane(LIMITED)], 5) == []
    _succeed(own, holder, [first])
    assert len(claim_limited.claim_limited(other, second, [lane(LIMITED)], 5)) == 1
    JobType.objects.filter(name=LIMITED).update(concurrency_override=1)
    assert claim_limited.claim_limited(own, holder, [lane(LIMITED)], 5) == []


def test_a_limit_holds_over_all_lanes(own: OwnConnection, holder: int) -> None:
    urgent = make_many(1, LIMITED, queue="a", priority=9)
    later = make_many(3, LIMITED, queue="b")
    lanes = [lane(LIMITED, "a", 9), lane(LIMITED, "b")]
    jobs = claim_limited.claim_limited(own, holder, lanes, 5)
    assert ids(jobs) == {*urgent, later[0]}


def test_a_limited_claim_never_takes_what_is_not_due_or_expired_or_paused(
    own: OwnConnection, holder: int
) -> None:
    make(LIMITED, run_after=ago(-60))
    make(LIMITED, expires_at=ago(1))
    due = make(LIMITED)
    queue = Queue.objects.create(name="default", paused=True)
    assert claim_limited.claim_limited(own, holder, [lane(LIMITED)], 5) == []
    queue.delete()
    JobType.objects.filter(name=LIMITED).update(paused=True)
    assert claim_limited.claim_limited(own, holder, [lane(LIMITED)], 5) == []
    JobType.objects.filter(name=LIMITED).update(paused=False)
    assert ids(claim_limited.claim_limited(own, holder, [lane(LIMITED)], 5)) == {due}


def test_a_limited_claim_counts_what_another_one_claims_meanwhile(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    first = make_many(6, LIMITED)[0]
    second = register(own, "host:2")
    with open_transaction(other) as transaction:
        transaction.fetch(claim_limited.LOCK_TYPE, {"job_type": LIMITED})
        future = background(
            partial(claim_limited.claim_limited, own, second, [lane(LIMITED)], 5)
        )
        until_waiting()
        transaction.run(
            "UPDATE jobqueue_queuedjob SET status = 'running', worker_id = %(worker)s "
            "WHERE id = %(id)s",
            {"worker": holder, "id": first},
        )
    assert len(future.result(30)) == 1


def test_a_quarantined_job_is_claimed_alone(own: OwnConnection, holder: int) -> None:
    first = make(quarantined=True, run_after=ago(10))
    second = make(quarantined=True, run_after=ago(5))
    make(run_after=ago(20))
    make(quarantined=True, queue="another", run_after=ago(15))
    served = ["default", "c"]
    got = [claim_quarantined(own, holder, [ADD], served) for _ in range(3)]
    assert [[job.id for job in jobs] for jobs in got] == [[first], [second], []]


def test_a_job_that_another_transaction_locked_is_not_waited_for_to_run_it_alone(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    locked = make(quarantined=True, run_after=ago(10))
    free = make(quarantined=True, run_after=ago(5))
    with open_transaction(other) as transaction:
        transaction.lock(locked)
        claiming = background(partial(claim_quarantined, own, holder, [ADD], None))
        eventually(lambda: claiming.done() or waiting())
        assert waiting() == 0
    assert ids(claiming.result(30)) == {free}


def test_a_job_that_runs_alone_keeps_to_the_limit_and_the_pause_of_its_type(
    own: OwnConnection, holder: int
) -> None:
    JobType.objects.filter(name=LIMITED).update(concurrency_override=1)
    make(LIMITED, run_after=ago(10))
    quarantined, hidden = make(LIMITED, quarantined=True), make(quarantined=True)
    names = [LIMITED, ADD]
    (first,) = claim_limited.claim_limited(own, holder, [lane(LIMITED)], 5)
    # What may not run does not hide another one.
    assert ids(claim_quarantined(own, holder, names, None)) == {hidden}
    assert claim_quarantined(own, holder, names, None) == []
    _succeed(own, holder, [first])
    JobType.objects.filter(name=LIMITED).update(paused=True)
    assert claim_quarantined(own, holder, names, None) == []
    JobType.objects.filter(name=LIMITED).update(paused=False)
    assert ids(claim_quarantined(own, holder, names, None)) == {quarantined}
