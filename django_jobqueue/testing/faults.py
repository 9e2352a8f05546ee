"""Simulates faults of workers in handlers that ``drain()`` runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.execution.attempt import Attempt

CRASHED: Final = "killed by signal 9 (SIGKILL)"
LAPSED: Final = "its lease lapsed: host lost, cut off or paused"


class WorkerDied(BaseException):
    """The worker dies here, says a test: nobody handles the end of this attempt."""


class MortalAttempt(Attempt):
    """An attempt whose worker may die in it."""

    def _outcome(self, error: BaseException) -> Outcome:
        if isinstance(error, WorkerDied):
            raise error
        return super()._outcome(error)


@dataclass(slots=True)
class Running:
    """The attempt that ``drain()`` runs now."""

    give_up: Callable[[], None]  # its worker, as one whose lease lapsed
    is_lost: bool = False


running: Final[ContextVar[Running | None]] = ContextVar(
    "jobqueue_drained", default=None
)


def crash(*args: Any, **kwargs: Any) -> NoReturn:
    """The worker process dies here, as by SIGKILL, out of memory or a power failure.

    The job is rescued like any other: ``crashes`` goes up, no attempt is spent, and it
    runs again, unless it is of an at-most-once type or reached its maximum. Takes any
    arguments, to stand in for a function that the handler calls. It is a BaseException
    that passes through the handler, so unlike at a real death its ``finally`` blocks
    run. Raises RuntimeError outside ``drain()``.
    """
    _running("crash()")
    raise WorkerDied


def lose_lease(*args: Any, **kwargs: Any) -> None:
    """The worker is presumed dead while the handler runs, and its job given back.

    The handler goes on, but its outcome is refused, and an atomic handler's writes are
    rolled back; the job runs again. Takes any arguments, to stand in for a function
    that the handler calls. Raises RuntimeError outside ``drain()``.
    """
    here = _running("lose_lease()")
    here.is_lost = True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        here.give_up()


def _running(what: str) -> Running:
    here = running.get()
    if here is None:
        raise RuntimeError(f"{what} is for handlers that drain() runs.")
    return here
