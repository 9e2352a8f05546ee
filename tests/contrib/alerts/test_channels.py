"""Channels: mail, signed webhooks, Slack and callables, and what they never show."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core import mail
from django.test import override_settings

from django_jobqueue.conf import conf
from django_jobqueue.conf.alert_channels import secret_bytes
from django_jobqueue.contrib.alerts import Alert, Notification
from django_jobqueue.contrib.alerts.alert_rows import News
from django_jobqueue.contrib.alerts.alerter import Alerter
from django_jobqueue.contrib.alerts.channels import send, signed
from django_jobqueue.contrib.alerts.http_post import NotSent
from django_jobqueue.contrib.alerts.notification import alert_of
from django_jobqueue.domain.ids import new_id
from tests.contrib.alerts.conftest import SECRET, Receiver, alerts_to
from tests.support.tables import refusal

FIRED = datetime(2026, 11, 21, 17, 0, tzinfo=UTC)


def alert(text: str = "Queue mail is slow.", **values: Any) -> Alert:
    defaults: dict[str, Any] = {
        "id": new_id(),
        "event": "fired",
        "condition": "backlog",
        "subject": "mail",
        "text": text,
        "fired_at": FIRED,
    }
    return Alert(**{**defaults, **values})


def notify(entry: dict[str, Any], *alerts: Alert) -> Notification:
    notification = Notification(id=new_id(), alerts=alerts or (alert(),))
    with alerts_to(entry):
        send(conf.alerts[0], notification)
    return notification


def test_a_webhook_is_signed_with_each_secret(receiver: Receiver) -> None:
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    url = f"{receiver.url}/hook?a=1"
    sent = notify({"to": "webhook", "url": url, "secrets": [SECRET, other]})
    ((path, headers, body),) = receiver.requests
    assert path == "/hook?a=1"
    by_name = {name.lower(): value for name, value in headers.items()}
    assert by_name["webhook-id"] == f"alert_{sent.id}"
    content = f"{by_name['webhook-id']}.{by_name['webhook-timestamp']}.".encode() + body
    signatures = [
        "v1,"
        + base64.b64encode(
            hmac.new(secret_bytes(secret), content, hashlib.sha256).digest()
        ).decode()
        for secret in (SECRET, other)
    ]
    assert by_name["webhook-signature"].split() == signatures
    (given,) = receiver.bodies
    assert given["type"] == "jobqueue.backlog.fired"
    assert given["data"]["text"] == "Queue mail is slow."
    assert set(given) == {"type", "timestamp", "data"}


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of the reference libraries' tests."""
    now = datetime.fromtimestamp(1614265330, UTC)
    body = b'{"test": 2432232314}'
    headers = signed((SECRET,), "msg_p5jXN8AQM9LWM0D4loKWxJek", body, now)
    assert headers["webhook-signature"] == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_slack_gets_text_without_markup_of_its_own_and_by_no_proxy(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    notify({"to": "slack", "url": receiver.url}, alert("<!channel> a & b"))
    assert receiver.bodies == [{"text": "&lt;!channel&gt; a &amp; b"}]


def test_mail_goes_to_the_addresses_or_else_to_the_admins() -> None:
    for admins in (["ops@shop.example"], [("Ops", "ops@shop.example")]):
        with override_settings(ADMINS=admins, SERVER_EMAIL="jobs@shop.example"):
            first = notify({"to": "mail"})
    notify({"to": "mail", "addresses": ["duty@shop.example"]}, alert("a\nb"))
    *by_admins, other = mail.outbox
    assert [(one.to, one.subject) for one in by_admins] == [
        (["ops@shop.example"], "[Django] Queue mail is slow.")
    ] * 2
    id = by_admins[1].extra_headers["Message-ID"]
    assert id == f"<{first.id}.jobqueue@shop.example>"
    assert (other.to, other.subject) == (["duty@shop.example"], "[Django] a b")


def test_what_is_not_sent_says_why_and_repeats_nothing(receiver: Receiver) -> None:
    """What a callable raises may have personal data, and is stored. No redirect is
    followed."""
    receiver.location = f"{receiver.url}/elsewhere"

    def refused(status: int, **entry: Any) -> str:
        receiver.status = status
        with override_settings(ADMINS=[]):
            return refusal(NotSent, notify, entry)

    slack = {"to": "slack", "url": f"{receiver.url}/s3cret"}
    assert [refused(status, **slack) for status in (302, 404, 500)] == [
        "HTTP 302",
        "HTTP 404",
        "HTTP 500",
    ]
    assert {path for path, _headers, _body in receiver.requests} == {"/s3cret"}
    assert "ADMINS is empty" in refused(0, to="mail")
    assert refused(0, to="tests.contrib.alerts.conftest.refuse") == "ValueError"
    unreachable = refused(0, to="slack", url="http://127.0.0.1:1/s3cret")
    assert unreachable == "ConnectionRefusedError 111"


def test_no_repr_shows_a_secret() -> None:
    entry = {"to": "webhook", "url": "https://x.example/s3cret", "secrets": [SECRET]}
    with alerts_to(entry):
        shown = repr(conf.alerts)
    assert SECRET not in shown
    assert "s3cret" not in shown


def test_alerts_link_to_the_admin_where_its_address_is_known() -> None:
    id = new_id()
    news = News(
        "fired", id, "failure_group", str(id), "", FIRED, None, "E", "f", "", ""
    )
    assert alert_of(news).url == ""
    worded = news._replace(error_class="Oops\n\n  See\x1b\u202e\u2028https://x.example")
    assert set(alert_of(worded).text).isdisjoint("\n\x1b\u202e\u2028")
    with alerts_to(SITE_URL="https://shop.example/"):
        url = alert_of(news).url
        assert url == f"https://shop.example/admin/jobqueue/failuregroup/{id}/change/"
        assert alert_of(news._replace(condition="backlog")).url.startswith(
            "https://shop.example/admin/jobqueue/"
        )


def test_a_heartbeat_is_sent_by_the_holder_alone_once_a_minute(
    receiver: Receiver, make_alerter: Callable[[], Alerter]
) -> None:
    with override_settings(JOBQUEUE={"HEARTBEAT_URL": f"{receiver.url}/alive"}):
        for alerter in (make_alerter(), make_alerter()):
            alerter.tick()
            alerter.tick()
    assert [path for path, _headers, _body in receiver.requests] == ["/alive"]


def test_a_heartbeat_that_is_refused_is_logged_once(
    receiver: Receiver, alerter: Alerter, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.status = 500
    with override_settings(JOBQUEUE={"HEARTBEAT_URL": f"{receiver.url}/s3cret"}):
        for _ in range(2):
            alerter.tick()
            alerter._next_heartbeat = 0.0  # private: a minute is over
    said = [text for text in caplog.messages if "HEARTBEAT_URL" in text]
    assert said == ["HEARTBEAT_URL did not accept a request: HTTP 500"]
