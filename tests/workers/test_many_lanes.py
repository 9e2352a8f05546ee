"""More lanes than a claim can ask each time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from django_jobqueue.store.queue import claim, claim_limited, lanes
from django_jobqueue.store.queue.lanes import Head, LaneMark
from django_jobqueue.workers.claiming import known_lanes, lane_scanner, lane_selection
from django_jobqueue.workers.claiming.lane_scanner import LaneScanner
from tests.sample import jobs
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 3
QUEUES = [f"tenant-{number}" for number in range(3 * MANY)]


class Statements:
    """What was sent to the database."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.claimed: list[int] = []  # the number of lanes of each claim
        self.limited: list[int] = []  # the same of claims within a limit
        self.jobs: list[UUID] = []
        self.scans = 0
        real_claim, real_limited = claim.claim, claim_limited.claim_limited
        real_scan = lanes.full_scan

        def count_claim(db: Any, id: int, asked: Sequence[LaneMark], limit: int) -> Any:
            self.claimed.append(len(asked))
            jobs = real_claim(db, id, asked, limit)
            self.jobs += [job.id for job in jobs]
            return jobs

        def count_limited(
            db: Any, id: int, asked: Sequence[LaneMark], limit: int, **options: bool
        ) -> Any:
            self.limited.append(len(asked))
            return real_limited(db, id, asked, limit, **options)

        def count_scan(*arguments: Any) -> list[Head]:
            self.scans += 1
            return real_scan(*arguments)

        monkeypatch.setattr(claim, "claim", count_claim)
        monkeypatch.setattr(claim_limited, "claim_limited", count_limited)
        monkeypatch.setattr(lanes, "full_scan", count_scan)

    def clear(self) -> None:
        self.claimed, self.limited, self.jobs, self.scans = [], [], [], 0


@pytest.fixture(autouse=True)
def _many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (known_lanes, lane_selection):
        monkeypatch.setattr(module, "MANY", MANY)
    # No scan is due by itself.
    monkeypatch.setattr(lane_scanner, "SCAN_EVERY", 3_600.0)
    monkeypatch.setattr(lane_scanner, "SCAN_SHARE", 1e-9)


@pytest.fixture
def are_short(request: pytest.FixtureRequest) -> bool:
    """Whether jobs are claimed ahead of free slots."""
    return bool(getattr(request, "param", False))


long_and_short = pytest.mark.parametrize(
    "are_short", [False, True], ids=["long jobs", "short jobs"], indirect=True
)


@pytest.fixture
def worker(make_worker: Make, are_short: bool) -> HandDriven:
    """It knows many lanes, which are empty."""
    worker = make_worker(threads=4, async_slots=0)
    worker.has_run(jobs.add, 0.001 if are_short else 1.0)
    enqueue(*QUEUES)
    worker.work()
    assert len(archived()) == len(QUEUES)
    return worker


@pytest.fixture
def statements(worker: HandDriven, monkeypatch: pytest.MonkeyPatch) -> Statements:
    return Statements(monkeypatch)


def enqueue(*queues: str) -> None:
    for queue in queues:
        jobs.add.using(queue=queue).enqueue(1)


@long_and_short
def test_a_lone_job_costs_one_scan_and_a_claim_of_its_lane(
    worker: HandDriven, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no time left for full scans, the marks are used."""
    for full_scans in (1, 0):
        if not full_scans:  # an old snapshot makes them slow
            scanner = worker.dispatcher.scanner
            monkeypatch.setattr(scanner.full_scans, "may_begin", lambda: False)
        for queue in (QUEUES[0], f"new-{full_scans}"):
            statements.clear()
            enqueue(queue)
            worker.claim(told=True)
            assert worker.held == 1
            assert statements.claimed == [1]
            assert statements.scans == full_scans
            worker.complete()
        statements.clear()
        worker.claim(told=True)  # finds nothing
        assert (statements.claimed, statements.scans) == ([], full_scans)
        assert worker.worker.is_idle


def test_no_statement_asks_more_lanes_than_are_many(
    make_worker: Make, statements: Statements
) -> None:
    worker = make_worker(threads=50, async_slots=0)
    enqueue(*QUEUES, *QUEUES)
    worker.claim()
    assert worker.held == 2 * len(QUEUES)
    assert max(statements.claimed) == MANY


@long_and_short
def test_while_lanes_have_more_nothing_is_scanned(
    worker: HandDriven, statements: Statements, are_short: bool
) -> None:
    enqueue(*QUEUES, *QUEUES)
    worker.dispatcher.jobs_arrived()
    for _ in range(2):
        worker.turn()
    assert len(archived()) == len(QUEUES) + (2 * len(QUEUES) if are_short else 8)
    assert statements.scans == (2 if are_short else 1)  # when there are no more
    assert max(statements.claimed) <= MANY


@long_and_short
def test_when_these_lanes_are_empty_others_are_looked_for_at_once(
    worker: HandDriven, statements: Statements
) -> None:
    """The worker was not told of the last job."""
    enqueue(*QUEUES[:5])
    worker.claim(told=True)
    worker.run()
    enqueue("new")
    worker.claim()
    assert statements.scans == 2
    worker.complete()
    assert not queued()


def test_a_lone_job_beside_a_backlog_is_found_by_a_scan_that_costs_little(
    worker: HandDriven, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody tells a worker that has been busy for long."""
    monkeypatch.setattr(lane_scanner, "SCAN_SHARE", 1e9)
    jobs.add.using(queue=QUEUES[0]).enqueue_many([{"a": 1}] * 300)
    worker.claim(told=True)
    worker.run()
    lone = jobs.add.using(queue=QUEUES[1]).enqueue(1)
    for _ in range(2):
        worker.claim()
        worker.run()
    assert lone.id in statements.jobs
    assert len(statements.jobs) < 300


def test_news_of_a_more_urgent_job_go_before_lanes_that_have_more(
    worker: HandDriven, statements: Statements
) -> None:
    worker.worker.executors[0].slots = 1
    enqueue(*QUEUES)
    worker.turn(told=True)
    statements.clear()
    urgent = jobs.add.using(queue=QUEUES[-1], priority=9).enqueue(1)
    worker.claim(told=True)
    assert urgent.id in statements.jobs[:MANY]  # of one claim, in any order


def test_lanes_that_must_be_asked_by_themselves_are_only_if_they_are_due(
    worker: HandDriven, statements: Statements
) -> None:
    for queues in (QUEUES, QUEUES[:1]):
        statements.clear()
        for queue in queues:
            jobs.write_limited.using(queue=queue).enqueue(os.devnull)
        worker.work(told=True)
        assert not queued()
    assert statements.limited == [1]
    assert statements.claimed == []


def test_news_wait_for_the_next_scan_after_a_long_one(
    worker: HandDriven, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lanes that are known to have jobs are claimed from meanwhile."""
    pause = 0.0
    monkeypatch.setattr(LaneScanner, "pause", property(lambda _: pause))
    enqueue(*QUEUES[:6])
    worker.claim(told=True)
    worker.complete()
    pause, scans = 3.0, statements.scans
    enqueue("new")
    assert worker.claim(told=True) <= pause
    assert worker.held == 2
    worker.complete()
    assert 0 < worker.claim(told=True) <= pause
    assert (statements.scans, worker.held) == (scans, 0)
    assert not worker.worker.is_idle
    pause = 0.0
    worker.claim()
    assert (statements.scans, worker.held) == (scans + 1, 1)
