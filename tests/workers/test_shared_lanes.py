"""Processes of one host that know how far the others have come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random

import pytest

from django_jobqueue.models import QueuedJob
from django_jobqueue.processes.lane_progress import SharedLaneProgress
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.lanes import Head, LaneMark
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming import lane_scanner, lane_selection
from django_jobqueue.workers.claiming.lane_scanner import (
    SCAN_EVERY,
    Lanes,
    LaneScanner,
)
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

Make = Callable[..., HandDriven]

pytestmark = pytest.mark.django_db(transaction=True)


def start_of(worker: HandDriven) -> LaneMark:
    """Where the next claim of this worker starts; it has seen one lane."""
    lanes = worker.worker.dispatcher.lane_selection.lanes
    (start,) = lanes.starts(lanes)
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
        worker.worker.dispatcher.scanner.scan()
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
    shared = SharedLaneProgress()
    scanners = [make_worker(shared).worker.dispatcher.scanner for _ in range(3)]
    full_scans: list[LaneScanner] = []
    full_scan = LaneScanner._full_scan

    def counted(scanner: LaneScanner) -> list[Head]:
        full_scans.append(scanner)
        return full_scan(scanner)

    monkeypatch.setattr(LaneScanner, "_full_scan", counted)
    for _ in range(5):
        for scanner in scanners:
            scanner.scan(busy=True)
    assert full_scans == scanners[:1]

    for scanner in scanners:  # as all of them hear that a job was released
        scanner.want_full_scan()
    for scanner in reversed(scanners):
        scanner.scan(busy=True)
    assert full_scans[1:] == scanners[2:]

    scanners[1].scan()  # it has nothing to do, and may go idle
    assert full_scans[2:] == scanners[1:2]

    shared._full_scan_at[0] -= SCAN_EVERY
    for scanner in scanners:
        scanner.scan(busy=True)
    assert full_scans[3:] == scanners[:1]


def test_a_clock_that_was_set_back_is_known_to_all(own: OwnConnection) -> None:
    shared = SharedLaneProgress()
    one, other = Lanes(shared=shared), Lanes(shared=shared)
    jobs.add.enqueue(1)
    for lanes in (one, other):
        LaneScanner(own, lanes).scan()
    (known,) = one
    ahead = lane_scanner.LaneProgress(
        (datetime.max.astimezone(), known.progress.mark[1])
    )
    shared.write(known.lane, ahead)
    QueuedJob.objects.all().delete()
    for lanes in (one, other):
        assert lanes.starts(lanes)[0].mark == ahead.mark
    LaneScanner(own, one).scan()
    assert other.starts(other)[0].mark < ahead.mark


@pytest.mark.parametrize("are_many", [False, True], ids=["one lane", "many lanes"])
@pytest.mark.parametrize("seed", range(10))
def test_no_job_is_left_whatever_the_processes_do(
    make_worker: Make, monkeypatch: pytest.MonkeyPatch, seed: int, are_many: bool
) -> None:
    """Jobs arrive late, and before the mark; some are given back; each process sees
    only a part. In the end none that rests behind a mark is overlooked."""
    if are_many:
        monkeypatch.setattr(lane_scanner, "MANY", 2)
        monkeypatch.setattr(lane_selection, "MANY", 2)
    queues = ["a", "b", "c", "d", "e"] if are_many else ["default"]
    draw, shared = Random(seed), SharedLaneProgress()
    workers = [make_worker(shared, threads=2, async_slots=0) for _ in range(3)]
    for worker in workers:
        for _ in range(20):
            worker.worker.executors[0].runtimes.ran(jobs.add.name, 0.001)
    expected = 0
    for _ in range(60):
        worker = draw.choice(workers)
        dispatcher = worker.worker.dispatcher
        match draw.randrange(6):
            case 0:
                count = draw.choice([1, 3, 150])
                expected += count
                added = jobs.add.using(queue=draw.choice(queues))
                added.enqueue_many([{"a": number} for number in range(count)])
                dispatcher.jobs_arrived()
            case 1:
                expected += 1
                early = jobs.add.using(queue=draw.choice(queues)).enqueue(1)
                QueuedJob.objects.filter(id=early.id).update(
                    run_after=datetime(2020, 1, 1).astimezone()
                )
            case 2:
                taken = dispatcher.executors[0].take_back()
                dispatcher.claimer.give_back(taken)
            case 3:
                worker.run()
                worker.finish()
            case _:
                worker.claim()
    workers[seed % 3].worker.dispatcher.jobs_arrived()
    for worker in workers[seed % 3 :] + workers[: seed % 3]:
        worker.run()
        worker.finish()
        worker.work()
    assert not queued()
    assert len(archived(status="succeeded", attempts=1)) == expected


def test_lanes_are_known_by_all_three_parts_of_their_name() -> None:
    shared = SharedLaneProgress()
    shared.write(Lane("a", 0, "b"), lane_scanner.LaneProgress())
    assert shared.read(Lane("a", 1, "b")) is None
    assert shared.read(Lane("b", 0, "a")) is None
