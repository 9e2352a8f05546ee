"""Threads of a worker that sleep while it has nothing to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from django_jobqueue.store.notify import News
from django_jobqueue.workers.timer import WAKEFUL, Timer
from tests.conftest import HandDriven, archived, eventually
from tests.sample import jobs


@pytest.fixture
def timer(worker: HandDriven) -> Iterator[Timer]:
    """The timer of a worker that has had nothing to do for long; it sleeps."""
    timer = worker.worker.timer
    timer._held_at -= 2 * WAKEFUL
    timer.start()
    eventually(lambda: timer._sleeps, what="the timer to sleep")
    yield timer
    timer.stop(5)


def test_a_job_that_comes_while_the_timer_sleeps_is_ended_at_its_timeout(
    worker: HandDriven, timer: Timer
) -> None:
    jobs.aslow.enqueue(seconds=60)
    worker.work()
    (job,) = archived()
    assert job.status == "failed"
    assert "longer than its timeout" in job.error_message


def test_a_timer_that_is_awake_is_not_woken_by_a_claim(worker: HandDriven) -> None:
    timer = worker.worker.timer
    timer.tick()
    jobs.add.enqueue(1)
    worker.claim()
    assert not timer._woken.is_set()


def test_a_timer_does_not_sleep_while_something_is_held(worker: HandDriven) -> None:
    timer = worker.worker.timer
    jobs.add.enqueue(1)
    worker.claim()
    timer._held_at -= 2 * WAKEFUL
    timer.tick()
    assert not timer._sleeps
    worker.work()
    timer._held_at -= 2 * WAKEFUL
    timer.tick()
    assert timer._sleeps


def test_a_timer_looks_again_when_the_next_timeout_is_reached(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_jobqueue.workers.timer.EVERY", 3_600.0)
    jobs.stay.enqueue(gate="timer")
    jobs.gates["timer"] = threading.Event()
    worker.claim()
    (attempt,) = worker.worker.held
    attempt.timeout = 60.0
    eventually(lambda: attempt.started)
    assert 0 < worker.worker.timer.tick() <= 60
    jobs.gates["timer"].set()
    worker.run()
    worker.finish()


def test_a_worker_stirs_when_it_has_claimed_and_when_an_operator_calls(
    worker: HandDriven,
) -> None:
    told: list[str] = []
    worker.worker.activity.wakes(lambda: told.append("woken"))
    worker.claim()
    assert told == []
    jobs.add.enqueue(1)
    worker.claim()
    assert told == ["woken"]
    worker.worker._hear(News.CONTROL, "another")
    assert told == ["woken"]
    worker.worker._hear(News.CONTROL, str(worker.worker.id))
    assert told == ["woken"] * 2
