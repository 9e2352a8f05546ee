"""Nobody waits for a poll: after each end the worker looks, or knows that nothing may
run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import PerKey
from django_jobqueue.conf import conf
from django_jobqueue.workers.claiming import next_step
from django_jobqueue.workers.claiming.next_step import SCAN_EVERY
from tests.sample import jobs
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import queued

pytestmark = pytest.mark.django_db(transaction=True)

POLICIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "limited": {"concurrency": 2},
    "at most once": {"delivery": "at_most_once"},
    "limited, at most once": {"delivery": "at_most_once", "concurrency": 2},
    "by key": {"per_key": PerKey("key", concurrency=2)},
    "by key, limited": {"per_key": PerKey("key", concurrency=2), "concurrency": 3},
    "by key, strict": {"per_key": PerKey("key", concurrency=1, strict=True)},
    "keys in turn": {"per_key": PerKey("key")},
}


def of_key(key: int) -> None: ...


@pytest.mark.parametrize("policy", POLICIES)
def test_no_slot_is_idle_until_a_poll_while_a_job_may_run(
    declare: Callable[..., Any],
    make_worker: Make,
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
) -> None:
    """Neither of the first jobs, nor when they came and were seen together."""
    handler = declare(of_key, **POLICIES[policy])
    monkeypatch.setattr(next_step, "KNOWN_AFTER", -1.0)
    worker = make_worker(threads=8, async_slots=0)
    worker.get_notifications()

    def goes_on() -> bool:
        """Have one round of all its loops; whether it has another one by itself."""
        seconds = worker.claim()
        worker.complete()
        return seconds == 0 or worker.dispatcher.is_woken

    waiting: list[tuple[int, int, int]] = []
    for other_lanes in (0, 3):
        for number in range(other_lanes):
            jobs.add.using(queue=f"other-{number}").enqueue(1)
        worker.work()
        for keys in (1, 5):
            for round in (1, 2):
                handler.enqueue_many([{"key": n % keys} for n in range(8)])
                if round == 1:
                    worker.dispatcher.jobs_arrived()
                while goes_on():
                    pass
                if queued():
                    waiting.append((other_lanes, keys, round))
                    worker.work()
    assert waiting == []


def test_a_lane_that_the_worker_did_not_know_waits_for_a_scan_and_not_for_a_poll(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told of it together with another one, and finds jobs of that one."""
    monkeypatch.setattr(next_step, "KNOWN_AFTER", -1.0)
    worker.get_notifications()
    jobs.add.enqueue(1)
    worker.work()
    while worker.claim() < conf.poll_interval:
        pass
    jobs.add.using(queue="new").enqueue(1)
    jobs.add.enqueue(1)
    worker.dispatcher.jobs_arrived()
    assert worker.claim() <= SCAN_EVERY
    worker.work()
    assert not queued()


def test_a_job_that_is_due_after_another_one_of_its_lane_waits_for_no_poll(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan saw the first one alone."""
    monkeypatch.setattr(next_step, "KNOWN_AFTER", -1.0)
    worker.get_notifications()
    while worker.claim() < conf.poll_interval:
        pass
    jobs.add.enqueue(1)
    jobs.add.using(run_after=timedelta(seconds=3)).enqueue(2)
    worker.dispatcher.jobs_arrived()
    assert worker.claim() <= SCAN_EVERY
    assert worker.held == 1
    assert worker.claim() <= 3
