"""When lanes are claimed in which the order of each key is strict."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue import PerKey, Rate, Retry, current_job, operations
from django_jobqueue.models import QueuedJob
from django_jobqueue.testing import drain
from tests.support.hand_driven import Make
from tests.support.waiting import eventually

ran: list[str] = []


def apply_event(order: int, event: str, fails: int = 0, wait: float = 3_600) -> None:
    """Fail so often, and be tried again after so many seconds."""
    ran.append(f"{order}-{event}")
    if current_job().attempt <= fails:
        raise Retry("not yet", after=timedelta(seconds=wait))


@pytest.fixture(params=[None, Rate(1_000, per=1)], ids=["plain", "rated"])
def handler(request: pytest.FixtureRequest, declare: Callable[..., Any]) -> Any:
    ran.clear()
    per_key = PerKey("order", concurrency=1, strict=True, rate=request.param)
    return declare(apply_event, per_key=per_key, max_attempts=5)


def become_due(event: str) -> None:
    """The time of its retry has come."""
    past = timezone.now() - timedelta(seconds=1)
    assert QueuedJob.objects.filter(data__event=event).update(run_after=past) == 1


def test_what_follows_a_retry_waits_for_it(handler: Any, make_worker: Make) -> None:
    worker = make_worker(threads=4)
    handler.enqueue(1, "created", fails=1)
    handler.enqueue_many({"order": n, "event": "paid"} for n in (1, 2))
    worker.work()
    assert sorted(ran) == ["1-created", "2-paid"]
    selection = worker.dispatcher.lane_selection
    assert 0 < selection.next_starts.seconds <= 1.1
    assert worker.worker.is_idle  # a drain does not wait for it

    become_due("created")
    selection.next_starts.ask_all()
    worker.work()
    assert ran[2:] == ["1-created", "1-paid"]
    assert not QueuedJob.objects.exists()


def test_the_retry_starts_when_it_is_due(handler: Any, make_worker: Make) -> None:
    worker = make_worker(threads=4)
    handler.enqueue(1, "created", fails=2, wait=0.1)
    handler.enqueue(1, "paid")
    worker.work()
    assert worker.dispatcher.lane_selection.next_starts.seconds <= 0.11

    def is_over() -> bool:
        worker.work()
        return not QueuedJob.objects.exists()

    eventually(is_over)
    assert ran == ["1-created"] * 3 + ["1-paid"]


def test_a_drain_of_tests_leaves_what_waits_for_a_retry(handler: Any) -> None:
    handler.enqueue(1, "created", fails=1)
    handler.enqueue(1, "paid")
    drain()
    assert ran == ["1-created"]

    operations.run_now(QueuedJob.objects.get(data__event="created").pk)
    drain()
    assert ran == ["1-created", "1-created", "1-paid"]
