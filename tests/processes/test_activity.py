"""Threads of a worker that sleep while it has nothing to do."""

from __future__ import annotations

import threading

import pytest

from django_jobqueue.store.notify import News
from django_jobqueue.workers.watchdog import SLEEP_AFTER, Watchdog
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived
from tests.support.waiting import eventually


def has_had_nothing_to_do(watchdog: Watchdog) -> None:
    """For so long that it sleeps at its next round, unless something is held."""
    watchdog._held_at -= 2 * SLEEP_AFTER  # private: a clock that all threads share


def test_a_job_wakes_a_timer_that_sleeps(worker: HandDriven) -> None:
    watchdog = worker.worker.watchdog
    has_had_nothing_to_do(watchdog)
    watchdog.start()
    eventually(lambda: watchdog.sleeps, what="the watchdog to sleep")
    jobs.aslow.enqueue(seconds=60)
    worker.work()
    (job,) = archived()
    assert job.status == "failed"
    assert "longer than its timeout" in job.error_message
    assert watchdog.stop(5)


def test_a_timer_sleeps_only_while_nothing_is_held(worker: HandDriven) -> None:
    watchdog = worker.worker.watchdog
    watchdog.tick()
    jobs.add.enqueue(1)
    worker.claim()
    assert not watchdog.is_woken  # it is awake
    has_had_nothing_to_do(watchdog)
    watchdog.tick()
    assert not watchdog.sleeps
    worker.work()
    has_had_nothing_to_do(watchdog)
    watchdog.tick()
    assert watchdog.sleeps


def test_a_timer_looks_again_when_the_next_timeout_is_reached(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_jobqueue.workers.watchdog.CHECK_EVERY", 3_600.0)
    jobs.stay.enqueue(gate="watchdog")
    jobs.gates["watchdog"] = threading.Event()
    worker.claim()
    (attempt,) = worker.worker.held
    attempt.timeout = 60.0
    eventually(lambda: attempt.started)
    assert 0 < worker.worker.watchdog.tick() <= 60
    jobs.gates["watchdog"].set()
    worker.complete()


def test_a_claim_and_a_call_are_activity(worker: HandDriven) -> None:
    told: list[str] = []
    worker.worker.activity.wakes(lambda: told.append("woken"))
    worker.claim()
    assert told == []
    jobs.add.enqueue(1)
    worker.claim()
    assert told == ["woken"]
    hear = worker.worker._hear  # private: what a listener calls
    hear(News.CONTROL, "another")
    assert told == ["woken"]
    hear(News.CONTROL, str(worker.worker.id))
    assert told == ["woken"] * 2
