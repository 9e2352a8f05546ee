"""Nobody waits for a poll: after each end the worker looks, or knows that nothing may
run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_jobqueue import PerKey, job
from django_jobqueue.domain.registry import registry
from django_jobqueue.processes.idle import ListeningFlag
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import queued

pytestmark = pytest.mark.django_db(transaction=True)

Make = Callable[..., HandDriven]
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


@pytest.fixture(params=POLICIES)
def handler(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[Any]:
    """A handler with one of the policies."""
    handler = job(**POLICIES[request.param])(of_key)
    job_types.declare(DjangoDatabase(), [handler.declaration])
    yield handler
    registry.remove(handler.name)


@pytest.fixture
def told(make_worker: Make, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """A worker that is told of every new job, and so does not poll. The function has
    one round of all its loops, and returns whether it goes on by itself."""
    monkeypatch.setattr(ListeningFlag, "is_known", True)
    worker = make_worker(threads=8, async_slots=0)
    dispatcher = worker.worker.dispatcher
    dispatcher._gets_notifications = lambda: True

    def round() -> bool:
        dispatcher._woken.clear()
        seconds = worker.claim()
        worker.run()
        worker.finish()
        return seconds == 0 or dispatcher._woken.is_set()

    while round():
        pass
    dispatcher.jobs_arrived()
    return round


@pytest.mark.parametrize("other_lanes", [0, 3])
@pytest.mark.parametrize("keys", [1, 2, 5])
def test_no_slot_is_idle_until_a_poll_while_a_job_may_run(
    handler: Any, told: Callable[[], bool], keys: int, other_lanes: int
) -> None:
    """Neither of the first jobs, nor when they came and were seen together."""
    for number in range(other_lanes):
        jobs.add.using(queue=f"other-{number}").enqueue(1)
    for _ in range(2):
        for number in range(12):
            handler.enqueue(number % keys)
        while told():
            pass
        assert not queued()
