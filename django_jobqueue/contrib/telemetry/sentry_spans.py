"""Sentry's spans, by both of its APIs: transactions, and spans that are streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import sentry_sdk

from django_jobqueue.domain.retry_decision import Verb
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.observers import Enqueue

try:  # newer than the oldest SDK that we support
    from sentry_sdk import traces
    from sentry_sdk.tracing_utils import has_span_streaming_enabled
except ImportError:
    traces = None

    def has_span_streaming_enabled(options: Any) -> bool:
        """True if spans are streamed: never."""
        return False


ORIGIN: Final = "auto.queue.django_jobqueue"
PUBLISH, PROCESS = "queue.publish", "queue.process"
HEADERS: Final = ("sentry-trace", "baggage")
STATUSES: Final[Mapping[Verb, str]] = {
    Verb.SUCCEED: "ok",
    Verb.FAIL: "internal_error",
    Verb.RETRY: "internal_error",
    Verb.SNOOZE: "ok",
    Verb.CANCEL: "cancelled",
    Verb.RELEASE: "aborted",
    Verb.EXPIRE: "deadline_exceeded",
    Verb.HAND_OVER: "ok",
}


def status_of(verb: Verb) -> str:
    """The status of the span of an attempt."""
    return STATUSES[verb]


def headers_of(trace: Mapping[str, str]) -> dict[str, str]:
    """The headers that continue the producer's trace."""
    return {name: trace[name] for name in HEADERS if name in trace}


class ProcessSpan:
    """The span of an attempt."""

    def __init__(self, span: Any, *, is_streamed: bool) -> None:
        self.span = span
        self.is_open = False  # for good: its end is reported by others
        self._is_streamed = is_streamed

    def end(self, status: str) -> None:
        """Set its status; leaving the context ends it."""
        if self._is_streamed:
            is_ok = status in ("ok", "cancelled")
            self.span.status = "ok" if is_ok else "error"
        else:
            self.span.set_status(status)

    def leave_open(self) -> None:
        """Never send it."""
        self.is_open = True


@contextmanager
def process_span(
    scope: sentry_sdk.Scope,
    attempt: Attempt,
    headers: dict[str, str],
    *,
    is_retry: bool,
) -> Iterator[ProcessSpan]:
    """The span of an attempt: the first one continues the producer's trace, each retry
    begins one that refers to it."""
    data = _data_of(attempt)
    if is_retry and "sentry-trace" in headers:
        data["sentry.previous_trace"] = headers["sentry-trace"]
        headers = {}
    name = attempt.job.job_type
    if has_span_streaming_enabled(sentry_sdk.get_client().options):
        traces.new_trace()
        traces.continue_trace(headers)
        attributes = {"sentry.op": PROCESS, "sentry.origin": ORIGIN, **data}
        span: Any = traces.start_span(
            name=name, attributes=attributes, parent_span=None
        )
        made = ProcessSpan(span, is_streamed=True)
    else:
        scope.set_new_propagation_context()
        transaction = sentry_sdk.continue_trace(
            headers, op=PROCESS, name=name, source="task", origin=ORIGIN
        )
        span = sentry_sdk.start_transaction(transaction)
        for key, value in data.items():
            span.set_data(key, value)
        made = ProcessSpan(span, is_streamed=False)
        span.__enter__()
    try:
        yield made
    finally:
        if not made.is_open:
            latency = "messaging.message.receive.latency"
            _set(span, latency, round(max(0.0, attempt.waited) * 1_000, 3))
            span.__exit__(None, None, None)


@contextmanager
def enqueue_span(enqueue: Enqueue) -> Iterator[dict[str, str]]:
    """A span of an enqueue within the caller's, if that is sampled; returns the headers
    that jobs remember."""
    is_streamed = has_span_streaming_enabled(sentry_sdk.get_client().options)
    scope = sentry_sdk.get_current_scope()
    parent: Any = scope.streamed_span if is_streamed else scope.span
    if parent is None or not parent.sampled:
        yield {}
        return
    name = enqueue.job_type or "replay"
    span: Any
    if is_streamed:
        attributes = {"sentry.op": PUBLISH, "sentry.origin": ORIGIN}
        span = traces.start_span(name=name, attributes=attributes)
    else:
        span = sentry_sdk.start_span(op=PUBLISH, name=name, origin=ORIGIN)
    with span:
        yield dict(scope.iter_trace_propagation_headers(span=span))
        _set(span, "messaging.system", "django_jobqueue")
        _set(span, "messaging.message.body.size", enqueue.size)
        if enqueue.queue is not None:
            _set(span, "messaging.destination.name", enqueue.queue)
        if len(enqueue.ids) == 1:
            _set(span, "messaging.message.id", str(enqueue.ids[0]))


def _data_of(attempt: Attempt) -> dict[str, Any]:
    """As Sentry's page of queues reads it."""
    job = attempt.job
    return {
        "messaging.system": "django_jobqueue",
        "messaging.destination.name": job.queue,
        "messaging.message.id": str(job.id),
        "messaging.message.body.size": len(job.data.encode()),
        "messaging.message.retry.count": job.attempts - 1,
    }


def _set(span: Any, name: str, value: Any) -> None:
    if hasattr(span, "set_attribute"):
        span.set_attribute(name, value)
    else:
        span.set_data(name, value)
