"""Threads of a worker that sleep while it has nothing to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from django_jobqueue.store.notify import News
from django_jobqueue.workers.watchdog import SLEEP_AFTER, Watchdog
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived
from tests.support.waiting import eventually


@pytest.fixture
def watchdog(worker: HandDriven) -> Iterator[Watchdog]:
    """The watchdog of a worker that has had nothing to do for long; it sleeps."""
    watchdog = worker.worker.watchdog
    watchdog._held_at -= 2 * SLEEP_AFTER
    watchdog.start()
    eventually(lambda: watchdog.sleeps, what="the watchdog to sleep")
    yield watchdog
    watchdog.stop(5)


def test_a_job_that_comes_while_the_timer_sleeps_is_ended_at_its_timeout(
    worker: HandDriven, watchdog: Watchdog
) -> None:
    jobs.aslow.enqueue(seconds=60)
    worker.work()
    (job,) = archived()
    assert job.status == "failed"
    assert "longer than its timeout" in job.error_message


def test_a_timer_that_is_awake_is_not_woken_by_a_claim(worker: HandDriven) -> None:
    watchdog = worker.worker.watchdog
    watchdog.tick()
    jobs.add.enqueue(1)
    worker.claim()
    assert not watchdog._woken.is_set()


def test_a_timer_does_not_sleep_while_something_is_held(worker: HandDriven) -> None:
    watchdog = worker.worker.watchdog
    jobs.add.enqueue(1)
    worker.claim()
    watchdog._held_at -= 2 * SLEEP_AFTER
    watchdog.tick()
    assert not watchdog.sleeps
    worker.work()
    watchdog._held_at -= 2 * SLEEP_AFTER
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
