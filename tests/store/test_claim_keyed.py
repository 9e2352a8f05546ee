"""Claim within a limit of each key."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.models import JobType, KeyLimit, Queue, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import claim, claim_keyed, finish
from django_jobqueue.store.queue.claim_keyed import KeyedLane
from django_jobqueue.store.queue.claim_quarantined import (
    claim_quarantined,
    next_quarantined,
)
from django_jobqueue.store.queue.finish import Finished, Holder
from django_jobqueue.store.queue.lanes import START
from django_jobqueue.store.rows import ClaimedJob, Lane
from tests.sample.jobs import write_keyed
from tests.store.meanwhile import Background, open_transaction, together, until_waiting
from tests.store.rows import (
    KEYED,
    ago,
    archived_job,
    enqueue_keys,
    lane,
    make,
    register,
)

LANE = KeyedLane(
    lane=Lane("default", 0, KEYED), limit_name=KEYED, locks_limit=True, locks_type=False
)
HIGHEST = """
SELECT max(running) FROM (SELECT count(*) AS running FROM jobqueue_queuedjob
 WHERE status = 'running' GROUP BY limit_key) AS of_keys
"""


def take(
    db: OwnConnection, worker: int, limit: int = 10, **changes: Any
) -> list[ClaimedJob]:
    """Claim from the lane of these jobs."""
    values = LANE._asdict()
    return claim_keyed.claim_keyed(
        db, worker, KeyedLane(**{**values, **changes}), limit
    )


def keys(jobs: list[ClaimedJob]) -> str:
    """The keys of these jobs, in the order in which they were due."""
    jobs = sorted(jobs, key=lambda job: job.due)
    return "".join(str(job.limit_key).removeprefix(f"{KEYED} ") for job in jobs)


def succeed(db: OwnConnection, worker: int, jobs: list[ClaimedJob]) -> None:
    """Finish these."""
    now = time.monotonic()
    done = Outcome(verb=Verb.SUCCEED)
    finished = [Finished(job.id, job.fence, done, 0.001, now) for job in jobs]
    assert finish.succeed(db, Holder(worker, "host:1", ""), finished, now) == set()


def test_no_claimer_among_many_exceeds_the_limit_of_a_key(
    claimers: list[tuple[OwnConnection, int]],
) -> None:
    enqueue_keys("aaaaaaaaaaaaaaaaaabcdefgh" * 2)
    made = list(QueuedJob.objects.values_list("id", flat=True))

    def work(db: OwnConnection, worker: int) -> list[int]:
        highest, each = [], 1
        while db.fetch("SELECT FROM jobqueue_queuedjob LIMIT 1"):
            each = 3 - each
            jobs = take(db, worker, 5, each=each)
            highest.append(db.fetch(HIGHEST)[0][0] or 0)
            if jobs:
                succeed(db, worker, jobs)
        return highest

    seen = together([partial(work, *one) for one in claimers])
    assert max(max(counts) for counts in seen if counts) == 2
    assert all(archived_job(id) for id in made)


def test_a_claim_waits_for_the_lock_of_its_limit_and_sees_what_was_claimed_meanwhile(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    KeyLimit.objects.update(concurrency=1)
    enqueue_keys("aa")
    second = register(own, "host:2")
    with open_transaction(other) as transaction:
        transaction.fetch(claim_keyed.LOCK_LIMIT, {"limit_name": KEYED})
        write_keyed.enqueue("/dev/null", "b")  # which does not wait
        claiming = background(partial(take, own, second))
        until_waiting()
        transaction.run(
            "UPDATE jobqueue_queuedjob SET status = 'running', worker_id = %(worker)s"
            " WHERE id = (SELECT max(id::text)::uuid FROM jobqueue_queuedjob"
            "             WHERE limit_key LIKE '%% a')",
            {"worker": holder},
        )
    assert keys(claiming.result(30)) == "b"
    assert own.fetch(HIGHEST) == [(1,)]


def test_each_key_has_its_codes_or_operators_limit(
    own: OwnConnection, holder: int
) -> None:
    limits = {  # declared, override: which start
        (1, None): "abc",
        (2, None): "aabc",
        (2, 1): "abc",
        (1, 3): "aaabc",
        (1, 0): "",
        (1, -1): "aaaabc",
        (None, None): "aaaabc",
    }
    started = {}
    for declared, override in limits:
        KeyLimit.objects.update(concurrency=declared, concurrency_override=override)
        enqueue_keys("aaaabc")
        started[declared, override] = keys(take(own, holder, each=10))
        QueuedJob.objects.all().delete()
    assert started == limits


def test_a_claim_takes_one_job_of_each_key_in_turn_and_begins_where_it_is_told(
    own: OwnConnection, holder: int
) -> None:
    enqueue_keys("aaabbc")
    first = take(own, holder, 2)
    assert keys(first) == "ab"
    assert keys(take(own, holder, 2, first=f"{KEYED} b\x01")) == "ac"
    assert keys(take(own, holder, 9, first=f"{KEYED} b")) == "b"
    assert take(own, holder) == []  # two of each run, or none waits
    succeed(own, holder, [job for job in first if str(job.limit_key)[-1] == "a"])
    assert keys(take(own, holder, each=2)) == "a"  # what ended makes room


def test_a_claim_by_key_leaves_the_same_alone(own: OwnConnection, holder: int) -> None:
    enqueue_keys("x", run_after=ago(-86_400))
    enqueue_keys("x", expires_at=ago(1))
    enqueue_keys("aabbcc")
    types = JobType.objects.filter(name=KEYED)
    types.update(paused=True)
    assert take(own, holder) == []
    types.update(paused=False)
    queue = Queue.objects.create(name="default", paused=True)
    assert take(own, holder) == []
    queue.delete()
    assert claim.claim(own, holder, [lane(KEYED)], 5) == []
    assert take(own, holder, locks_limit=False) == []  # it knows of no limit
    types.update(concurrency_override=5)
    assert take(own, holder) == []  # nor of the type's
    types.update(concurrency_override=0)
    assert take(own, holder, locks_type=True) == []

    types.update(concurrency_override=3)
    assert keys(take(own, holder, each=2, locks_type=True)) == "aab"
    assert take(own, holder, each=2, locks_type=True) == []


def test_types_that_share_a_limit_add_up(own: OwnConnection, holder: int) -> None:
    rule = {"name": KEYED, "by": ["key"], "defaults": {}}
    JobType.objects.create(name="other", limit_name=KEYED, limit_rule=rule)
    enqueue_keys("aa")
    make("other", data={"key": "a"})
    make("other", data={"key": "b"})
    assert len(take(own, holder, each=2)) == 2
    jobs = take(own, holder, lane=Lane("default", 0, "other"))
    assert keys(jobs) == "b"


def test_a_job_without_a_key_gets_it_from_its_data(
    own: OwnConnection, holder: int
) -> None:
    enqueue_keys("abc")
    QueuedJob.objects.update(limit_key=None)
    assert take(own, holder) == []
    assert claim_keyed.adopt(own, LANE.lane, START) == (3, None)
    assert claim_keyed.adopt(own, LANE.lane, START) == (0, None)
    assert keys(take(own, holder)) == "abc"


def test_jobs_are_adopted_a_part_of_the_lane_at_a_time(own: OwnConnection) -> None:
    own.run(
        "INSERT INTO jobqueue_queuedjob (job_type, queue, priority, data)"
        " SELECT %(type)s, 'default', 0, jsonb_build_object('key', n)"
        " FROM generate_series(1, %(count)s) AS n",
        {"type": KEYED, "count": claim_keyed.ADOPTED + 1},
    )
    adopted, since = claim_keyed.adopt(own, LANE.lane, START)
    assert adopted == claim_keyed.ADOPTED
    assert since is not None
    assert claim_keyed.adopt(own, LANE.lane, since) == (1, None)


def test_a_quarantined_job_counts_against_its_key_and_waits_for_it(
    own: OwnConnection, holder: int
) -> None:
    KeyLimit.objects.update(concurrency=1)
    enqueue_keys("a")
    enqueue_keys("ab", quarantined=True)
    QueuedJob.objects.filter(quarantined=True).update(limit_key=None)
    (first,) = take(own, holder)

    (alone,) = claim_quarantined(own, holder, [KEYED], None)
    assert keys([alone]) == "b"
    assert claim_quarantined(own, holder, [KEYED], None) == []
    waits = next_quarantined(own, [KEYED], None)
    assert (waits.due_in, waits.is_held_back) == (None, True)
    succeed(own, holder, [first])
    assert next_quarantined(own, [KEYED], None).due_in == 0
    (alone,) = claim_quarantined(own, holder, [KEYED], None)
    enqueue_keys("a")

    assert keys([alone]) == "a"
    assert take(own, holder) == []
