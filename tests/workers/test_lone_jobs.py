"""Jobs that come one by one, for long: whatever a worker remembers of a lane between
two claims, it stays able to claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import override_settings

from django_jobqueue import PerKey, Rate, operations
from tests.support.hand_driven import Make
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
ALONE = some_slow(KINDS, [], "all are asked beside each other")


def work(key: int = 1) -> None: ...


@pytest.mark.parametrize("kinds", [*ALONE, "all beside each other"])
def test_they_are_all_run(
    declare: Callable[..., Any], make_worker: Make, kinds: str
) -> None:
    handlers = []
    for kind in [kinds] if kinds in KINDS else KINDS:
        handler = declare(work, name=f"tests.lone_{len(handlers)}", **KINDS[kind])
        handlers.append(handler)
        if kind == "turns with shares":
            operations.override_key_share(handler, 1_000, key="1")
        if kind == "capped but one":
            operations.override_limit(handler, -1, key="1")
    with override_settings(JOBQUEUE={"QUEUE_WEIGHTS": {"default": 5}, "AGEING": 60}):
        worker = make_worker(threads=len(handlers))
    for number in range(ROUNDS):
        for handler in handlers:
            handler.enqueue(1 + number % 3)
        worker.turn(told=True)
        assert worker.worker.finished == (number + 1) * len(handlers)
        worker.claim()  # finds nothing more
        assert worker.worker.is_idle
