"""Sentry: one event for each final failure, in a scope of its own, without the data."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.consts import DEFAULT_OPTIONS
from sentry_sdk.transport import Transport

from django_jobqueue import Fail, cron, every, job, observers
from django_jobqueue.contrib.schedules.testing import fire_schedules
from django_jobqueue.contrib.telemetry import sentry_spans
from django_jobqueue.contrib.telemetry.sentry import OBSERVER, JobQueueIntegration
from django_jobqueue.models import ArchivedJob, FailureGroup, QueuedJob
from django_jobqueue.testing import clock, crash, drain
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db


class Sent:
    def __init__(self) -> None:
        self.items: list[tuple[str, Any]] = []

    def of(self, type: str) -> list[Any]:
        return [item for its_type, item in self.items if its_type == type]

    @property
    def events(self) -> list[Any]:
        return self.of("event")

    @property
    def spans(self) -> list[Any]:
        streamed = [span for batch in self.of("span") for span in batch["items"]]
        return [*self.of("transaction"), *streamed]


@contextmanager
def sentry_with(**options: Any) -> Iterator[Sent]:
    """Sentry with these options, and a transport that keeps everything."""
    sent = Sent()

    class Keeping(Transport):
        def capture_envelope(self, envelope: Any) -> None:
            for item in envelope.items:
                sent.items.append((item.type, json.loads(item.payload.get_bytes())))

    given = {
        "dsn": "http://key@localhost/1",
        "transport": Keeping,
        "traces_sample_rate": 1.0,
        "integrations": [JobQueueIntegration()],
        "auto_enabling_integrations": False,
        **options,
    }
    client = sentry_sdk.Client(**given)
    with sentry_sdk.isolation_scope() as scope, sentry_sdk.new_scope() as current:
        scope.set_client(client)
        current.set_client(client)
        yield sent
    client.close()


@pytest.fixture(autouse=True)
def _the_observer_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK sets an integration up once in a process."""
    monkeypatch.setattr(observers, "registered", (OBSERVER,))


@pytest.fixture
def sent() -> Iterator[Sent]:
    with sentry_with() as sent:
        yield sent


@job(max_attempts=2, backoff="immediate")
def failing(note: str = "", token: str = "") -> None:
    """Fail each time; the log says so before."""
    logging.getLogger("shop").warning("about to fail")
    secret_local = f"{note}{token}"
    raise ValueError(f"no such order: {len(secret_local)}")


@job(max_attempts=1, sensitive=("pin",))
def failing_with_pin(pin: str, note: str = "") -> None:
    raise ValueError(f"wrong pin {pin}")


@job(max_attempts=1)
async def afailing(note: str = "") -> None:
    raise ValueError("no such order")


@job(max_attempts=1, atomic=True)
def failing_atomically(note: str = "") -> None:
    raise ValueError("no such order")


@job(max_attempts=1)
def giving_up_because_of() -> None:
    try:
        raise LookupError("no such order")
    except LookupError as error:
        raise Fail("gone") from error


@job(max_crashes=2)
def crashing() -> None:
    crash()


def test_a_final_failure_is_one_event_with_tags_and_transaction(sent: Sent) -> None:
    made = failing.using(queue="mail").enqueue()
    drain(raise_errors=False)
    (event,) = sent.events
    (exception,) = event["exception"]["values"]
    assert exception["type"] == "ValueError"
    assert exception["mechanism"] == {"type": "django_jobqueue", "handled": False}
    assert exception["stacktrace"]["frames"][-1]["function"] == "failing"
    assert event["level"] == "error"
    assert event["transaction"] == failing.name
    assert event["transaction_info"] == {"source": "task"}
    assert event["tags"] == {
        "job_type": failing.name,
        "queue": "mail",
        "attempt": "2",
        "worker_release": "tests",
        "failure_group": str(FailureGroup.objects.get().fingerprint),
    }
    about = event["contexts"]["job"]
    assert about["id"] == str(made.id)
    assert (about["attempt"], about["max_attempts"]) == (2, 2)
    assert about["reason"] == "no attempt is left"


def test_each_kind_of_handler_is_one_event_and_job_data_is_in_none_and_no_span(
    sent: Sent, make_worker: Callable[..., HandDriven]
) -> None:
    handlers = (failing, afailing, failing_atomically)
    for handler in handlers:
        handler.enqueue(note="canary-1")
    failing.enqueue(token="canary-2")
    failing_with_pin.enqueue(pin="canary-3", note="canary-4")
    make_worker().work()
    assert sorted(event["tags"]["job_type"] for event in sent.events) == sorted(
        handler.name for handler in (*handlers, failing, failing_with_pin)
    )
    assert len(sent.spans) > 5
    assert "canary" not in json.dumps(sent.items)


