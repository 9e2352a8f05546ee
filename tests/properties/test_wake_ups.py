"""No wake-up is lost, in whichever order transactions begin, commit and are seen: all
interleavings of those that enqueue at the same time, of a listener and a worker.

A model of what ``store/notify.py`` says in SQL, at the boundaries of statements. Locks
are held until the commit, notifications are sent at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import pytest


class Step(IntEnum):
    """How far one is that enqueues."""

    BEGIN = 0
    TOLD = 1  # it has the first lock
    LEFT = 2  # it has not
    COMMITTED = 3
    TELLING = 4  # it has the second lock
    OVER = 5


class State(NamedTuple):
    """Where everybody is."""

    steps: tuple[Step, ...]  # of each that enqueues
    first: int | None = None  # who has the first lock
    second: int | None = None  # and the second one
    heard: bool = False  # a notification was sent, and the worker has not looked since
    seen: frozenset[int] = frozenset()  # whose jobs a look has found


def next_states(state: State, *, leaves_it: bool) -> Iterator[State]:
    """What may happen next. ``leaves_it``: those without the first lock say nothing
    after their commit either."""
    if state.heard:
        committed = {n for n, step in enumerate(state.steps) if step >= Step.COMMITTED}
        yield state._replace(heard=False, seen=state.seen | committed)
    for n, step in enumerate(state.steps):
        if step != Step.OVER:
            after, changes = next_step(state, n, leaves_it=leaves_it)
            steps = (*state.steps[:n], after, *state.steps[n + 1 :])
            yield state._replace(steps=steps, **changes)


def next_step(state: State, n: int, *, leaves_it: bool) -> tuple[Step, dict[str, Any]]:
    """Where one of them is next, and what else changes."""
    match state.steps[n]:
        case Step.BEGIN:  # the INSERT
            return (
                (Step.LEFT, {})
                if state.first is not None
                else (Step.TOLD, {"first": n})
            )
        case Step.TOLD:
            return Step.OVER, {"first": None, "heard": True}
        case Step.LEFT:
            return Step.OVER if leaves_it else Step.COMMITTED, {}
        case Step.COMMITTED:  # NOTIFY_AFTER
            return (
                (Step.OVER, {})
                if state.second is not None
                else (Step.TELLING, {"second": n})
            )
        case _:
            return Step.OVER, {"second": None, "heard": True}


def lost(enqueuers: int, *, leaves_it: bool = False) -> set[frozenset[int]]:
    """Jobs that nobody has seen when nothing happens any more, in some order."""
    begin = State((Step.BEGIN,) * enqueuers)
    known, left, ends = {begin}, [begin], set()
    while left:
        state = left.pop()
        following = set(next_states(state, leaves_it=leaves_it))
        if not following:
            ends.add(frozenset(range(enqueuers)) - state.seen)
        left += following - known
        known |= following
    return ends - {frozenset()}


@pytest.mark.dear
@pytest.mark.parametrize("enqueuers", range(1, 6))
def test_every_job_is_seen_in_every_order(enqueuers: int) -> None:
    assert lost(enqueuers) == set()


def test_a_job_may_be_lost_if_it_is_left_to_those_that_commit_first() -> None:
    assert lost(2, leaves_it=True)
