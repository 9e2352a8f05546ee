"""When a worker is notified of jobs, and when it polls for them."""

from __future__ import annotations

from collections.abc import Iterable

from django_jobqueue.models import Worker
from django_jobqueue.workers.claiming.next_step import (
    APART,
    FAST_AFTER,
    POLL,
    Because,
    Known,
    Wait,
    fast_since,
)
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived
from tests.support.tables import differing

CLAIM = APART * 2  # seconds
SOON = APART * 0.8
ROUNDS = round(FAST_AFTER / (CLAIM + SOON)) + 2


def is_stream(rounds: Iterable[tuple[int, float]]) -> bool:
    """Whether rounds are that claim so many jobs so long after the last one."""
    known, ended = Known(), 100.0
    for taken, pause in rounds:
        known.begin(ended + pause)
        ended, known.taken = known.began + CLAIM, taken
        since = fast_since(known, ended)
        known.end(Wait(0.0, Because.IDLE), ended)
    return ended - since >= FAST_AFTER


def test_claims_soon_after_each_other_for_a_while_are_a_stream() -> None:
    fast = [(1, SOON)] * ROUNDS
    rows = [
        (fast, True),
        ([(1, SOON)] * 3, False),
        ([(1, APART * 2)] * ROUNDS, False),  # there are rests between them
        ([*fast, (0, SOON)], False),  # a round that finds nothing ends it
        ([*fast, (0, SOON), (1, SOON)], False),
        ([*fast, *[(5, POLL + APART)] * 10], True),  # it is polled for
    ]
    assert differing(rows, is_stream) == []


def test_a_worker_polls_for_a_stream_of_jobs(worker: HandDriven) -> None:
    worker.get_notifications()
    dispatcher = worker.dispatcher
    worker.claim()
    assert Worker.objects.get().listening
    jobs.add.enqueue(1)
    dispatcher.jobs_arrived()
    # private: for as long as the clock has run
    dispatcher._known.fast_since = 0.0
    assert worker.claim() == POLL
    assert not Worker.objects.get().listening
    jobs.add.enqueue(2)
    assert worker.claim() == POLL
    worker.complete()
    assert len(archived()) == 2
    while not Worker.objects.get().listening:  # the stream has ended
        wait = worker.claim()
    assert wait == 0.0  # it looks once more: nobody notified it until now
