"""Which statements a wake sends: the fewer they are, the cheaper is a lone job."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from django_jobqueue.store.connection import EMPTY, OwnConnection, Params
from django_jobqueue.store.queue.claim import CLAIM
from django_jobqueue.store.queue.claim_limited import CLAIM_LIMITED, LOCK_TYPE
from django_jobqueue.store.queue.lanes import PROBE
from tests.sample import jobs
from tests.support.hand_driven import HandDriven


def add() -> None:
    """For the threads."""
    jobs.add.enqueue(1)


def aadd() -> None:
    """For the event loop."""
    jobs.aadd.enqueue(1)


def once() -> None:
    """At most once, so claimed only for a slot that is free."""
    jobs.write_once.enqueue("/dev/null")


def limited() -> None:
    """Of which only two may run at once."""
    jobs.write_limited.enqueue("/dev/null")


class Noted(OwnConnection):
    """A connection that remembers what was sent."""

    def __init__(self) -> None:
        super().__init__("tests")
        self.sent: list[str] = []

    def fetch(self, statement: str, params: Params = EMPTY) -> list[tuple[Any, ...]]:
        self.sent.append(statement)
        return super().fetch(statement, params)

    def fetch_all(
        self, statements: list[tuple[str, Params]]
    ) -> list[list[tuple[Any, ...]]]:
        self.sent += [statement for statement, _ in statements]
        return super().fetch_all(statements)


Enqueue = Callable[[], None]
ALL = [add, aadd, once, limited]


@pytest.mark.parametrize(
    ("known", "by", "statements"),
    [
        ([add], add, [CLAIM]),  # one statement asks all lanes: it is sent at once
        (ALL, aadd, [PROBE, CLAIM]),  # else a probe says which are worth it
        ([once, limited], once, [PROBE, CLAIM]),
        ([once, limited], limited, [PROBE, LOCK_TYPE, CLAIM_LIMITED]),
    ],
)
def test_an_idle_worker_sends_few_statements_for_one_more_job(
    worker: HandDriven,
    monkeypatch: pytest.MonkeyPatch,
    known: list[Enqueue],
    by: Enqueue,
    statements: list[str],
) -> None:
    for enqueue in known:
        enqueue()
    worker.work()
    by()
    worker.dispatcher.jobs_arrived()
    noted = Noted()
    with monkeypatch.context() as patch:
        patch.setattr(worker.dispatcher.scanner, "next_at", inf)  # that of every second
        for owner in (worker.dispatcher.claimer, worker.dispatcher.scanner):
            patch.setattr(owner, "_connection", noted)  # private: to see what is sent
        worker.claim()
    noted.close()
    assert worker.held == 1
    assert noted.sent == statements
