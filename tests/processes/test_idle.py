"""When a worker is notified of jobs, and when it polls for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from django_jobqueue.models import Worker
from django_jobqueue.processes.idle import (
    APART,
    FAST_AFTER,
    POLL,
    BurstDetector,
)
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived

Make = Callable[..., HandDriven]

CLAIM = APART * 2  # seconds
SOON = APART * 0.8
ROUNDS = round(FAST_AFTER / (CLAIM + SOON)) + 2


def stream(rounds: Iterable[tuple[int, float]]) -> BurstDetector:
    """What rounds make of it that claim so many jobs so long after the last one."""
    made, ended = BurstDetector(), 100.0
    for taken, pause in rounds:
        began = ended + pause
        ended = began + CLAIM
        made.see(taken, began, ended)
    return made


def test_claims_soon_after_each_other_for_a_while_are_a_stream() -> None:
    assert stream([(1, SOON)] * ROUNDS).is_fast
    assert not stream([(1, SOON)] * 3).is_fast


def test_claims_with_rests_between_them_are_none() -> None:
    assert not stream([(1, APART * 2)] * ROUNDS).is_fast


def test_a_round_that_finds_nothing_ends_a_stream() -> None:
    fast = [(5, SOON)] * ROUNDS
    assert not stream([*fast, (0, SOON)]).is_fast
    assert not stream([*fast, (0, SOON), (1, SOON)]).is_fast


def test_a_stream_goes_on_while_it_is_polled_for() -> None:
    polls = [(5, POLL + APART)] * 10
    assert stream([(5, SOON)] * ROUNDS + polls).is_fast


@pytest.fixture
def hearing(worker: HandDriven) -> HandDriven:
    """A worker that hears notifications, and wants them."""
    dispatcher = worker.worker.dispatcher
    dispatcher._gets_notifications = lambda: True
    worker.claim()
    assert Worker.objects.get().listening
    return worker


def test_a_worker_polls_for_a_stream_of_jobs_and_wants_no_notifications(
    hearing: HandDriven,
) -> None:
    dispatcher = hearing.worker.dispatcher
    jobs.add.enqueue(1)
    dispatcher.jobs_arrived()
    dispatcher._bursts.is_fast = True  # for as long as the clock has run
    dispatcher._bursts._since = 0.0
    assert hearing.claim() == POLL
    assert not Worker.objects.get().listening
    jobs.add.enqueue(2)
    assert hearing.claim() == POLL
    hearing.run()
    hearing.finish()
    assert len(archived()) == 2


def test_a_worker_wants_notifications_again_when_a_stream_has_ended(
    hearing: HandDriven,
) -> None:
    dispatcher = hearing.worker.dispatcher
    dispatcher._listening.put(False)
    assert hearing.claim() == 0.0  # looks once more: nobody notified it until now
    assert Worker.objects.get().listening