def test_what_a_handler_asks_for_is_no_event_but_a_fail_with_a_cause_is_one(
    sent: Sent,
) -> None:
    for word in ("retry", "snooze", "cancel", "fail"):
        jobs.say.enqueue(word)
    drain(raise_errors=False)
    assert sent.events == []
    giving_up_because_of.enqueue()
    drain(raise_errors=False)
    (event,) = sent.events
    types = [exception["type"] for exception in event["exception"]["values"]]
    assert types == ["LookupError", "Fail"]


def test_retries_are_warnings_if_the_project_wants_them() -> None:
    integrations = [JobQueueIntegration(capture_retries=True)]
    with sentry_with(integrations=integrations) as sent:
        failing.enqueue()
        jobs.say.enqueue("retry")
        drain(raise_errors=False)
    levels = [(e["tags"]["job_type"], e["level"]) for e in sent.events]
    assert levels == [(failing.name, "warning"), (failing.name, "error")]


def test_without_the_integration_the_log_line_is_the_one_event() -> None:
    with sentry_with(integrations=[]) as sent:
        failing.enqueue()
        drain(raise_errors=False)
    (event,) = sent.events
    assert event["logger"] == "django_jobqueue.attempt"


def test_a_job_that_has_no_attempt_left_is_an_event(sent: Sent) -> None:
    made = failing.enqueue()
    QueuedJob.objects.filter(id=made.id).update(attempts=2)
    drain(raise_errors=False)
    (event,) = sent.events
    assert event["message"] == "no attempt is left: 2 made, 2 allowed"


def test_a_crash_is_one_event_when_it_was_the_last_one(sent: Sent) -> None:
    crashing.enqueue()
    drain()
    (event,) = sent.events
    (exception,) = event["exception"]["values"]
    assert exception["type"] == "jobqueue.PoisonJob"
    assert event["transaction"] == crashing.name
    assert event["tags"]["job_type"] == crashing.name
    assert event["contexts"]["job"]["crashes"] == 2
    assert event["fingerprint"][:3] == ["jobqueue", "crash", crashing.name]


def test_breadcrumbs_and_tags_of_one_attempt_are_not_in_another(sent: Sent) -> None:
    sentry_sdk.add_breadcrumb(message="of the process")
    failing.enqueue()
    drain(raise_errors=False)
    sentry_sdk.capture_message("afterwards")
    event, afterwards = sent.events
    crumbs = [crumb["message"] for crumb in event["breadcrumbs"]["values"]]
    assert crumbs.count("about to fail") == 1
    assert "of the process" not in crumbs
    assert "job_type" not in afterwards.get("tags", {})


def test_data_and_variables_are_masked_where_the_project_sends_them() -> None:
    """Of a sensitive job type there are none."""
    with sentry_with(**with_data()) as sent:
        failing.enqueue(note="order-7", token="canary")
        failing_with_pin.enqueue(pin="canary")
        drain(raise_errors=False)
    events = {event["tags"]["job_type"]: event for event in sent.events}
    event = events[failing.name]
    assert event["contexts"]["job"]["data"] == {"note": "order-7", "token": "••••"}
    variables = event["exception"]["values"][-1]["stacktrace"]["frames"][-1]["vars"]
    assert "order-7" in variables["note"]
    assert variables["token"] in ("••••", "[Filtered]")
    (exception,) = events[failing_with_pin.name]["exception"]["values"]
    assert exception["value"] == "[Filtered]"
    assert "vars" not in exception["stacktrace"]["frames"][-1]
    assert "canary" not in json.dumps(sent.items)


def with_data() -> dict[str, Any]:
    """The options that allow the data of jobs, in the words of this SDK."""
    if "data_collection" in DEFAULT_OPTIONS:
        return {"data_collection": {"queues": True}}
    return {"send_default_pii": True}


STREAMED = {"trace_lifecycle": "stream"}
needs_streams = pytest.mark.skipif(
    sentry_spans.traces is None, reason="needs an SDK that streams spans"
)


def test_the_first_attempt_continues_the_trace_of_the_request(sent: Sent) -> None:
    with sentry_sdk.start_transaction(name="POST /checkout") as request:
        made = jobs.add.enqueue(1)
    drain()
    checkout, attempt = sent.of("transaction")
    (published,) = checkout["spans"]
    assert published["op"] == "queue.publish"
    assert published["data"]["messaging.message.id"] == str(made.id)
    about = attempt["contexts"]["trace"]
    assert attempt["transaction"] == "tests.sample.add"
    assert about["op"] == "queue.process"
    assert about["origin"] == "auto.queue.django_jobqueue"
    assert about["status"] == "ok"
    assert about["trace_id"] == request.trace_id
    assert about["parent_span_id"] == published["span_id"]
    data = about["data"]
    assert data["messaging.message.id"] == str(made.id)
    assert data["messaging.destination.name"] == "default"
    assert data["messaging.message.retry.count"] == 0
    assert data["messaging.message.receive.latency"] >= 0


