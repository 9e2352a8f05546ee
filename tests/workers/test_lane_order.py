"""Whose turn it is: weights of queues, and priorities that grow with the wait."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.test import override_settings

from django_jobqueue.store.queue.lanes import START, Head, Mark
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming.known_lanes import Lanes
from django_jobqueue.workers.claiming.lane_order import TURN, LaneOrder, QueueTurns
from tests.sample import jobs
from tests.support.hand_driven import Make
from tests.support.rows import archived
from tests.workers.test_lanes import job

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
        queue = min("ab", key=turns.begin({"a", "b"}).__getitem__)
        got[queue] += 1
        turns.served(queue, 1)
    assert abs(got["a"] - got["b"]) <= 1


def first(lanes: Lanes, *, is_async: bool = False) -> Lane:
    return lanes.in_turn(lambda lane: True, is_async=is_async)[0].lane


def test_threads_and_async_slots_have_turns_of_their_own() -> None:
    lanes = Lanes(LaneOrder({"a": 1, "b": 1}))
    urgent, other = Lane("a", 9, "mail"), Lane("b", 0, "mail")
    lanes.learn([Head(lane, -1.0, START) for lane in (urgent, other)])
    ordered = lanes.in_turn(lambda lane: True, is_async=True)
    lanes.claimed(ordered, [job(urgent, 1)] * 50, full=True, is_async=True)
    assert (first(lanes, is_async=True), first(lanes)) == (other, urgent)


def put(queue: str, count: int) -> None:
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


def test_no_slot_waits_for_the_queue_that_is_next(make_worker: Make) -> None:
    with override_settings(JOBQUEUE={"QUEUE_WEIGHTS": {"high": 1_000}}):
        worker = make_worker(threads=4)
    put("high", 1)
    put("low", 20)
    worker.work()
    assert len(archived()) == 21


def test_a_job_that_has_waited_is_more_urgent_if_it_is_due() -> None:
    def due(seconds: float) -> Mark:
        return datetime.now(UTC) - timedelta(seconds=seconds), UUID(int=1)

    for ageing, urgent in ((None, "new"), (60.0, "old"), (120.0, "new")):
        lanes = Lanes(LaneOrder(ageing=ageing))
        old, new = Lane("default", -5, "old"), Lane("default", 0, "new")
        lanes.learn([Head(old, -1.0, due(400)), Head(new, -1.0, due(1))])
        assert first(lanes).job_type == urgent
    lanes = Lanes(LaneOrder(ageing=1.0))
    later, now = Lane("default", 0, "later"), Lane("default", 1, "now")
    lanes.learn([Head(later, 60.0, due(3_600)), Head(now, -1.0, START)])
    assert first(lanes) == now
