"""Whose turn it is: weights of queues, and priorities that grow with the wait."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.test import override_settings

from django_jobqueue.store.queue.lanes import START, Head, Mark
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming.lane_order import TURN, LaneOrder, QueueTurns
from django_jobqueue.workers.claiming.lane_scanner import Lanes
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived
from tests.workers.test_lanes import job

Make = Callable[..., HandDriven]
WEIGHTS = {"high": 5, "default": 3}  # and low: 1


def test_claims_are_within_two_percent_of_the_weights() -> None:
    queues = ("high", "default", "low")
    lanes = Lanes(LaneOrder(WEIGHTS))
    every = [
        Lane(queue, priority, name)
        for queue in queues
        for priority, name in ((0, "mail"), (9, "bill"))
    ]
    lanes.learn([Head(lane, -1.0, START) for lane in every])
    chance, got = random.Random(7), Counter[str]()
    for second in range(3_000):
        ordered = lanes.in_turn(lambda lane: True)
        count = chance.randint(1, 20)
        lanes.claimed(ordered, [job(ordered[0].lane, second)] * count, full=True)
        got[ordered[0].lane.queue] += count
    for queue in queues:
        wanted = WEIGHTS.get(queue, 1) / 9
        assert got[queue] / got.total() == pytest.approx(wanted, rel=0.02)


def test_a_queue_that_had_no_jobs_has_saved_nothing_up() -> None:
    turns = QueueTurns({"a": 1, "b": 1})
    turns.begin({"a", "b"})
    turns.served("b", 1)
    for _ in range(1_000):  # b is known, and has none
        turns.begin({"a", "b"})
        turns.served("a", 1)
    got = Counter[str]()
    for _ in range(100):
        passes = turns.begin({"a", "b"})
        queue = min("ab", key=passes.__getitem__)
        got[queue] += 1
        turns.served(queue, 1)
    assert abs(got["a"] - got["b"]) <= 1


def test_threads_and_async_slots_have_turns_of_their_own() -> None:
    lanes = Lanes(LaneOrder({"a": 1, "b": 1}))
    urgent, other = Lane("a", 9, "mail"), Lane("b", 0, "mail")
    lanes.learn([Head(lane, -1.0, START) for lane in (urgent, other)])
    ordered = lanes.in_turn(lambda lane: True, is_async=True)
    lanes.claimed(ordered, [job(urgent, 1)] * 50, full=True, is_async=True)
    first = {
        is_async: lanes.in_turn(lambda lane: True, is_async=is_async)[0].lane
        for is_async in (True, False)
    }
    assert first == {True: other, False: urgent}


def put(queue: str, count: int) -> None:
    """So many jobs into this queue."""
    jobs.add.using(queue=queue).enqueue_many([{"a": 1}] * count)


def test_a_worker_serves_a_queue_that_trickles_by_its_weight(make_worker: Make) -> None:
    """Between two claims come more jobs of it than its share, of which no scan tells;
    and the async slots, which have other lanes, are asked each time as well."""
    with override_settings(JOBQUEUE={"QUEUE_WEIGHTS": {"high": 5}}):
        worker = make_worker(threads=20)
    put("low", 1)
    put("high", 500)
    while len(archived(queue="high")) < 200:  # alone, for long
        worker.turn()
    before = Counter(one.queue for one in archived())
    for _ in range(12):
        put("low", 15)
        worker.turn()
    got = Counter(one.queue for one in archived()) - before
    assert got.total() >= 240
    assert abs(got["low"] - got.total() / 6) <= 3 * TURN


def test_queues_with_jobs_are_served_by_their_weights(make_worker: Make) -> None:
    with override_settings(JOBQUEUE={"QUEUE_WEIGHTS": WEIGHTS}):
        worker = make_worker(threads=3)
    for queue in ("low", "default", "high"):
        put(queue, 60)
        jobs.keep.using(queue=queue, priority=50).enqueue_many([{"a": 1}] * 60)
    worker.work()
    done = sorted(archived(), key=lambda one: one.started_at)
    assert len(done) == 360
    got = Counter(one.queue for one in done[:108])
    for queue, wanted in (("high", 60), ("default", 36), ("low", 12)):
        assert abs(got[queue] - wanted) <= 2 * TURN
    for queue in got:  # in each, priorities are strict
        kinds = [one.job_type_id for one in done if one.queue == queue]
        assert kinds == [jobs.keep.name] * 60 + [jobs.add.name] * 60


def test_no_slot_is_idle_while_a_queue_that_is_not_next_has_jobs(
    make_worker: Make,
) -> None:
    with override_settings(JOBQUEUE={"QUEUE_WEIGHTS": {"high": 1_000}}):
        worker = make_worker(threads=4)
    put("high", 1)
    put("low", 20)
    worker.work()
    assert len(archived()) == 21


def waiting(lane: Lane, seconds: float) -> tuple[Lane, Mark]:
    """A lane whose first job is due for so long."""
    return lane, (datetime.now(UTC) - timedelta(seconds=seconds), UUID(int=1))


def test_a_job_that_has_waited_is_more_urgent() -> None:
    old = waiting(Lane("default", -5, "old"), 400)
    new = waiting(Lane("default", 0, "new"), 1)
    first = {}
    for ageing in (None, 60.0, 120.0):
        lanes = Lanes(LaneOrder(ageing=ageing))
        lanes.learn([Head(lane, -1.0, mark) for lane, mark in (old, new)])
        first[ageing] = lanes.in_turn(lambda lane: True)[0].lane.job_type
    assert first == {None: "new", 60.0: "old", 120.0: "new"}


def test_no_priority_starves_under_a_constant_load(make_worker: Make) -> None:
    with override_settings(JOBQUEUE={"AGEING": 1.0}):
        worker = make_worker(threads=1)
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    starving = jobs.keep.using(priority=-100, run_after=an_hour_ago).enqueue(a=1)
    for _ in range(3):
        jobs.add.using(priority=100).enqueue(a=1)
        worker.turn()
    assert starving.id in {one.id for one in archived()}


def test_times_that_are_not_due_make_nothing_urgent() -> None:
    lanes = Lanes(LaneOrder(ageing=1.0))
    later = Lane("default", 0, "later")
    now = Lane("default", 1, "now")
    due = datetime.now(UTC) - timedelta(hours=1)
    lanes.learn([Head(later, 60.0, (due, UUID(int=1))), Head(now, -1.0, START)])
    assert lanes.in_turn(lambda lane: True)[0].lane == now
