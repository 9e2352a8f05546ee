"""Claim by key past a first job that nobody can have: it has expired, or somebody has
locked it. Where the order is strict, a locked one is waited for."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from django_jobqueue.models import JobType, KeyLimit, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.claim_keyed import KeyedLane, claim_keyed
from django_jobqueue.store.queue.claim_keyed_rated import claim_keyed_rated
from django_jobqueue.store.queue.claim_weighed import claim_keyed_weighed
from django_jobqueue.store.rows import ClaimedJob, Lane
from tests.store.meanwhile import open_transaction
from tests.store.rows import KEYED, ago, enqueue_keys

RULE = {"by": "size", "default": 1, "of_type": False, "of_key": True}
RATE = "1000000/1s burst 400000"
Claim = Callable[[OwnConnection, int, KeyedLane], list[ClaimedJob]]

CLAIMS: dict[str, Claim] = {
    "plain": lambda db, worker, keyed: claim_keyed(db, worker, keyed, 10),
    "rated": lambda db, worker, keyed: claim_keyed_rated(db, worker, keyed, 10)[0],
    "weighed": lambda db, worker, keyed: claim_keyed_weighed(db, worker, keyed, 10)[0],
}


@pytest.fixture(params=CLAIMS)
def claim(request: pytest.FixtureRequest, own: OwnConnection) -> Claim:
    if request.param != "plain":
        KeyLimit.objects.update(rate=RATE)
    if request.param == "weighed":
        JobType.objects.filter(pk=KEYED).update(weight_rule=RULE)
    return CLAIMS[request.param]


def claimed(
    claim: Claim, db: OwnConnection, worker: int, *, strict: bool, each: int
) -> list[UUID]:
    """The ids of the jobs of key a that a claim gets."""
    KeyLimit.objects.update(concurrency=1, strict=strict)
    keyed = KeyedLane(
        lane=Lane("default", 0, KEYED),
        limit_name=KEYED,
        locks_limit=True,
        locks_type=True,
        strict=strict,
        each=each,
    )
    jobs = claim(db, worker, keyed)
    ids = [job.id for job in jobs if job.limit_key == f"{KEYED} a"]
    QueuedJob.objects.filter(id__in=[job.id for job in jobs]).update(
        status="queued", worker_id=None, fence=0
    )
    return ids


@pytest.mark.parametrize(("strict", "each"), [(False, 1), (False, 2), (True, 1)])
def test_a_first_job_that_nobody_can_have_stops_no_key(
    claim: Claim,
    own: OwnConnection,
    other: OwnConnection,
    holder: int,
    strict: bool,
    each: int,
) -> None:
    enqueue_keys("aaab")
    first, second, _ = QueuedJob.objects.filter(limit_key=f"{KEYED} a").order_by(
        "run_after"
    )
    assert claimed(claim, own, holder, strict=strict, each=each) == [first.id]
    with open_transaction(other) as transaction:
        transaction.lock(first.id)
        got = claimed(claim, own, holder, strict=strict, each=each)
        assert got == ([] if strict else [second.id])
    QueuedJob.objects.filter(id=first.id).update(expires_at=ago(1))
    assert claimed(claim, own, holder, strict=strict, each=each) == [second.id]
