"""Sentry: one event for each final failure, a transaction for each attempt, and
check-ins of schedules.

The parts are in the files beside this one: events, spans and check-ins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import sentry_sdk
from sentry_sdk.integrations import Integration
from sentry_sdk.scope import add_global_event_processor

from django_jobqueue import signals
from django_jobqueue.contrib.telemetry import sentry_checkins, sentry_events
from django_jobqueue.contrib.telemetry.sentry_spans import (
    enqueue_span,
    headers_of,
    process_span,
    status_of,
)
from django_jobqueue.domain.retry_decision import Verb
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.observers import Enqueue, LostAttempt, Observer, observe, trace_of

SUPERVISOR: Final = "django_jobqueue.supervisor"  # the logger
ATTEMPT: Final = "django_jobqueue.attempt"  # likewise


class JobQueueIntegration(Integration):
    """``sentry_sdk.init(integrations=[JobQueueIntegration()])``.

    :param capture_retries: whether failed attempts that will be retried are events,
        too, as warnings.
    :param monitor_schedules: whether schedules are monitors of Sentry Crons.
    """

    identifier = "django_jobqueue"

    def __init__(
        self, *, capture_retries: bool = False, monitor_schedules: bool = True
    ) -> None:
        self.capture_retries = capture_retries
        self.monitor_schedules = monitor_schedules

    @staticmethod
    def setup_once() -> None:
        """Called by the SDK, once in a process."""
        observe(OBSERVER)
        add_global_event_processor(_without_logged_failures)
        signals.process_started.connect(
            _is_child.add, dispatch_uid="jobqueue.sentry", weak=False
        )


def integration() -> JobQueueIntegration | None:
    """The one of the client in force; None if it has none."""
    held = sentry_sdk.get_client().get_integration(JobQueueIntegration)
    return held if isinstance(held, JobQueueIntegration) else None


class SentryObserver(Observer):
    """Has a scope of its own for each attempt."""

    @contextmanager
    def around_enqueue(self, enqueue: Enqueue) -> Iterator[Mapping[str, str]]:
        """Make a span within the caller's; begin the check-in of a schedule."""
        options = integration()
        if options is None:
            yield {}
        elif enqueue.firing is not None:
            is_monitored = options.monitor_schedules
            yield sentry_checkins.remembered(enqueue) if is_monitored else {}
            if enqueue.ids and is_monitored:
                sentry_checkins.begin(enqueue)
        else:
            with enqueue_span(enqueue) as headers:
                yield headers

    @contextmanager
    def around_attempt(self, attempt: Attempt) -> Iterator[None]:
        """Isolate its scope; capture its final failure."""
        options = integration()
        if options is None:
            yield
            return
        job = attempt.job
        trace = trace_of(job.metadata)
        with ExitStack() as stack:
            scope = stack.enter_context(sentry_sdk.isolation_scope())
            scope.clear_breadcrumbs()
            scope.set_tags(sentry_events.tags_of(job.job_type, job.queue, job.attempts))
            scope.add_event_processor(sentry_events.Masking(attempt))
            is_retry = job.attempts > 1 or job.crashes > 0
            span = stack.enter_context(
                process_span(scope, attempt, headers_of(trace), is_retry=is_retry)
            )
            scope.set_transaction_name(job.job_type, source="task")
            yield
            outcome = attempt.outcome
            if outcome is None:
                span.leave_open()
                return
            span.end(status_of(outcome.verb))
            if sentry_events.is_event(outcome, attempt.error, options.capture_retries):
                sentry_events.capture(scope, attempt, outcome)
            if outcome.verb not in AGAIN:
                sentry_checkins.end(trace, job.id, ok=outcome.verb is Verb.SUCCEED)

    def attempt_lost(self, lost: LostAttempt) -> None:
        """Capture the failure of an attempt that could not do so itself."""
        options = integration()
        if options is None:
            return
        if sentry_events.is_event(lost.outcome, None, options.capture_retries):
            sentry_events.capture_lost(lost)
        if lost.outcome.verb not in AGAIN:
            sentry_checkins.end(lost.trace, lost.id, ok=False)

    def flush(self, seconds: float) -> None:
        """Have the transport send what waits."""
        sentry_sdk.flush(timeout=seconds)


OBSERVER: Final = SentryObserver()
AGAIN: Final = frozenset({Verb.RETRY, Verb.SNOOZE, Verb.RELEASE, Verb.HAND_OVER})


class _Children:
    """Knows if this process was forked by the supervisor."""

    is_one = False

    def add(self, **arguments: object) -> None:
        self.is_one = True


_is_child: Final = _Children()


def _without_logged_failures(
    event: dict[str, Any], hint: dict[str, Any]
) -> dict[str, Any] | None:
    """Drop events made of log lines about what is captured here anyway, and those of
    the supervisor: to send one would start a thread in a process that forks."""
    record = hint.get("log_record")
    if record is None or integration() is None:
        return event
    if record.name == SUPERVISOR and not _is_child.is_one:
        return None
    is_end = record.name == ATTEMPT and getattr(record, "event", "")
    return None if is_end else event
