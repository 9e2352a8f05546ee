"""Jobs that come one by one, for long: whatever a worker remembers of a lane between
two claims, it stays able to claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings

from django_jobqueue import PerKey, Rate, job, operations
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.models import ArchivedJob
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from tests.support.hand_driven import HandDriven

ROUNDS = 40  # what doubles each time does not fit into 32 bits
FAST = Rate(1_000_000, per=1, burst=400_000)
BY_KEY = Rate(1_000_000, per=1, burst=400_000, weight="key")
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "at most once": {"delivery": "at_most_once"},
    "limited": {"concurrency": 3},
    "rated": {"rate": FAST},
    "weighed": {"rate": BY_KEY},
    "turns": {"per_key": PerKey("key")},
    "turns with shares": {"per_key": PerKey("key")},
    "capped": {"per_key": PerKey("key", concurrency=2)},
    "capped but one": {"per_key": PerKey("key", concurrency=2)},
    "strict": {"per_key": PerKey("key", concurrency=1, strict=True)},
    "key rate": {"per_key": PerKey("key", rate=FAST)},
}


def work(key: int = 1) -> None: ...


@pytest.fixture(params=KINDS)
def handler(
    request: pytest.FixtureRequest, transactional_db: None
) -> Iterator[Handler[..., Any]]:
    """A job type of each kind."""
    declared = job(**KINDS[request.param])(work)
    job_types.declare(DjangoDatabase(), [declared.declaration])
    if request.param == "turns with shares":
        operations.override_key_share(declared, 1_000, key="1")
    if request.param == "capped but one":
        operations.override_limit(declared, -1, key="1")
    yield declared
    registry.remove(declared.name)


def test_they_are_all_run(
    handler: Handler[..., Any], make_worker: Callable[..., HandDriven]
) -> None:
    with override_settings(JOBQUEUE={"QUEUE_WEIGHTS": {"default": 5}, "AGEING": 60}):
        worker = make_worker(threads=4)
    for number in range(ROUNDS):
        handler.enqueue(1 + number % 3)
        worker.worker.dispatcher.jobs_arrived()
        worker.work()
        assert ArchivedJob.objects.count() == number + 1
