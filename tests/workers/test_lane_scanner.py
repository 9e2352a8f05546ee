"""Scans of the lanes: when to make a full one, and how long to rest."""

from __future__ import annotations

import math
import time as clock
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any
from uuid import UUID

import pytest

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.lanes import Head, Mark
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming import known_lanes, lane_scanner
from django_jobqueue.workers.claiming.known_lanes import MANY, Lanes
from django_jobqueue.workers.claiming.lane_scanner import (
    FULL_SCAN_SHARE,
    FullScans,
    LaneScanner,
)
from tests.sample import jobs
from tests.workers.stopped_clock import StoppedClock

ADDS = Lane("default", 0, jobs.add.name)
OLD = "2020-01-01T00:00Z"


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> StoppedClock:
    clock = StoppedClock()
    for module in (lane_scanner, known_lanes):
        monkeypatch.setattr(module, "time", clock)
    return clock


def test_full_scans_get_a_small_share_of_the_time(time: StoppedClock) -> None:
    short = FullScans()
    for _ in range(100):
        assert short.may_begin()
        short.took(0.001)
        time.now += 0.05

    long, made = FullScans(), 0
    for _ in range(2_000):
        if long.may_begin():
            long.took(0.3)
            made += 1
        time.now += 0.05
    assert made * 0.3 / 100 == pytest.approx(FULL_SCAN_SHARE, rel=0.05)

    stormy, made = FullScans(), 0
    time.now += 3_600  # nothing of it is saved for a storm of them
    while stormy.may_begin():
        stormy.took(0.01)
        made += 1
    assert made <= 11


@pytest.mark.django_db(transaction=True)
def test_a_scan_says_which_lanes_have_jobs_now(own: OwnConnection) -> None:
    scanner = LaneScanner(own, Lanes())
    assert scanner.scan() == []
    assert scanner.job_due_at == math.inf

    jobs.add.using(queue="later", run_after=timedelta(minutes=1)).enqueue(1)
    jobs.add.enqueue(1)
    assert scanner.scan() == [ADDS]
    assert 50 < scanner.job_due_at - clock.monotonic() <= 60


@pytest.mark.django_db(transaction=True)
def test_a_worker_of_some_queues_looks_at_no_lane_of_others(own: OwnConnection) -> None:
    known = Lanes()
    scanner = LaneScanner(own, known, [ADDS.queue])
    for queue in (ADDS.queue, "others", "a"):
        jobs.add.using(queue=queue).enqueue(1)
    for _full_and_from_marks in range(2):
        assert scanner.scan() == [ADDS]
        assert [one.lane for one in known] == [ADDS]
        scanner.full_scans.took(60.0)


@pytest.mark.django_db(transaction=True)
def test_a_full_scan_finds_all(own: OwnConnection, time: StoppedClock) -> None:
    scanner = LaneScanner(own, Lanes())
    scanner.scan()
    jobs.add.enqueue(1)
    assert scanner.scan() == [ADDS]
    QueuedJob.objects.all().delete()
    assert scanner.scan() == []  # so the lane begins now

    jobs.add.enqueue(2)
    QueuedJob.objects.update(run_after=OLD)
    scanner.full_scans.took(0.2)
    scanner.want_full_scan()
    assert scanner.due_at > time.now
    assert scanner.scan() == []
    assert scanner.full_scans.is_wanted

    time.now += 0.2 / FULL_SCAN_SHARE
    assert scanner.due_at <= time.now
    assert scanner.scan() == [ADDS]
    assert not scanner.full_scans.is_wanted


@pytest.mark.django_db(transaction=True)
def test_a_full_scan_that_fails_is_repeated_no_sooner_than_one_that_does_not(
    own: OwnConnection, time: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server cuts it off after 15 s; scans from the marks go on meanwhile."""
    scanner = LaneScanner(own, Lanes())
    errors = cycle([StoreUnavailable("cut off", retry_in=0), KeyError()])
    failed, scanned = 0, 0

    def cut_off(*_: object) -> tuple[list[Head], Mark]:
        nonlocal failed
        failed += 1
        time.now += 15.0
        raise next(errors)

    jobs.add.enqueue(1)
    assert scanner.scan() == [ADDS]
    with monkeypatch.context() as patch:
        patch.setattr(lane_scanner.lanes, "full_scan", cut_off)
        scanner.want_full_scan()
        began = time.now
        while time.now < began + 500:
            with suppress(StoreUnavailable, KeyError):
                scanned += scanner.scan() == [ADDS]
            time.now += 1.0
    assert failed == 2  # 15 s each in a twentieth of the time
    assert scanned > 400
    assert scanner.full_scans.is_wanted


@pytest.mark.dear
def test_long_scans_of_many_lanes_get_a_share_of_the_time(
    time: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a worker hears of jobs; short ones, or of few lanes, need none."""
    nowhere: Any = None
    monkeypatch.setattr(lane_scanner.SlowScans, "took", lambda *_, **__: None)
    monkeypatch.setattr(lane_scanner, "SCAN_OF_LANE", 1.0)  # no dead entries

    def share(seconds: float, lanes: int) -> float:
        mark = (datetime(2026, 1, 1, tzinfo=UTC), UUID(int=0))
        heads = [Head(Lane(f"{n}", 0, "x"), 60.0, mark) for n in range(lanes)]

        def look(*_: object) -> list[Head]:
            time.now += seconds
            return heads

        with monkeypatch.context() as patch:
            patch.setattr(lane_scanner.lanes, "scan", look)
            patch.setattr(lane_scanner.lanes, "full_scan", lambda *_: (look(), mark))
            scanner, began, busy = LaneScanner(nowhere, Lanes()), time.now, 0.0
            while time.now < began + 100:
                time.now += scanner.pause
                scanner.scan()
                busy += seconds
        return busy / (time.now - began)

    few, many = MANY, MANY + 1
    assert 0.1 < share(1.0, many) < 0.25
    assert [share(1.0, few), share(0.05, many)] == pytest.approx([1.0, 1.0])
