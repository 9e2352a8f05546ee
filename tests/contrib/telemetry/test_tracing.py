"""OpenTelemetry: the spans of enqueues and attempts, and how they belong together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from opentelemetry import baggage, context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from django_jobqueue import DuplicateJob, every, job, observers, operations, replay
from django_jobqueue.contrib.schedules.testing import fire_schedules
from django_jobqueue.contrib.telemetry.otel import JobQueueInstrumentor, TracingObserver
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.testing import clock, crash, drain
from tests.contrib.telemetry.conftest import Traced
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db


def trace_id(span: ReadableSpan) -> int:
    return span.get_span_context().trace_id  # type: ignore[no-any-return]


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return (
        span.parent is not None
        and span.parent.span_id == parent.get_span_context().span_id
        and trace_id(span) == trace_id(parent)
    )


def links_to(span: ReadableSpan, other: ReadableSpan) -> bool:
    ids = [link.context.span_id for link in span.links]
    return other.get_span_context().span_id in ids


@job
def inner_span() -> str:
    return f"{get_current_span().get_span_context().trace_id:032x}"


@job(max_crashes=2, backoff="immediate")
def crashing() -> None:
    crash()


@job(max_attempts=1, sensitive=("token",))
def leaking(token: str, note: str) -> None:
    raise ValueError(f"cannot use {token}")


def test_one_trace_leads_from_the_view_over_job_and_retry_to_the_follower(
    traced: Traced, make_worker: Callable[..., HandDriven]
) -> None:
    def view(request: HttpRequest) -> HttpResponse:
        with traced.tracer.start_as_current_span("POST /checkout"):
            jobs.followed.enqueue("error")
        return HttpResponse()

    view(RequestFactory().post("/checkout"))
    make_worker().work()
    request, enqueue = traced.named("POST /checkout"), traced.spans[0]
    first, second = [s for s in traced.spans if s.name.endswith("sample.followed")][1:]
    follower = traced.named("process tests.sample.report")
    assert {trace_id(span) for span in traced.spans} == {trace_id(request)}
    assert is_child(enqueue, request)
    for span in (first, second, follower):
        assert is_child(span, enqueue)
        assert links_to(span, enqueue)
        assert span.kind is SpanKind.CONSUMER
    assert [
        span.attributes["jobqueue.outcome"] for span in (first, second, follower)
    ] == ["retried", "failed", "succeeded"]


def test_the_attributes_are_those_of_the_conventions_for_messaging(
    traced: Traced,
) -> None:
    made = jobs.add.using(queue="mail").enqueue(1, b=2)
    drain()
    enqueue = traced.named("enqueue tests.sample.add")
    assert enqueue.kind is SpanKind.PRODUCER
    assert dict(enqueue.attributes) == {
        "messaging.system": "django_jobqueue",
        "messaging.operation.name": "enqueue",
        "messaging.operation.type": "send",
        "messaging.destination.name": "mail",
        "messaging.message.id": str(made.id),
        "messaging.message.body.size": len('{"a":1,"b":2}'),
        "jobqueue.job_type": "tests.sample.add",
    }
    process = traced.named("process tests.sample.add")
    attributes = dict(process.attributes)
    assert attributes.pop("jobqueue.worker")
    assert attributes.pop("jobqueue.wait_seconds") >= 0
    assert attributes == {
        "messaging.system": "django_jobqueue",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": str(made.id),
        "messaging.message.body.size": len('{"a": 1, "b": 2}'),
        "jobqueue.job_type": "tests.sample.add",
        "jobqueue.attempt": 1,
        "jobqueue.crashes": 0,
        "jobqueue.outcome": "succeeded",
    }
    assert process.status.status_code is StatusCode.UNSET
    assert process.instrumentation_scope.name == "django_jobqueue"
    assert process.instrumentation_scope.schema_url.startswith("https://opentelem")


def test_a_queue_that_metrics_fold_has_their_name_as_template(
    traced: Traced, settings: Any
) -> None:
    settings.JOBQUEUE = {"METRICS_QUEUES": {"tenant-*": "tenant"}}
    jobs.add.using(queue="tenant-7").enqueue(1)
    jobs.add.using(queue="tenant-7").enqueue_many([{"a": 1}])
    crashing.using(queue="tenant-8").enqueue()
    drain()
    assert {
        (
            span.attributes["messaging.destination.name"],
            span.attributes["messaging.destination.template"],
        )
        for span in traced.spans
    } == {("tenant-7", "tenant"), ("tenant-8", "tenant")}
    assert {"enqueue", "process"} == {span.name.split()[0] for span in traced.spans}


def test_enqueue_many_is_one_span_of_jobs_whose_handlers_run_within_theirs(
    traced: Traced,
) -> None:
    inner_span.enqueue_many([{}, {}])
    drain()
    enqueue, *processes = traced.spans
    assert enqueue.attributes["messaging.batch.message_count"] == 2
    assert [is_child(span, enqueue) for span in processes] == [True, True]
    seen = {job.result for job in ArchivedJob.objects.all()}
    assert seen == {f"{trace_id(enqueue):032x}"}


def test_what_a_handler_asks_for_is_no_error(traced: Traced) -> None:
    words = {"retry": "retried", "snooze": "snoozed", "cancel": "cancelled"}
    for word, outcome in words.items():
        jobs.say.enqueue(word)
        drain()
        span = traced.spans[-1]
        assert span.attributes["jobqueue.outcome"] == outcome
        assert span.status.status_code is StatusCode.UNSET
        assert not span.events
    jobs.say.enqueue("fail")
    drain(raise_errors=False)
    span = traced.spans[-1]
    assert span.attributes["jobqueue.outcome"] == "failed"
    assert span.status.status_code is StatusCode.ERROR


def test_an_error_is_recorded_as_it_is_stored_without_secrets(traced: Traced) -> None:
    leaking.enqueue(token="hunter2-canary", note="data-canary")
    drain(raise_errors=False)
    span = traced.named(f"process {leaking.name}")
    (event,) = span.events
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "ValueError"
    assert event.attributes["exception.message"] == "cannot use ••••"
    assert "in leaking" in event.attributes["exception.stacktrace"]
    everything = "".join(one.to_json() for one in traced.spans)
    assert "canary" not in everything


def test_an_enqueue_that_fails_is_an_error_without_the_text(traced: Traced) -> None:
    keyed = jobs.add.using(unique_key="key-canary")
    keyed.enqueue(1)
    with pytest.raises(DuplicateJob):
        keyed.enqueue(1)
    _, failed = traced.spans
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["error.type"] == "DuplicateJob"
    assert "canary" not in failed.to_json()


def test_a_crash_has_a_span_that_the_rescuer_makes(traced: Traced) -> None:
    crashing.enqueue()
    drain()
    enqueue = traced.named(f"enqueue {crashing.name}")
    crashes = [span for span in traced.spans if span.name == f"process {crashing.name}"]
    assert [span.attributes["jobqueue.crashes"] for span in crashes] == [1, 2]
    for span in crashes:
        assert is_child(span, enqueue)
        assert span.attributes["jobqueue.outcome"] == "crashed"
        assert span.status.status_code is StatusCode.ERROR
        assert span.end_time >= span.start_time


def test_a_replay_refers_to_the_original_and_is_no_part_of_its_trace(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that nobody traces has a trace of its own."""
    first = jobs.add.enqueue(1)
    drain()
    replay(first.id)
    drain()
    original = traced.named("enqueue tests.sample.add")
    replayed = traced.named("replay")
    _, process = [s for s in traced.spans if s.name == "process tests.sample.add"]
    assert is_child(process, replayed)
    assert links_to(process, original)
    assert trace_id(process) != trace_id(original)
    with monkeypatch.context() as patch:
        patch.setattr(observers, "registered", ())
        again = replay(first.id)
        assert list(again.metadata["trace"]) == ["origin"]
    drain()
    *_, process = [s for s in traced.spans if s.name == "process tests.sample.add"]
    assert process.parent is None
    assert links_to(process, original)


