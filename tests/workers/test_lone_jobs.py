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
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from tests.support.hand_driven import HandDriven
from tests.support.selection import some_slow

ROUNDS = 34  # what doubles each time does not fit into 32 bits
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
ALONE = some_slow(KINDS, ["plain", "limited", "turns with shares"], "further kinds")


def work(key: int = 1) -> None: ...


@pytest.fixture
def declare(transactional_db: None) -> Iterator[Callable[[str], Handler[..., Any]]]:
    """Declare a job type of this kind."""
    names: list[str] = []

    def declare(kind: str) -> Handler[..., Any]:
        declared = job(name=f"tests.lone_{len(names)}", **KINDS[kind])(work)
        names.append(declared.name)
        job_types.declare(DjangoDatabase(), [declared.declaration])
        if kind == "turns with shares":
            operations.override_key_share(declared, 1_000, key="1")
        if kind == "capped but one":
            operations.override_limit(declared, -1, key="1")
        return declared

    yield declare
    for name in names:
        registry.remove(name)


@pytest.mark.parametrize("kinds", [*ALONE, "all beside each other"])
def test_they_are_all_run(
    declare: Callable[[str], Handler[..., Any]],
    make_worker: Callable[..., HandDriven],
    kinds: str,
) -> None:
    handlers = [declare(kind) for kind in ([kinds] if kinds in KINDS else KINDS)]
    with override_settings(JOBQUEUE={"QUEUE_WEIGHTS": {"default": 5}, "AGEING": 60}):
        worker = make_worker(threads=len(handlers))
    for number in range(ROUNDS):
        for handler in handlers:
            handler.enqueue(1 + number % 3)
        worker.dispatcher.jobs_arrived()
        worker.turn()
        assert worker.worker.finished == (number + 1) * len(handlers)
        worker.claim()  # finds nothing more
        assert worker.worker.is_idle
