"""The steps of a stop; time is a parameter."""

from __future__ import annotations

from django_jobqueue.processes import shutdown
from django_jobqueue.processes.shutdown import Step, Stopping


def stopping() -> Stopping:
    return Stopping(grace=30, cancel_grace=2)


def test_nothing_is_due_before_a_signal() -> None:
    assert not stopping()
    assert stopping().due(1e9) == []


def test_the_first_signal_drains_then_cancels_then_quits_then_kills() -> None:
    stop = stopping()
    stop.signal(100)
    assert stop.due(100) == [Step.END]
    assert stop.due(129.9) == []
    assert stop.next_at == 130
    assert stop.due(130) == [Step.CANCEL]
    assert stop.due(132) == [Step.QUIT]
    assert stop.due(133) == [Step.KILL]
    assert stop.next_at is None


def test_the_second_signal_quits_at_once_and_more_change_nothing() -> None:
    stop = stopping()
    stop.signal(100)
    stop.due(100)
    stop.signal(101)
    stop.signal(101.5)
    assert stop.due(101.5) == [Step.QUIT]
    assert stop.due(102) == [Step.KILL]
    assert stop.signals == 3


def test_steps_that_were_missed_are_taken_in_order() -> None:
    stop = stopping()
    stop.signal(100)
    assert stop.due(1_000) == [Step.END, Step.CANCEL, Step.QUIT, Step.KILL]


def test_the_steps_within_a_process_fit_into_the_time_that_it_has() -> None:
    assert shutdown.WORKER_WRITES < shutdown.WORKER_QUITS
    steps = shutdown.RECOVERY_ENDS + 2 * shutdown.LOOPS_END + shutdown.SIGNALS_SENT
    assert steps < shutdown.MAINTENANCE_ENDS
