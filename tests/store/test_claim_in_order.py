"""Claim where the order of each key is strict: a retry holds back what follows it."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

import pytest

from django_jobqueue import cancel, operations
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.domain.states import AttemptEnd
from django_jobqueue.models import JobType, KeyLimit, KeyOverride, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import finish, finish_unsuccessful, release, rescue
from django_jobqueue.store.queue.claim_keyed import (
    LOCK_LIMIT,
    KeyedLane,
    claim_keyed,
    next_retry,
)
from django_jobqueue.store.queue.claim_keyed_rated import claim_keyed_rated
from django_jobqueue.store.queue.claim_quarantined import claim_quarantined
from django_jobqueue.store.queue.claim_weighed import claim_keyed_weighed
from django_jobqueue.store.queue.finish import Finished, Holder
from django_jobqueue.store.rows import ClaimedJob, Lane
from tests.store.meanwhile import Background, open_transaction, until_waiting
from tests.store.outcomes import failed, retried, succeeded
from tests.store.rows import ADD, KEYED, ago, make, register

Take = Callable[..., list[ClaimedJob]]
FAST: Final = "1000000/1s burst 400000"
RULE: Final = {"by": "size", "default": 1, "of_type": False, "of_key": True}
SNOOZED: Final = Outcome(
    verb=Verb.SNOOZE, end=AttemptEnd.SNOOZED, wait=timedelta(minutes=1)
)


def lane_of(job_type: str = KEYED, queue: str = "default", **changes: Any) -> KeyedLane:
    """A lane of jobs of this type."""
    values: dict[str, Any] = {
        "lane": Lane(queue, 0, job_type),
        "limit_name": KEYED,
        "locks_limit": True,
        "locks_type": True,
        "strict": True,
    }
    return KeyedLane(**{**values, **changes})


def take_plain(db: OwnConnection, worker: int, keyed: KeyedLane) -> list[ClaimedJob]:
    """Claim from a lane without rates."""
    return claim_keyed(db, worker, keyed, 10)


def take_rated(db: OwnConnection, worker: int, keyed: KeyedLane) -> list[ClaimedJob]:
    """The same where the keys have a rate."""
    return claim_keyed_rated(db, worker, keyed, 10)[0]


def take_weighed(db: OwnConnection, worker: int, keyed: KeyedLane) -> list[ClaimedJob]:
    """The same where the rate counts weights."""
    return claim_keyed_weighed(db, worker, keyed, 10)[0]


@pytest.fixture(params=["plain", "rated", "weighed"])
def take(request: pytest.FixtureRequest, own: OwnConnection) -> Take:
    """How jobs are claimed, whose limit is strict."""
    KeyLimit.objects.update(concurrency=1, strict=True)
    if request.param == "plain":
        return take_plain
    KeyLimit.objects.update(rate=FAST)
    if request.param == "rated":
        return take_rated
    JobType.objects.filter(pk=KEYED).update(weight_rule=RULE)
    return take_weighed


def enqueue(words: str, job_type: str = KEYED, **columns: Any) -> list[UUID]:
    """A job for each word, such as "a1", in this order; its letter is the key."""
    made = []
    for number, word in enumerate(words.split()):
        due = {"run_after": ago(60 - number / 1_000), **columns}
        data = {"journal": "/dev/null", "key": word[0], "word": word}
        made.append(make(job_type, data=data, limit_key=f"{KEYED} {word[0]}", **due))
    return made


def words(jobs: list[ClaimedJob]) -> list[str]:
    """Which these are."""
    found = QueuedJob.objects.filter(id__in=[job.id for job in jobs])
    return sorted(found.values_list("data__word", flat=True))


def end(db: OwnConnection, worker: int, job: ClaimedJob, outcome: Outcome) -> None:
    """An attempt came to this."""
    now, holder = time.monotonic(), Holder(worker, "host:1", "")
    verb = finish.succeed if outcome.verb is Verb.SUCCEED else finish_unsuccessful.end
    finished = [Finished(job.id, job.fence, outcome, 0.001, now)]
    assert verb(db, holder, finished, now) == set()


def become_due(*words: str) -> None:
    """The time of these has come."""
    rows = QueuedJob.objects.filter(data__word__in=words)
    assert rows.update(run_after=ago(0.001)) == len(words)


def test_a_key_waits_for_the_retry_of_its_first_job(
    own: OwnConnection, holder: int, take: Take
) -> None:
    enqueue("a1 a2 b1 a3 b2")
    keyed = lane_of()
    first = take(own, holder, keyed)
    assert words(first) == ["a1", "b1"]
    a1, b1 = sorted(first, key=lambda job: str(job.limit_key))

    end(own, holder, a1, retried(60))
    end(own, holder, b1, succeeded())
    (b2,) = take(own, holder, keyed)
    assert words([b2]) == ["b2"]
    assert 55 < (next_retry(own, KEYED) or 0) <= 60

    become_due("a1")
    assert next_retry(own, KEYED) is None
    again = take(own, holder, keyed)
    assert words(again) == ["a1"]
    assert take(own, holder, keyed) == []

    end(own, holder, again[0], failed())
    assert words(take(own, holder, keyed)) == ["a2"]


def test_a_snooze_and_a_rescue_and_its_quarantine_hold_the_key_as_well(
    own: OwnConnection, holder: int, take: Take
) -> None:
    enqueue("a1 a2")
    (a1,) = take(own, holder, lane_of())
    end(own, holder, a1, SNOOZED)
    assert take(own, holder, lane_of()) == []
    become_due("a1")
    assert words(take(own, holder, lane_of())) == ["a1"]
    rescue.rescue(own, [holder], crashed=True, reason="it died")
    second = register(own, "host:2")
    assert words(take(own, second, lane_of())) == ["a1"]
    rescue.rescue(own, [second], crashed=True, reason="it died")
    assert QueuedJob.objects.get(pk=a1.id).quarantined
    third = register(own, "host:3")
    assert take(own, third, lane_of()) == []
    assert words(claim_quarantined(own, third, [KEYED], None)) == ["a1"]
    assert take(own, third, lane_of()) == []


def test_a_retry_holds_its_key_in_other_lanes_of_the_limit(
    own: OwnConnection, holder: int, take: Take
) -> None:
    JobType.objects.filter(pk=ADD).update(
        limit_name=KEYED, limit_rule={"name": KEYED, "by": ["key"], "defaults": {}}
    )
    enqueue("a1")
    enqueue("a2", ADD)
    enqueue("a3", queue="slow")
    (a1,) = take(own, holder, lane_of())
    others = lane_of(ADD), lane_of(queue="slow")
    assert [take(own, holder, one) for one in others] == [[], []]
    end(own, holder, a1, retried(60))
    assert [take(own, holder, one) for one in (lane_of(), *others)] == [[], [], []]
    cancel(a1.id)
    (a2,) = take(own, holder, others[0])
    assert words([a2]) == ["a2"]
    end(own, holder, a2, succeeded())
    assert words(take(own, holder, others[1])) == ["a3"]


def test_no_override_lets_two_run(own: OwnConnection, holder: int, take: Take) -> None:
    enqueue("a1 a2 a3 b1 b2")
    KeyLimit.objects.update(concurrency_override=-1)
    KeyOverride.objects.create(limit_key=f"{KEYED} b", concurrency=7, share=5)
    keyed = lane_of(each=4, has_shares=True)
    assert words(take(own, holder, keyed)) == ["a1", "b1"]
    assert take(own, holder, keyed) == []
    KeyLimit.objects.update(concurrency_override=0)
    KeyOverride.objects.all().delete()
    QueuedJob.objects.update(status="queued", worker_id=None)
    assert take(own, holder, keyed) == []


def test_who_does_not_know_that_the_order_is_strict_claims_nothing(
    own: OwnConnection, holder: int, take: Take
) -> None:
    enqueue("a1 b1")
    for each in (1, 3):
        assert take(own, holder, lane_of(strict=False, each=each)) == []
    KeyLimit.objects.update(strict=False)
    assert words(take(own, holder, lane_of(strict=False))) == ["a1", "b1"]


def test_a_head_that_is_locked_or_expired_is_not_overtaken_unless_it_never_started(
    own: OwnConnection, other: OwnConnection, holder: int, take: Take
) -> None:
    a1, _, b1, _ = enqueue("a1 a2 b1 b2")
    with open_transaction(other) as transaction:
        lock = "SELECT FROM jobqueue_queuedjob WHERE limit_key LIKE '%% a' FOR UPDATE"
        transaction.fetch(lock)
        QueuedJob.objects.filter(pk=b1).update(run_after=ago(-60))
        assert words(take(own, holder, lane_of())) == ["b2"]
    (head,) = take(own, holder, lane_of())
    assert head.id == a1
    end(own, holder, head, retried(60))
    become_due("a1")
    QueuedJob.objects.filter(pk=a1).update(expires_at=ago(0.001))
    assert take(own, holder, lane_of()) == []
    cancel(a1)
    assert words(take(own, holder, lane_of())) == ["a2"]


def test_a_claim_that_waited_sees_what_became_of_the_first_job(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    KeyLimit.objects.update(concurrency=1, strict=True)
    enqueue("a1 a2")
    (a1,) = take_plain(own, holder, lane_of())
    second = register(own, "host:2")
    with open_transaction(other) as transaction:
        transaction.fetch(LOCK_LIMIT, {"limit_name": KEYED})
        claiming = background(partial(take_plain, own, second, lane_of()))
        until_waiting()
        transaction.run(
            "UPDATE jobqueue_queuedjob SET status = 'queued', worker_id = NULL,"
            " run_after = clock_timestamp() + interval '1 hour' WHERE id = %(id)s",
            {"id": a1.id},
        )
    assert claiming.result(30) == []


class Storm:
    """Workers that claim jobs and end them in every way, at random."""

    def __init__(self, db: OwnConnection, take: Take, seed: int) -> None:
        self.db = db
        self.take = take
        self.chance = random.Random(seed)
        self.workers = [register(db, f"host:{number}") for number in range(3)]
        self.running: list[tuple[int, ClaimedJob]] = []
        self.starts: dict[str, list[str]] = defaultdict(list)  # words by key

    def step(self) -> None:
        """Claim, let the time of some retry come, and end something."""
        worker = self.chance.choice(self.workers)
        keyed = lane_of(first=self.chance.choice(["", f"{KEYED} b"]))
        self._started(worker, self.take(self.db, worker, keyed))
        alone = claim_quarantined(self.db, worker, [KEYED], None)
        self._started(worker, alone)
        waiting = QueuedJob.objects.filter(status="queued").exclude(fence=0)
        if waiting and self.chance.random() < 0.5:
            operations.run_now(self.chance.choice(waiting).pk)
        if self.running:
            end = self._kill if self.chance.random() < 0.1 else self._end
            end(*self.chance.choice(self.running))

    def _started(self, worker: int, jobs: list[ClaimedJob]) -> None:
        for word in words(jobs):
            self.starts[word[0]].append(word)
        self.running.extend((worker, job) for job in jobs)

    def _kill(self, worker: int, job: ClaimedJob) -> None:
        crashed = self.chance.random() < 0.5
        rescue.rescue(self.db, [worker], crashed=crashed, reason="it died")
        self.running = [one for one in self.running if one[0] != worker]

    def _end(self, worker: int, job: ClaimedJob) -> None:
        self.running.remove((worker, job))
        outcomes = (succeeded(), failed(), retried(60), retried(0), SNOOZED, None)
        outcome = self.chance.choice(outcomes)
        if outcome is None:
            release.release(self.db, worker, [job.id], [job.fence])
        else:
            end(self.db, worker, job, outcome)
        if self.chance.random() < 0.1 and QueuedJob.objects.filter(pk=job.id):
            cancel(job.id)


def test_each_key_runs_in_order_in_a_storm(own: OwnConnection, take: Take) -> None:
    every = [f"{key}{number:02}" for number in range(5) for key in "abc"]
    enqueue(" ".join(every))
    storm = Storm(own, take, seed=1)
    for _ in range(2_000):
        if not QueuedJob.objects.exists():
            break
        storm.step()
    assert not QueuedJob.objects.exists()
    for key in "abc":
        # The next one starts only when the one before it is over.
        assert storm.starts[key] == sorted(storm.starts[key])
        assert set(storm.starts[key]) == {word for word in every if word[0] == key}
