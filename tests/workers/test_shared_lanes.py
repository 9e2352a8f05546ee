"""Processes of one host that know how far the others have come."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.processes import lane_progress
from django_jobqueue.processes.lane_progress import SharedLaneProgress
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import lanes
from django_jobqueue.store.queue.lanes import LaneMark
from django_jobqueue.workers.claiming import known_lanes, lane_scanner, lane_selection
from django_jobqueue.workers.claiming.known_lanes import Lanes
from django_jobqueue.workers.claiming.lane_scanner import LaneScanner
from django_jobqueue.workers.claiming.next_step import SCAN_EVERY
from tests.sample import jobs
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import archived, queued
from tests.support.selection import some_slow
from tests.workers.stopped_clock import StoppedClock

pytestmark = pytest.mark.django_db(transaction=True)


def start_of(worker: HandDriven) -> LaneMark:
    """Where the next claim of this worker starts; it has seen one lane."""
    known = worker.dispatcher.lane_selection.lanes
    (start,) = known.starts(known)
    return start


def position(number: int) -> tuple[datetime, object]:
    """The mark after the job with this argument."""
    job = QueuedJob.objects.get(data__a=number)
    return (job.run_after, job.id)


def test_a_claim_starts_where_that_of_another_process_ended(make_worker: Make) -> None:
    shared = SharedLaneProgress()
    first, second = (make_worker(shared, threads=2) for _ in range(2))
    alone = make_worker(threads=2)
    jobs.add.enqueue_many([{"a": number} for number in range(6)])
    for worker in (second, alone):
        worker.dispatcher.scanner.scan()
    first.claim()
    assert start_of(second).mark == position(1)
    assert start_of(alone).mark == position(0)
    second.claim()
    assert start_of(first).mark == position(3)
    for worker in (first, second):
        worker.work()
    assert len(archived()) == 6


def test_of_a_busy_host_one_process_scans_all_that_is_behind_the_marks(
    make_worker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, clock = SharedLaneProgress(), StoppedClock()
    for module in (lane_progress, known_lanes, lane_scanner):
        monkeypatch.setattr(module, "time", clock)
    scanners = [make_worker(shared).dispatcher.scanner for _ in range(3)]
    full_scan, full_scans = lanes.full_scan, list[object]()
    monkeypatch.setattr(
        lanes, "full_scan", lambda db, _: full_scans.append(db) or full_scan(db)
    )

    def scan(*numbers: int, busy: bool = True) -> list[int]:
        """Let these scan in turn; those that make a full scan."""
        made = []
        for number in numbers:
            before = len(full_scans)
            clock.now += 0.001
            scanners[number].scan(busy=busy)
            made += [number] * (len(full_scans) - before)
        return made

    assert scan(*[0, 1, 2] * 5) == [0]
    for scanner in scanners:  # as all of them hear that a job was released
        scanner.want_full_scan()
    assert scan(2, 1, 0) == [2]
    assert scan(1, busy=False) == [1]  # it has nothing to do, and may go idle
    clock.now += SCAN_EVERY
    assert scan(0, 1, 2) == [0]


def test_a_clock_that_was_set_back_is_known_to_all(own: OwnConnection) -> None:
    shared = SharedLaneProgress()
    one, other = Lanes(shared=shared), Lanes(shared=shared)
    jobs.add.enqueue(1)
    for each in (one, other):
        LaneScanner(own, each).scan()
    (known,) = one
    ahead = known_lanes.LaneProgress(
        (datetime.max.replace(tzinfo=UTC), known.progress.mark[1])
    )
    shared.write(known.lane, ahead)
    QueuedJob.objects.all().delete()
    for each in (one, other):
        assert each.starts(each)[0].mark == ahead.mark
    LaneScanner(own, one).scan()
    assert other.starts(other)[0].mark < ahead.mark


@pytest.mark.parametrize("are_many", [False, True], ids=["one lane", "many lanes"])
@pytest.mark.parametrize("rounds", some_slow([3, 30], [3], "more orders of steps"))
def test_no_job_is_left_whatever_the_processes_do(
    make_worker: Make, monkeypatch: pytest.MonkeyPatch, rounds: int, are_many: bool
) -> None:
    """Jobs arrive late, and before the mark; some are given back; each process sees
    only a part. In the end none that rests behind a mark is overlooked."""
    if are_many:
        monkeypatch.setattr(known_lanes, "MANY", 2)
        monkeypatch.setattr(lane_selection, "MANY", 2)
    queues = ["a", "b", "c", "d", "e"] if are_many else ["default"]
    draw, shared = Random(rounds), SharedLaneProgress()
    workers = [make_worker(shared, threads=2, async_slots=0) for _ in range(3)]
    for worker in workers:
        worker.has_run(jobs.add, 0.001)
    expected = 0
    for round in range(rounds):
        for _ in range(40):
            expected += step(draw, draw.choice(workers), draw.choice(queues))
        last = draw.randrange(3)
        workers[last].dispatcher.jobs_arrived()
        for worker in workers[last:] + workers[:last]:
            worker.complete()
            worker.work()
        assert not queued(), f"after round {round}"
    done = ArchivedJob.objects.filter(status="succeeded", attempts=1)
    assert done.count() == expected


def step(draw: Random, worker: HandDriven, queue: str) -> int:
    """Something happens, perhaps to this worker; returns how many jobs were added."""
    match draw.randrange(6):
        case 0:
            count = draw.choice([1, 3, 40])
            jobs.add.using(queue=queue).enqueue_many([{"a": 1}] * count)
            worker.dispatcher.jobs_arrived()
            return count
        case 1:
            early = jobs.add.using(queue=queue).enqueue(1)
            QueuedJob.objects.filter(id=early.id).update(
                run_after=datetime(2020, 1, 1).astimezone()
            )
            return 1
        case 2:
            taken = worker.worker.executors[0].take_back()
            worker.dispatcher.claimer.give_back(taken)
        case 3:
            worker.complete()
        case _:
            worker.claim()
    return 0
