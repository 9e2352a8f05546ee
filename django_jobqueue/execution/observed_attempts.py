"""Attempts with observers around them, and those whose end observers could not see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from django_jobqueue import observers
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.observers import LostAttempt, around_attempt, trace_of
from django_jobqueue.processes.forking import end_if_forked
from django_jobqueue.store.queue.finish import Finished

Run = Callable[[Attempt], Finished]
AsyncRun = Callable[[Attempt], Awaitable[Finished]]


def observed(run: Run) -> Run:
    """Return the same function with the observers of this moment around each attempt;
    the function itself if none sees attempts, so that they cost nothing."""
    if not observers.see_attempts():
        return run

    def run_observed(attempt: Attempt) -> Finished:
        with around_attempt(attempt):
            try:
                return run(attempt)
            except Exception:
                return _broken(attempt)
            finally:
                _observe_end(attempt)

    return run_observed


def aobserved(run: AsyncRun) -> AsyncRun:
    """``observed`` for async handlers."""
    if not observers.see_attempts():
        return run

    async def run_observed(attempt: Attempt) -> Finished:
        with around_attempt(attempt):
            try:
                return await run(attempt)
            except Exception:
                return _broken(attempt)
            finally:
                _observe_end(attempt)

    return run_observed


def report_lost(attempt: Attempt, finished: Finished) -> None:
    """Report an attempt that hangs, and whose outcome another thread recorded."""
    if not observers.registered or attempt.observed or attempt.lost:
        return
    attempt.lost = True
    job = attempt.job
    observers.report_lost(
        LostAttempt(
            id=job.id,
            job_type=job.job_type,
            queue=job.queue,
            attempt=job.attempts,
            crashes=job.crashes,
            seconds=finished.ran,
            waited=attempt.waited,
            worker=attempt.worker,
            outcome=finished.outcome,
            trace=trace_of(job.metadata),
        )
    )


def _broken(attempt: Attempt) -> Finished:
    """The outcome of an attempt whose end raised."""
    end_if_forked()
    attempt.finished = finished = attempt.finish_broken()
    return finished


def _observe_end(attempt: Attempt) -> None:
    """From here on its observers know the outcome, unless it was lost before."""
    attempt.observed = not attempt.lost
