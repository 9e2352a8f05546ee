"""What endpoints answered is counted in the process, and written with its counts."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote import delivery, endpoint_rows
from django_jobqueue.contrib.remote.answers import class_of, problem_of
from django_jobqueue.contrib.remote.endpoint_answers import (
    AnswerClass,
    EndpointAnswer,
    EndpointAnswers,
    endpoint_answers,
)
from django_jobqueue.contrib.remote.endpoint_answers import class_of as answers_class_of
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.models import Worker
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from tests.contrib.remote.conftest import SECRETS, EndpointServer, Reply
from tests.support.hand_driven import HandDriven

Declare = Callable[..., Handler[..., Any]]


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(delivery, "BUSY_WAITS", (0.0, 0.0, 0.0))
    endpoint_answers.take()
    yield
    endpoint_answers.take()


def kept(name: str = "shipping") -> dict[str, Any]:
    """What the row of an endpoint has of its answers."""
    answers: dict[str, Any] = Worker.objects.get(state="endpoint", name=name).answers
    return answers


def counts(answers: dict[str, Any]) -> tuple[int, int]:
    """How many there were, and how many had failed."""
    minutes = answers["minutes"].values()
    return sum(one[0] for one in minutes), sum(one[1] for one in minutes)


def write(worker: HandDriven) -> None:
    """Let the completer write what is due every ten seconds."""
    worker.worker.completer.write_counters()


def answer(status: int = 200, age: float = 0.0) -> EndpointAnswer:
    ended = time.monotonic() - age
    return EndpointAnswer(answers_class_of(status), status, 0.1, ended=ended)


def test_the_last_answer_and_the_last_failure_are_kept(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    handler = declare(max_attempts=1)
    shipping.answer(Reply(500), Reply(204))
    handler.enqueue(order=1)
    worker.work()
    handler.enqueue(order=2)
    worker.work()
    write(worker)
    row = kept()
    assert (row["last"]["class"], row["last"]["status"]) == ("2xx", 204)
    failure = row["last_failure"]
    assert (failure["class"], failure["status"]) == ("5xx", 500)
    assert failure["worker"] == worker.worker.name
    assert 0 < failure["at"] < row["last"]["at"]
    assert counts(row) == (2, 1)


def test_every_request_of_an_attempt_counts(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    shipping.answer(Reply(503))
    declare(max_attempts=1).enqueue()
    worker.work()
    write(worker)
    assert counts(kept()) == (4, 4)


def test_a_push_costs_no_statement_of_its_own(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    handler = declare()
    write(worker)
    for number in range(6):
        handler.enqueue(order=number)
    worker.work()
    assert not Worker.objects.filter(state="endpoint").exclude(answers={})
    write(worker)
    assert counts(kept()) == (6, 0)


def test_what_is_handed_over_is_written_though_no_attempt_ended(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    shipping.answer(Reply(202))
    declare().enqueue()
    worker.work()
    worker.worker.completer.close()
    assert kept()["last"]["status"] == 202


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (None, "refused"),
        (Reply(breaks=True), "broken"),
        (Reply(302), "3xx"),
        (Reply(404), "4xx"),
    ],
)
def test_what_failed_is_kept(
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    reply: Reply | None,
    expected: str,
) -> None:
    if reply is None:
        shipping.close()
    else:
        shipping.answer(reply)
    declare(max_attempts=1).enqueue()
    worker.work()
    write(worker)
    last = kept()["last"]
    assert last["class"] == expected
    assert ("problem" in last) == ("status" not in last)
    assert kept()["last_failure"] == last


def test_an_endpoint_that_answers_too_late_has_timed_out(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    release = threading.Event()
    shipping.answer(Reply(wait_for=release))
    declare().enqueue()
    worker.work()
    release.set()
    write(worker)
    assert kept()["last"]["class"] == "timeout"


def test_a_name_that_nobody_knows(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    handler = declare(max_attempts=1)
    entry = {"url": "http://no-such-host.invalid", "secrets": []}
    with override_settings(JOBQUEUE={"ENDPOINTS": {"shipping": entry}}):
        handler.enqueue()
        worker.work()
        write(worker)
    assert kept()["last"]["class"] == "dns"


def test_an_endpoint_without_tls_where_there_should_be_some(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    handler = declare(max_attempts=1)
    entry = {"url": shipping.url.replace("http:", "https:"), "secrets": []}
    with override_settings(JOBQUEUE={"ENDPOINTS": {"shipping": entry}}):
        handler.enqueue()
        worker.work()
        write(worker)
    assert kept()["last"]["class"] == "tls"


def test_errors_are_classed_by_what_caused_them() -> None:
    class ConnectError(Exception):
        pass

    def caused_by(*causes: BaseException) -> BaseException:
        error = ConnectError("All connection attempts failed")
        error.__cause__ = ExceptionGroup("several", list(causes))  # type: ignore[type-var]
        return error

    assert class_of(caused_by(ssl.SSLError("bad"))) == AnswerClass.TLS
    assert class_of(caused_by(socket.gaierror("no"))) == AnswerClass.NO_NAME
    refused = caused_by(OSError("no route"), ConnectionRefusedError("no"))
    assert class_of(refused) == AnswerClass.REFUSED
    assert class_of(caused_by(OSError("no route"))) == AnswerClass.UNREACHABLE


def test_no_secret_of_an_endpoint_is_kept(shipping: EndpointServer) -> None:
    endpoint = conf.endpoints["shipping"]
    error = ValueError(f"illegal header: {SECRETS[0]} s3cret\x00")
    text = problem_of(error, endpoint)
    assert SECRETS[0] not in text
    assert "s3cret" not in text
    assert "\x00" not in text
    echo = type("RemoteProtocolError", (Exception,), {})("illegal: b'42 Elm Road'")
    assert problem_of(echo, endpoint) == "RemoteProtocolError"
    assert len(problem_of(ValueError("x" * 10_000), endpoint).encode()) <= 300


@pytest.mark.django_db(transaction=True)
def test_several_workers_write_to_one_row(own: OwnConnection) -> None:
    first, second = EndpointAnswers(), EndpointAnswers()
    first.add("shipping", answer(500, age=5))
    earlier = first.take()
    for status in (200, 200):
        second.add("shipping", answer(status))
    endpoint_rows.add_answers(own, second.take(), "web-2:2")
    endpoint_rows.add_answers(own, earlier, "web-1:1")
    row = kept()
    assert (row["last"]["status"], row["last"]["worker"]) == (200, "web-2:2")
    assert (row["last_failure"]["status"], row["last_failure"]["worker"]) == (
        500,
        "web-1:1",
    )
    assert counts(row) == (3, 1)
    first.add("shipping", answer(503))
    endpoint_rows.add_answers(own, first.take(), "web-1:1")
    assert kept()["last"]["status"] == kept()["last_failure"]["status"] == 503


@pytest.mark.django_db(transaction=True)
def test_old_minutes_are_dropped(own: OwnConnection) -> None:
    answers = EndpointAnswers()
    answers.add("shipping", answer(500))
    endpoint_rows.add_answers(own, answers.take(), "web-1:1")
    row = kept()
    (minute,) = row["minutes"]
    row["minutes"] = {
        str(int(minute) - age): [5, 1] for age in (1, endpoint_rows.MINUTES + 1)
    }
    Worker.objects.filter(state="endpoint").update(answers=row)
    answers.add("shipping", answer(200))
    endpoint_rows.add_answers(own, answers.take(), "web-1:1")
    assert counts(kept()) == (6, 1)
    assert kept()["last_failure"]["status"] == 500


@pytest.mark.django_db(transaction=True)
def test_rows_that_are_missing_are_made_in_one_round(own: OwnConnection) -> None:
    answers = EndpointAnswers()
    for name in ("shipping", "mail"):
        answers.add(name, answer())
    endpoint_rows.add_answers(own, answers.take(), "web-1:1")
    assert counts(kept("mail")) == counts(kept("shipping")) == (1, 0)
    answers.add("mail", answer())
    db = DjangoDatabase()
    with CaptureQueriesContext(connection) as statements:
        endpoint_rows.add_answers(db, answers.take(), "web-1:1")
    assert len(statements) == 1


def test_answers_wait_for_the_database(
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*args: object) -> None:
        endpoint_answers.add("shipping", answer(200))  # meanwhile
        raise StoreUnavailable("gone", retry_in=1.0) from psycopg.OperationalError(
            "gone"
        )

    shipping.answer(Reply(500))
    declare(max_attempts=1).enqueue()
    worker.work()
    with monkeypatch.context() as patched:
        patched.setattr(endpoint_rows, "add_answers", fail)
        write(worker)
    write(worker)
    row = kept()
    assert (row["last"]["status"], row["last_failure"]["status"]) == (200, 500)
    assert counts(row) == (2, 1)


def test_totals_never_fall() -> None:
    answers = EndpointAnswers()
    for status in (200, 204, 404, 101):
        answers.add("shipping", answer(status))
    answers.take()
    assert answers.totals == {
        ("shipping", "2xx"): 2,
        ("shipping", "4xx"): 1,
        ("shipping", "other"): 1,
    }
    assert not answers
