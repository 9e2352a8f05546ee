"""OpenTelemetry: a span for each enqueue and each attempt, in one trace.

Spans follow the semantic conventions for messaging of the version in ``SCHEMA``. No
span has the data of a job; errors are masked as in the admin.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    TracerProvider,
    get_current_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from django_jobqueue.conf import conf
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.domain.states import AttemptEnd
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.metrics.label_sets import queue_label
from django_jobqueue.observers import (
    ORIGIN,
    Enqueue,
    LostAttempt,
    Observer,
    observe,
    stop_observing,
    trace_of,
)

SCHEMA: Final = "https://opentelemetry.io/schemas/1.30.0"
SYSTEM: Final = "django_jobqueue"
DISTANT: Final = 3_600.0  # seconds after its enqueue; a job due later has its own trace
OUTCOMES: Final[Mapping[Verb, str]] = {
    Verb.SUCCEED: "succeeded",
    Verb.FAIL: "failed",
    Verb.RETRY: "retried",
    Verb.SNOOZE: "snoozed",
    Verb.CANCEL: "cancelled",
    Verb.RELEASE: "released",
    Verb.EXPIRE: "expired",
    Verb.HAND_OVER: "handed over",
}

# Those of the W3C, whatever the project uses for its requests: workers of every release
# must be able to read them.
_trace_context: Final = TraceContextTextMapPropagator()
_baggage: Final = W3CBaggagePropagator()


class JobQueueInstrumentor(BaseInstrumentor):
    """Makes spans: ``JobQueueInstrumentor().instrument()``, before workers start. The
    command ``opentelemetry-instrument`` finds it by itself."""

    _observer: TracingObserver | None = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """None but the package that it comes with."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        self._observer = TracingObserver(kwargs.get("tracer_provider"))
        observe(self._observer)

    def _uninstrument(self, **kwargs: Any) -> None:
        if self._observer is not None:
            stop_observing(self._observer)


class TracingObserver(Observer):
    """Makes a span for each enqueue and each attempt.

    A span that is never ended is never exported: that of an attempt whose end is
    reported by others, and of a firing that another host makes.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        # A proxy, if the project sets its provider later, as after the fork.
        self._tracer: Tracer = trace.get_tracer(
            SYSTEM,
            version("django-jobqueue"),
            tracer_provider=provider,
            schema_url=SCHEMA,
        )

    @contextmanager
    def around_enqueue(self, enqueue: Enqueue) -> Iterator[Mapping[str, str]]:
        """Make a PRODUCER span; its context is what attempts belong to."""
        operation = "replay" if enqueue.is_replay else "enqueue"
        is_firing = enqueue.firing is not None
        span = self._tracer.start_span(
            f"{operation} {enqueue.job_type}".rstrip(),
            context=Context() if is_firing else None,
            kind=SpanKind.PRODUCER,
            attributes=_of_enqueue(enqueue, operation),
        )
        try:
            if is_firing:  # several are made at once
                yield _carrier(span)
            else:
                with _used(span, get_current()):
                    yield _carrier(span)
        except BaseException as error:
            # Its text may have a part of the data.
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute("error.type", type(error).__qualname__)
            span.end()
            raise
        if enqueue.ids:
            span.set_attributes(_of_jobs(enqueue))
            span.end()

    @contextmanager
    def around_attempt(self, attempt: Attempt) -> Iterator[None]:
        """Make a CONSUMER span around it."""
        job = attempt.job
        carrier = trace_of(job.metadata)
        span = self._start_attempt(
            job.job_type, carrier, is_distant=job.due - job.created > DISTANT
        )
        if span.is_recording():
            span.set_attributes(
                {
                    **_destination(job.queue),
                    "messaging.message.id": str(job.id),
                    "messaging.message.body.size": len(job.data.encode()),
                    "jobqueue.attempt": job.attempts,
                    "jobqueue.crashes": job.crashes,
                    "jobqueue.worker": attempt.worker,
                }
            )
        context = _context_of(carrier) if conf.trace_baggage else Context()
        with _used(span, context):
            yield
        outcome = attempt.outcome
        if outcome is not None:
            waited = attempt.waited if attempt.started else job.waited
            span.set_attribute("jobqueue.wait_seconds", max(0.0, waited))
            _end(span, outcome)

    def attempt_lost(self, lost: LostAttempt) -> None:
        """Make the span of an attempt that could not end its own."""
        ended = time.time()
        began = ended - lost.seconds
        span = self._start_attempt(
            lost.job_type, dict(lost.trace), start_time=round(began * 1e9)
        )
        span.set_attributes(
            {
                **_destination(lost.queue),
                "messaging.message.id": str(lost.id),
                "jobqueue.attempt": lost.attempt,
                "jobqueue.crashes": lost.crashes,
                "jobqueue.worker": lost.worker,
                "jobqueue.wait_seconds": lost.waited,
            }
        )
        _end(span, lost.outcome)

    def flush(self, seconds: float) -> None:
        """Have the provider of the SDK export what waits."""
        provider = self._provider or trace.get_tracer_provider()
        force_flush = getattr(provider, "force_flush", None)
        if force_flush is not None:
            force_flush(round(seconds * 1_000))

    def _start_attempt(
        self,
        job_type: str,
        carrier: dict[str, str],
        *,
        is_distant: bool = False,
        start_time: int | None = None,
    ) -> Span:
        """A child of the enqueue's span that also links to it; else a root that links.
        What a replay refers to is only linked."""
        enqueued = _context_of(carrier)
        creation = get_current_span(enqueued).get_span_context()
        origin = _context_of({"traceparent": carrier.get(ORIGIN, "")})
        links = [
            Link(one)
            for one in (creation, get_current_span(origin).get_span_context())
            if one.is_valid
        ]
        is_root = is_distant or conf.trace_relation == "link"
        return self._tracer.start_span(
            f"process {job_type}",
            context=Context() if is_root else enqueued,
            kind=SpanKind.CONSUMER,
            links=links,
            start_time=start_time,
            attributes={
                "messaging.system": SYSTEM,
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "jobqueue.job_type": job_type,
            },
        )


@contextmanager
def _used(span: Span, context: Context) -> Iterator[None]:
    """Make it the current span, in this context."""
    token = attach(trace.set_span_in_context(span, context))
    try:
        yield
    finally:
        detach(token)


def _carrier(span: Span) -> dict[str, str]:
    """The job's memory of its trace: empty for a span that is not recorded."""
    carrier: dict[str, str] = {}
    if span.is_recording():
        _trace_context.inject(carrier, trace.set_span_in_context(span))
        if conf.trace_baggage:
            _baggage.inject(carrier)
    return carrier


