"""Looking around: when to sweep, and how long to rest."""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from datetime import timedelta

import pytest

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.lanes import Head, Mark
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming import lane_scanner
from django_jobqueue.workers.claiming.lane_scanner import (
    FULL_SCAN_SHARE,
    SLOW,
    FullScans,
    Lanes,
    LaneScanner,
)
from tests.sample import jobs

ADDS = Lane("default", 0, jobs.add.name)
OLD = "2020-01-01T00:00Z"


class Time:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The clock of the lookout."""
    clock = Time()
    monkeypatch.setattr(lane_scanner, "time", clock)
    return clock


def test_short_sweeps_are_made_as_often_as_there_is_a_look(time: Time) -> None:
    sweeps = FullScans()
    for _ in range(100):
        assert sweeps.may_begin()
        sweeps.took(0.001)
        time.now += 0.05


def test_long_sweeps_get_a_small_share_of_the_time(time: Time) -> None:
    sweeps, made = FullScans(), 0
    for _ in range(10_000):
        if sweeps.may_begin():
            sweeps.took(0.3)
            made += 1
        time.now += 0.05
    assert made * 0.3 / 500 == pytest.approx(FULL_SCAN_SHARE, rel=0.05)


def test_nothing_is_saved_for_a_storm_of_sweeps(time: Time) -> None:
    sweeps, made = FullScans(), 0
    time.now += 3_600
    while sweeps.may_begin():
        sweeps.took(0.01)
        made += 1
    assert made <= 11


def test_slow_sweeps_are_told_once_in_a_while(
    time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    sweeps = FullScans()
    with caplog.at_level(logging.WARNING):
        sweeps.took(SLOW / 2)
        assert caplog.messages == []
        for _ in range(3):
            sweeps.took(2 * SLOW)
            time.now += 60
    (said,) = caplog.messages
    assert "backend_xmin" in said


@pytest.mark.django_db(transaction=True)
def test_a_look_says_which_lanes_have_jobs_now(own: OwnConnection) -> None:
    looks = LaneScanner(own, Lanes())
    assert looks.scan() == []
    assert looks.longest_wait == math.inf

    jobs.add.using(queue="later", run_after=timedelta(minutes=1)).enqueue(1)
    jobs.add.enqueue(1)
    assert looks.scan() == [ADDS]
    assert 50 < looks.longest_wait <= 60


@pytest.mark.django_db(transaction=True)
def test_a_job_behind_the_mark_is_found_when_there_is_time_for_a_sweep(
    own: OwnConnection, time: Time
) -> None:
    looks = LaneScanner(own, Lanes())
    looks.scan()
    jobs.add.enqueue(1)
    assert looks.scan() == [ADDS]
    QueuedJob.objects.all().delete()
    assert looks.scan() == []  # so the lane begins now

    jobs.add.enqueue(2)
    QueuedJob.objects.update(run_after=OLD)
    looks.full_scans.took(0.2)
    looks.want_full_scan()
    assert not looks.is_due
    assert looks.scan() == []
    assert looks.longest_wait == 1.0

    time.now += 0.2 / FULL_SCAN_SHARE
    assert looks.is_due
    assert looks.scan() == [ADDS]
    assert looks.longest_wait == math.inf


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [StoreUnavailable("cut off", retry_in=0), KeyError()])
def test_a_sweep_that_fails_is_repeated_no_sooner_than_one_that_does_not(
    own: OwnConnection, time: Time, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The server cuts it off after 15 s; looks from the marks go on meanwhile."""
    looks = LaneScanner(own, Lanes())
    sweeps = 0

    def cut_off(db: OwnConnection) -> tuple[list[Head], Mark]:
        nonlocal sweeps
        sweeps += 1
        time.now += 15.0
        raise error

    jobs.add.enqueue(1)
    assert looks.scan() == [ADDS]
    monkeypatch.setattr(lane_scanner.lanes, "full_scan", cut_off)
    looks.want_full_scan()
    began = time.now
    while time.now < began + 900:
        with suppress(StoreUnavailable, KeyError):
            looks.scan()
        time.now += 0.05
    assert sweeps <= 4  # 15 s each in a twentieth of the time
    monkeypatch.undo()
    assert looks.full_scans.is_wanted