def test_a_retry_begins_a_trace_that_refers_to_the_first_one(sent: Sent) -> None:
    with sentry_sdk.start_transaction(name="POST /checkout") as request:
        failing.enqueue()
    drain(raise_errors=False)
    first, second = [
        transaction["contexts"]["trace"]
        for transaction in sent.of("transaction")
        if transaction["transaction"] == failing.name
    ]
    assert first["trace_id"] == request.trace_id
    assert first["status"] == "internal_error"
    assert second["trace_id"] != request.trace_id
    assert second["data"]["sentry.previous_trace"].startswith(request.trace_id)
    (event,) = sent.events
    assert event["contexts"]["trace"]["trace_id"] == second["trace_id"]


def test_without_a_sampled_request_jobs_are_as_they_are_and_have_own_traces(
    sent: Sent,
) -> None:
    for number in range(2):
        jobs.add.enqueue(number)
    drain()
    traces = {t["contexts"]["trace"]["trace_id"] for t in sent.of("transaction")}
    assert len(traces) == 2
    with (
        sentry_with(traces_sample_rate=0.0),
        sentry_sdk.start_transaction(name="POST /checkout"),
    ):
        assert jobs.add.enqueue(1).metadata is None


@needs_streams
def test_streamed_spans_are_in_one_trace_too() -> None:
    with sentry_with(**STREAMED) as sent:
        with sentry_sdk.traces.start_span(name="POST /checkout", parent_span=None):
            failing.enqueue()
        drain(raise_errors=False)
        sentry_sdk.flush()
    (event,) = sent.events
    assert event["transaction"] == failing.name
    by_name: dict[str, list[Any]] = {}
    for span in sent.spans:
        op = span["attributes"].get("sentry.op", {}).get("value", "")
        by_name.setdefault(op, []).append(span)
    (published,) = by_name["queue.publish"]
    first, second = by_name["queue.process"]
    assert first["trace_id"] == published["trace_id"]
    assert first["parent_span_id"] == published["span_id"]
    assert first["status"] == "error"
    assert second["trace_id"] != first["trace_id"]


def check_ins(rule: Any, handler: Any, name: str = "nightly") -> list[Any]:
    """Fire a schedule once, and run its job; returns what arrived of it."""
    with sentry_with() as sent:
        fire(rule, handler, name)
    return sent.of("check_in")


def fire(rule: Any, handler: Any, name: str) -> None:
    handler.at(rule, name=name)()
    with clock(datetime(2026, 3, 28, tzinfo=UTC)) as time:
        fire_schedules(name)
        time.move(days=2)
        fire_schedules(name)
        drain(raise_errors=False)


def test_a_firing_checks_in_and_the_end_of_its_job_too() -> None:
    for name, rule, schedule in (
        ("a", cron("30 2 * * *"), {"type": "crontab", "value": "30 2 * * *"}),
        ("b", every(hours=36), {"type": "interval", "value": 36, "unit": "hour"}),
        ("c", every(days=1), {"type": "interval", "value": 1, "unit": "day"}),
    ):
        begins, ends = check_ins(rule, jobs.without_arguments, name)[-2:]
        made = ArchivedJob.objects.filter(metadata__schedule=name).latest("id")
        assert begins["monitor_config"] == {"schedule": schedule, "timezone": "UTC"}
        assert begins["check_in_id"] == ends["check_in_id"] == made.id.hex
        assert begins["monitor_slug"] == ends["monitor_slug"] == name
        assert (begins["status"], ends["status"]) == ("in_progress", "ok")


@pytest.mark.dear
def test_the_check_in_of_a_job_is_how_it_ended_and_that_of_no_follower() -> None:
    """A failed one after its last attempt."""
    for handler, end in (
        (failing, "error"),
        (crashing, "error"),
        (jobs.followed, "ok"),
    ):
        found = check_ins(every(hours=36), handler, handler.name)
        assert [one["status"] for one in found] == ["in_progress", end], handler.name
    assert ArchivedJob.objects.filter(job_type=jobs.report.name).exists()


def test_what_sentry_has_no_words_for_and_what_a_project_turns_off_is_no_monitor() -> (
    None
):
    for name, rule, monitored in (
        ("a", every(seconds=90), True),
        ("b", cron("15 30 2 * * *"), True),
        ("c", every(days=1), False),
    ):
        integration = JobQueueIntegration(monitor_schedules=monitored)
        with sentry_with(integrations=[integration]) as sent:
            fire(rule, jobs.without_arguments, name)
        assert ArchivedJob.objects.filter(metadata__schedule=name).exists()
        assert sent.of("check_in") == [], name


def test_errors_of_the_log_are_events_but_those_of_the_supervisor(sent: Sent) -> None:
    """There, an event would start a thread."""
    names = ["django_jobqueue.maintenance", "django_jobqueue.attempt"]
    for name in ("django_jobqueue.supervisor", *names):
        logging.getLogger(name).error("a schedule cannot fire; a hook failed")
    assert [event["logger"] for event in sent.events] == names
