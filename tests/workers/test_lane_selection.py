"""Which statements a wake sends: the fewer they are, the cheaper is a lone job."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from django_jobqueue.store.connection import EMPTY, OwnConnection, Params
from django_jobqueue.store.queue.claim import CLAIM, CLAIM_LIMITED, LOCK_TYPE
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


Wake = Callable[..., list[str]]


@pytest.fixture
def wake(worker: HandDriven, monkeypatch: pytest.MonkeyPatch) -> Wake:
    """What an idle worker that knows the lanes of these jobs sends for one more job
    until it has it."""

    def wake(*known: Callable[[], None], by: Callable[[], None]) -> list[str]:
        for enqueue in known:
            enqueue()
        worker.work()
        dispatcher = worker.worker.dispatcher
        by()
        dispatcher.jobs_arrived()
        noted = Noted()
        with monkeypatch.context() as patch:
            patch.setattr(dispatcher.scanner, "next_at", inf)  # that of every second
            for owner in (dispatcher.claimer, dispatcher.scanner):
                patch.setattr(owner, "_connection", noted)
            worker.claim()
        noted.close()
        assert len(worker.worker.held) == 1
        return noted.sent

    return wake


def test_where_one_statement_asks_all_lanes_it_is_sent_at_once(wake: Wake) -> None:
    assert wake(add, by=add) == [CLAIM]


def test_where_more_are_needed_a_glance_says_which_are_worth_it(wake: Wake) -> None:
    assert wake(add, aadd, once, limited, by=aadd) == [PROBE, CLAIM]


@pytest.mark.parametrize(
    ("by", "statements"), [(once, [CLAIM]), (limited, [LOCK_TYPE, CLAIM_LIMITED])]
)
def test_a_lane_that_is_asked_by_itself_is_asked_when_it_has_a_job(
    wake: Wake, by: Callable[[], None], statements: list[str]
) -> None:
    assert wake(once, limited, by=by) == [PROBE, *statements]