def _context_of(carrier: dict[str, str]) -> Context:
    context = _trace_context.extract(carrier, Context())
    return _baggage.extract(carrier, context) if conf.trace_baggage else context


def _of_enqueue(enqueue: Enqueue, operation: str) -> dict[str, str]:
    attributes = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": "send",
    }
    if enqueue.job_type:
        attributes["jobqueue.job_type"] = enqueue.job_type
    if enqueue.firing is not None:
        attributes["jobqueue.schedule"] = enqueue.firing.schedule
    return attributes


def _of_jobs(enqueue: Enqueue) -> dict[str, str | int]:
    """Attributes of jobs that are known at the enqueue."""
    attributes: dict[str, str | int] = {}
    if enqueue.queue is not None:
        attributes.update(_destination(enqueue.queue))
    if enqueue.is_many:
        attributes["messaging.batch.message_count"] = len(enqueue.ids)
    else:
        attributes["messaging.message.id"] = str(enqueue.ids[0])
    if enqueue.size and not enqueue.is_many:
        attributes["messaging.message.body.size"] = enqueue.size
    return attributes


def _destination(queue: str) -> dict[str, str]:
    """The queue, and the name that ``METRICS_QUEUES`` has for all queues like it."""
    attributes = {"messaging.destination.name": queue}
    template = queue_label(queue, conf.metrics_queues)
    if template != queue:
        attributes["messaging.destination.template"] = template
    return attributes


def _end(span: Span, outcome: Outcome) -> None:
    """End it; with the error, if the attempt failed."""
    crashed = outcome.end is AttemptEnd.CRASHED
    word = "crashed" if crashed else OUTCOMES[outcome.verb]
    span.set_attribute("jobqueue.outcome", word)
    if outcome.verb in (Verb.FAIL, Verb.RETRY) and not outcome.handler_requested:
        _record_error(span, outcome)
    span.end()


def _record_error(span: Span, outcome: Outcome) -> None:
    """Record what is stored of the error, which has no secrets."""
    failure = outcome.failure
    if failure is None:
        span.set_status(Status(StatusCode.ERROR, outcome.reason))
        return
    span.set_status(Status(StatusCode.ERROR, failure.message))
    span.set_attribute("error.type", failure.error_class)
    span.add_event(
        "exception",
        {
            "exception.type": failure.error_class,
            "exception.message": failure.message,
            "exception.stacktrace": failure.traceback,
        },
    )
