"""Runs an attempt: begin, call the handler in its middleware, work out the outcome,
notify."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import Signal

from django_jobqueue import logs, signals
from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import result_to_json
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.exceptions import InvalidResult
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_outcome import NO_RESULT, NotWanted
from django_jobqueue.execution.middleware_chain import GetResult, chain_of
from django_jobqueue.processes.forking import end_if_forked
from django_jobqueue.store.queue.finish import Finished

logger = logging.getLogger("django_jobqueue.attempt")

# The middleware of each job type that has run here.
_chains: dict[str, tuple[Declaration, GetResult | None]] = {}


def run(attempt: Attempt) -> Finished:
    """Run a sync handler in this thread; any exception becomes its outcome.

    It needs neither a worker nor a database: an Attempt made of plain values will do.
    """
    perform(attempt, call)
    return end(attempt)


async def arun(attempt: Attempt) -> Finished:
    """Run an async handler in this task; any exception becomes its outcome."""
    try:
        data = attempt.begin()
        if signals.attempt_started.receivers:
            await _asend_started(attempt)
        attempt.result = result_of(await _call_handler(attempt, data))
        end_if_forked()
    except BaseException as error:
        end_if_forked()
        attempt.error = error
    attempt.leave()
    return await aend(attempt)


def perform(attempt: Attempt, steps: Callable[[Attempt], str]) -> None:
    """Take these steps in this thread; keep their result, or the exception that ended
    them.

    ``interrupt`` may raise its exception in this thread at any point until ``leave``
    has returned, hence the second handler: it gets what comes after the steps have
    ended.
    """
    attempt.thread = threading.get_ident()
    try:
        try:
            attempt.result = steps(attempt)
        except BaseException as error:
            attempt.fail(error)
        attempt.leave()
    except BaseException as late:
        attempt.leave()
        attempt.fail(late)


def call(attempt: Attempt) -> str:
    """Begin, send the signal, call the sync handler; returns its result as JSON."""
    data = attempt.begin()
    try:
        if signals.attempt_started.receivers:
            _send_started(attempt)
        return result_of(_call_handler(attempt, data))
    finally:
        end_if_forked()


def _send_started(attempt: Attempt) -> None:
    job_type, context = attempt.job.job_type, attempt.here()
    signals.send(
        signals.attempt_started, attempt.sender, job_type=job_type, context=context
    )
    end_if_forked()


async def _asend_started(attempt: Attempt) -> None:
    job_type, context = attempt.job.job_type, attempt.here()
    await signals.asend(
        signals.attempt_started, attempt.sender, job_type=job_type, context=context
    )
    end_if_forked()


def result_of(value: Any) -> str:
    """The JSON text of what a handler returned. Raises InvalidResult if it has none."""
    if value is None:
        return NO_RESULT
    try:
        return result_to_json(value, limit=conf.max_result_bytes)
    except InvalidResult:
        if inspect.iscoroutine(value):
            value.close()  # or Python warns that nobody awaited it
        raise


def _call_handler(attempt: Attempt, data: Any) -> Any:
    """Call the handler, in its middleware if there is any; an async handler returns
    an awaitable."""
    declaration = attempt.declaration
    held = _chains.get(declaration.name)
    chain = held[1] if held and held[0] is declaration else _chain_of(declaration)
    if chain is not None:
        return chain(attempt.here())
    if declaration.policy.takes_context:
        return declaration.function(attempt.here(), **data)
    return declaration.function(**data)


def _chain_of(declaration: Declaration) -> GetResult | None:
    """The middleware of this handler; None, as for most, if there is none."""
    chain = chain_of(declaration)
    _chains[declaration.name] = declaration, chain
    return chain


def _changed(*, setting: str, **kwargs: Any) -> None:
    if setting == "JOBQUEUE":
        _chains.clear()


setting_changed.connect(_changed, dispatch_uid="jobqueue.chain")


def end(attempt: Attempt) -> Finished:
    """Work out the outcome, and notify the log, signals and observer of it."""
    if attempt.error is not None and isinstance(attempt.error, NotWanted):
        return attempt.finish_unstarted(attempt.error.outcome)
    attempt.finished = finished = attempt.conclude()
    notify_end(attempt, finished)
    return finished


async def aend(attempt: Attempt) -> Finished:
    """``end`` for an async handler, in its event loop."""
    if isinstance(attempt.error, NotWanted):
        return attempt.finish_unstarted(attempt.error.outcome)
    attempt.finished = finished = attempt.conclude()
    if (notifying := anotify_end(attempt, finished)) is not None:
        await notifying
    return finished


def notify_end(attempt: Attempt, finished: Finished) -> None:
    """Log it, send the signal, call the observer; waits for all of them."""
    if attempt.error is not None or logs.shows_successes:
        _log(attempt, finished)
    failed = attempt.error is not None
    signal = signals.attempt_failed if failed else signals.attempt_succeeded
    if signal.receivers:
        signals.send(signal, attempt.sender, **_arguments(attempt, finished))
    if observer := attempt.declaration.observer:
        observer.on_finished(attempt.here(), finished.outcome, attempt.error)


def anotify_end(
    attempt: Attempt, finished: Finished
) -> Coroutine[Any, Any, None] | None:
    """``notify_end`` for an async handler: returns a coroutine to await in its event
    loop, or None if nobody listens, as for most attempts."""
    if attempt.error is not None or logs.shows_successes:
        _log(attempt, finished)
    if _signal_of(attempt).receivers or attempt.declaration.observer:
        return _anotify(attempt, finished)
    return None


async def _anotify(attempt: Attempt, finished: Finished) -> None:
    signal = _signal_of(attempt)
    if signal.receivers:
        await signals.asend(signal, attempt.sender, **_arguments(attempt, finished))
    if observer := attempt.declaration.observer:
        await observer.aon_finished(attempt.here(), finished.outcome, attempt.error)


def _log(attempt: Attempt, finished: Finished) -> None:
    """Our own lines are written directly, and not by a receiver: sync receivers of an
    async attempt wait for a thread that a handler may block."""
    try:
        if attempt.error is not None:
            outcome, error = finished.outcome, attempt.error
            logs.log_failure(
                attempt.here(), outcome, error, finished.ran, attempt.waited
            )
        else:
            logs.log_success(attempt.here(), finished.ran, attempt.waited)
    except Exception:
        logger.exception("The end of job %s could not be logged", attempt.job.id)


def _signal_of(attempt: Attempt) -> Signal:
    if attempt.error is None:
        return signals.attempt_succeeded
    return signals.attempt_failed


def _arguments(attempt: Attempt, finished: Finished) -> dict[str, Any]:
    """The arguments of the signal."""
    arguments: dict[str, Any] = {
        "job_type": attempt.job.job_type,
        "context": attempt.here(),
        "seconds": finished.ran,
    }
    if attempt.error is not None:
        arguments |= {"outcome": finished.outcome, "error": attempt.error}
    return arguments