def test_a_replay_refers_to_a_trace_and_keeps_what_a_project_stores_as_one(
    no_observers: None,
) -> None:
    given: Any
    for given, kept in [
        ({"traceparent": "00-a"}, {"origin": "00-a"}),
        *((own, own) for own in ("text", {"x": 1}, [1])),
    ]:
        made = jobs.add.using(metadata={"trace": given, "tenant": 7}).enqueue(1)
        drain()
        again = replay(made.id)
        drain()
        assert replay(again.id).metadata == {"trace": kept, "tenant": 7}


def test_replays_of_many_are_one_span(traced: Traced) -> None:
    made = jobs.add.enqueue_many([{"a": 1}, {"a": 2}])
    drain()
    operations.replay_many(made)
    span = traced.named("replay")
    assert span.attributes["messaging.batch.message_count"] == 2
    assert QueuedJob.objects.filter(metadata__trace__has_key="origin").count() == 2


@pytest.mark.parametrize("relation", ["parent", "link"])
def test_a_job_due_much_later_or_with_a_setting_has_a_trace_that_links(
    traced: Traced, settings: Any, relation: str
) -> None:
    if relation == "link":
        settings.JOBQUEUE = {"TRACE_RELATION": "link"}
    made = jobs.add.using(run_after=timedelta(hours=2)).enqueue(1)
    before = timedelta(hours=3 if relation == "parent" else 0)
    QueuedJob.objects.update(
        run_after=made.created_at, created_at=made.created_at - before
    )
    drain()
    enqueue, process = traced.spans
    assert process.parent is None
    assert trace_id(process) != trace_id(enqueue)
    assert links_to(process, enqueue)


