"""Delivery to endpoints: each answer comes to what the guide says."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import logging
import sys
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import Rate, operations
from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote import clients, delivery
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.models import ArchivedJob, Failure, FailureGroup, QueuedJob
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from tests.contrib.remote.conftest import SECRETS, TYPE, EndpointServer, Received, Reply
from tests.support.hand_driven import HandDriven

Declare = Callable[..., Handler[..., Any]]


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BUSY_WAITS", (0.0, 0.0, 0.0))


def archived(id: UUID) -> ArchivedJob:
    return ArchivedJob.objects.get(pk=id)


def verify(received: Received, secret: str) -> bool:
    """As a receiver does, by the text of Standard Webhooks."""
    headers = received.headers
    sent = headers["webhook-id"], headers["webhook-timestamp"]
    assert abs(time.time() - int(sent[1])) < 300
    content = f"{sent[0]}.{sent[1]}.".encode() + received.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    made = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    return f"v1,{made}" in headers["webhook-signature"].split(" ")


def test_a_job_is_sent_and_done(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    ship = declare(max_attempts=5)
    shipping.answer(Reply(200, b'{"result": {"parcel": 7}}'))
    job = ship.enqueue(order_id=7)
    worker.work()
    done = archived(job.id)
    assert (done.status, done.result) == ("succeeded", {"parcel": 7})
    (received,) = shipping.received
    assert (received.method, received.path) == ("POST", f"/v1/jobs/{TYPE}/job_{job.id}")
    assert received.json == {
        "data": {"order_id": 7},
        "id": f"job_{job.id}",
        "attempts": 5,
        "attempt": 1,
        "fence": 1,
        "job_type": TYPE,
        "callback_url": f"https://shop.example/jobqueue/v1/jobs/{TYPE}/job_{job.id}",
    }
    basic = base64.b64encode(b"jobs:s3cret").decode()
    assert received.headers["authorization"] == f"Basic {basic}"
    assert received.headers["webhook-id"] == f"job_{job.id}"
    assert all(verify(received, secret) for secret in SECRETS)
    assert not verify(received, "whsec_" + base64.b64encode(b"x" * 24).decode())


def test_a_success_needs_no_body_that_can_be_read(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    handler, found = declare(), {}
    of_json = {"Content-Type": "application/json"}
    cases = {
        "None": [Reply(201), Reply(204), Reply(200, b"hello")],
        " None": [Reply(200, b'["result"]'), Reply(200, b"[" * 50_000)],
        "0": [Reply(200, b'{"result": 0}')],
        "cannot be read": [
            Reply(200, b'{"result": %s}' % (b"7" * 10_000), of_json),
            Reply(200, b'{"result": "\xff"}', of_json),
        ],
        "has more than 65,536 bytes": [Reply(200, b"x" * 10_000_000)],
        "was cut off": [Reply(200, b'{"res', length=100)],
    }
    for said, replies in cases.items():
        for reply in replies:
            shipping.answer(reply)
            id = handler.enqueue().id
            worker.work()
            done = archived(id)
            if done.status != "succeeded" or said.strip() not in str(done.result):
                found[said] = (reply.status, done.status, done.result)
    assert found == {}


def test_answers_after_which_a_job_has_failed_for_good(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    handler = declare(max_attempts=5)
    for status in (301, 307, 400, 404, 409, 410, 422):
        shipping.answer(Reply(status, b'{"detail": "no order 7"}'))
        id = handler.enqueue().id
        worker.work()
        done = archived(id)
        assert (done.status, done.attempts) == ("failed", 1), status
        assert done.error_message == f"shipping answered {status}: no order 7"
    for group in FailureGroup.objects.all():
        assert group.error_class.endswith("EndpointError")


def test_answers_after_which_a_job_is_tried_again(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    for status in (408, 425, 429, 500, 502, 503, 504):
        handler = declare(f"invoices.after_{status}", max_attempts=5)
        shipping.received.clear()
        shipping.answer(Reply(status, b'{"detail": "not now"}'))
        before, id = timezone.now(), handler.enqueue().id
        worker.work()
        waiting = QueuedJob.objects.get(pk=id)
        assert (waiting.status, waiting.attempts) == ("queued", 1), status
        assert waiting.run_after > before
        failure = Failure.objects.get(job_id=id)
        assert failure.error_message == f"shipping answered {status}: not now"
        assert failure.error_class.endswith("EndpointError")
        assert len(shipping.received) == (4 if status == 503 else 1)


def test_it_is_tried_again_when_the_endpoint_says(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    job = declare(max_attempts=5).enqueue()
    shipping.answer(Reply(503, headers={"Retry-After": "3600"}))
    before = timezone.now()
    worker.work()
    waiting = QueuedJob.objects.get(pk=job.id)
    assert 3_500 < (waiting.run_after - before).total_seconds() < 3_700
    assert len(shipping.received) == 1
    assert FailureGroup.objects.exists()  # nobody asked for that retry


@pytest.mark.parametrize(
    ("body", "started"), [(b'{"hold": true}', 1), (b'{"hold": 1}', 3), (b"[]", 3)]
)
def test_an_endpoint_holds_back_all_that_share_its_rate(
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    body: bytes,
    started: int,
) -> None:
    handler = declare(max_attempts=5, rate=Rate(100_000, per=600, burst=1))
    job_types.declare(DjangoDatabase(), [handler.declaration])
    for _ in range(3):
        handler.enqueue()
    shipping.answer(Reply(429, body, {"Retry-After": "3600"}), Reply(200))
    for _ in range(5):
        worker.claim()
        worker.run()
        worker.finish()
        time.sleep(0.01)  # one more may start
        worker.worker.dispatcher.lane_selection.next_starts.ask_all()
    assert len(shipping.received) == started


def test_a_busy_endpoint_is_asked_again_in_the_same_attempt(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    job = declare().enqueue()
    shipping.answer(Reply(503), Reply(503), Reply(200))
    worker.work()
    assert (archived(job.id).status, archived(job.id).attempts) == ("succeeded", 1)
    assert len(shipping.received) == 3


@pytest.mark.parametrize("delivery_strategy", ["at_least_once", "at_most_once"])
def test_what_could_not_be_sent_is_tried_again_even_at_most_once(
    delivery_strategy: str,
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
) -> None:
    job = declare(f"invoices.{delivery_strategy}", delivery=delivery_strategy).enqueue()
    shipping.close()
    worker.work()
    waiting = QueuedJob.objects.get(pk=job.id)
    is_spent = delivery_strategy == "at_least_once"
    assert (waiting.status, waiting.attempts) == ("queued", int(is_spent))
    message = Failure.objects.get().error_message or Failure.objects.get().reason
    assert "shipping could not be reached: ConnectError" in message


def test_an_endpoint_that_is_not_in_the_settings_gets_nothing(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    job = declare(endpoint="billing").enqueue()
    worker.work()
    assert QueuedJob.objects.get(pk=job.id).status == "queued"
    assert "has no 'billing'" in Failure.objects.get().error_message


def test_at_most_once_an_error_of_the_endpoint_is_the_end(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    handler = declare("invoices.pay", delivery="at_most_once")
    later = {"Retry-After": "60"}
    for number, reply in enumerate((Reply(500), Reply(503), Reply(503, b"", later)), 1):
        job = handler.enqueue()
        shipping.answer(reply)
        worker.work()
        assert archived(job.id).status == "failed"
        assert len(shipping.received) == number


def test_no_redirect_is_followed(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    handler = declare(max_attempts=5)
    for number, target in enumerate(("http://169.254.169.254/latest/", "/elsewhere")):
        job = handler.enqueue()
        shipping.answer(Reply(302, headers={"Location": target}))
        worker.work()
        assert archived(job.id).status == "failed"
        assert len(shipping.received) == number + 1


def test_nothing_is_unpacked(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    job = declare().enqueue()
    packed = gzip.compress(b" " * 30_000_000)
    shipping.answer(Reply(200, packed, {"Content-Encoding": "gzip"}))
    worker.work()
    assert shipping.received[0].headers["accept-encoding"] == "identity"
    assert (archived(job.id).status, archived(job.id).result) == ("succeeded", None)


def test_without_the_extra_nothing_is_sent_and_the_failure_says_what_to_install(
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "is_installed", lambda: False)
    job = declare("invoices.pay", delivery="at_most_once").enqueue()
    worker.work()
    assert QueuedJob.objects.get(pk=job.id).status == "queued"
    assert 'pip install "django-jobqueue[remote]"' in Failure.objects.get().reason
    assert shipping.received == []


def test_no_proxy_of_the_environment_is_used(
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    job = declare().enqueue()
    worker.work()
    assert archived(job.id).status == "succeeded"


def test_no_request_goes_to_where_a_row_says(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    other = EndpointServer()
    job = declare().enqueue(url=other.url, endpoint="billing", path="/x")
    url = {"url": other.url, "callback_url": other.url, "endpoint": other.url}
    QueuedJob.objects.update(metadata=url)
    worker.work()
    other.close()
    assert archived(job.id).status == "succeeded"
    assert (len(shipping.received), other.received) == (1, [])


def test_the_log_has_no_secrets_and_no_sensitive_data(
    declare: Declare,
    shipping: EndpointServer,
    worker: HandDriven,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "django_jobqueue.remote")
    declare("invoices.open").enqueue(order=4711)
    worker.work()
    assert "order" in caplog.text
    assert "4711" in caplog.text
    declare(sensitive=["iban"]).enqueue(iban="DE00-canary")
    shipping.answer(Reply(404, b'{"detail": "unknown DE00-canary"}'))
    worker.work()
    assert f"POST {shipping.url}/v1/jobs/{TYPE}/" in caplog.text
    assert "404 from" in caplog.text
    for secret in ("DE00-canary", "s3cret", "v1,", *SECRETS):
        assert secret not in caplog.text
    failed = ArchivedJob.objects.get(job_type=TYPE)
    assert "DE00-canary" not in failed.error_message


def test_a_path_of_its_own_and_no_signature(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    ship = declare(path="/hooks/{id}")
    settings = {"ENDPOINTS": {"shipping": {"url": f"{shipping.url}/", "secrets": []}}}
    with override_settings(JOBQUEUE=settings):
        job = ship.enqueue()
        worker.work()
    (received,) = shipping.received
    assert received.path == f"/hooks/job_{job.id}"
    assert "webhook-signature" not in received.headers
    assert "authorization" not in received.headers
    assert received.json["callback_url"] is None


def test_its_limits_and_its_timeout_are_those_of_endpoints(declare: Declare) -> None:
    policy = declare().declaration.policy
    assert policy.concurrency == conf.endpoints["shipping"].concurrency == 50
    assert policy.time_allowed is not None
    assert policy.time_allowed.total_seconds() == 300
    policy = declare("invoices.b", concurrency=None, timeout=60).declaration.policy
    assert policy.concurrency is None
    assert policy.time_allowed is not None
    assert policy.time_allowed.total_seconds() == 60


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"endpoint": ""}, "endpoint must be a name in JOBQUEUE['ENDPOINTS']"),
    ({"timeout": None}, "would run forever"),
    ({"path": "v1/{id}"}, "must begin with one slash"),
    ({"path": "//evil.example/{id}"}, "must begin with one slash"),
    ({"path": "/v1"}, "must have the field {id}"),
    ({"path": "/{id}/{order}"}, "may have the fields {type} and {id}"),
    ({"path": "/{id.hex}"}, "may have the fields {type} and {id}"),
    ({"path": "/{id"}, "may have the fields {type} and {id}"),
    ({"path": "/{id}?x=1"}, "must have no space"),
    ({"endpoint": None, "path": "/{id}"}, "path needs an endpoint"),
]


def test_mistakes_in_the_declaration(declare: Declare) -> None:
    for options, said in MISTAKES:
        with pytest.raises(ImproperlyConfigured) as caught:
            declare(**options)
        assert said in str(caught.value), options


def test_a_cancelled_job_that_waits_is_never_sent(
    declare: Declare, shipping: EndpointServer, worker: HandDriven
) -> None:
    job = declare().enqueue()
    operations.cancel([job.id])
    worker.work()
    assert archived(job.id).status == "cancelled"
    assert shipping.received == []


def test_the_library_is_loaded_before_processes_fork_if_there_are_endpoints(
    shipping: EndpointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "is_installed", lambda: True)
    monkeypatch.setitem(sys.modules, "httpx", None)  # an import of it fails
    with pytest.raises(ImportError):
        clients.load()
    with override_settings(JOBQUEUE={}):
        clients.load()