@job
def baggage_here() -> dict[str, object]:
    return dict(baggage.get_all())


def test_baggage_is_stored_only_if_a_setting_says_so(
    traced: Traced, settings: Any
) -> None:
    for wanted, arrives in ((False, {}), (True, {"user": "7"})):
        settings.JOBQUEUE = {"TRACE_BAGGAGE": wanted}
        token = context.attach(baggage.set_baggage("user", "7"))
        try:
            made = baggage_here.enqueue()
        finally:
            context.detach(token)
        assert ("baggage" in made.metadata["trace"]) is wanted
        drain()
        assert ArchivedJob.objects.get(id=made.id).result == arrives


def test_a_span_that_nobody_records_leaves_jobs_as_they_are(no_observers: None) -> None:
    observers.observe(TracingObserver(TracerProvider(sampler=ALWAYS_OFF)))
    assert jobs.add.enqueue(1).metadata is None


def test_each_firing_of_a_schedule_begins_a_trace(traced: Traced) -> None:
    jobs.add.at(every(minutes=5), name="sums")(a=1)
    with clock(datetime(2026, 3, 28, tzinfo=UTC)) as time:
        fire_schedules("sums")
        time.move(minutes=5)
        (made,) = fire_schedules("sums")
        drain()
    enqueue = traced.named("enqueue tests.sample.add")
    assert enqueue.attributes["jobqueue.schedule"] == "sums"
    assert enqueue.attributes["messaging.message.id"] == str(made.id)
    assert enqueue.parent is None
    assert is_child(traced.named("process tests.sample.add"), enqueue)


def test_opentelemetry_finds_the_instrumentor_which_adds_the_observer_and_removes_it(
    no_observers: None,
) -> None:
    (entry,) = entry_points(group="opentelemetry_instrumentor", name="django_jobqueue")
    assert entry.load() is JobQueueInstrumentor
    instrumentor = JobQueueInstrumentor()
    instrumentor.instrument(tracer_provider=TracerProvider())
    (observer,) = observers.registered
    assert isinstance(observer, TracingObserver)
    instrumentor.uninstrument()
    assert observers.registered == ()
