"""A receiver of webhooks, alerters, and callables that alerts are sent to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from django.test import override_settings

from django_jobqueue.contrib.alerts import Notification, signals
from django_jobqueue.contrib.alerts.alerter import Alerter
from django_jobqueue.contrib.alerts.models import AlertDelivery
from django_jobqueue.store.connection import OwnConnection
from tests.admin.conftest import anna, fresh_figures, log_in, scene

__all__ = ["anna", "fresh_figures", "log_in", "scene"]  # fixtures

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TEST_CALLABLE = "tests.contrib.alerts.conftest.take"

taken: list[Notification] = []


def take(notification: Notification) -> None:
    taken.append(notification)


def refuse(notification: Notification) -> None:
    raise ValueError("pin 4711")


@contextmanager
def alerts_to(*entries: dict[str, Any], **others: Any) -> Iterator[list[Notification]]:
    """Alerts are on, to a callable unless something else is given; yields what that is
    called with."""
    taken.clear()
    channels = list(entries) or [{"to": TEST_CALLABLE}]
    with override_settings(JOBQUEUE={"ALERTS": channels, **others}):
        yield taken


@dataclass
class Receiver:
    url: str
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    status: int = 204
    location: str = ""

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(body) for _path, _headers, body in self.requests]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            made.requests.append((self.path, dict(self.headers), body))
            self.send_response(made.status)
            if made.location:
                self.send_header("Location", made.location)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    made = Receiver(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def make_alerter(transactional_db: None) -> Iterator[Callable[[], Alerter]]:
    made: list[Alerter] = []

    def make() -> Alerter:
        made.append(Alerter(OwnConnection("alerts")))
        return made[-1]

    yield make
    for alerter in made:
        alerter.close()


@pytest.fixture
def alerter(make_alerter: Callable[[], Alerter]) -> Alerter:
    return make_alerter()


def retry_now() -> None:
    AlertDelivery.objects.update(next_attempt_at="2000-01-01T00:00Z")


@pytest.fixture
def heard() -> Iterator[list[tuple[object, Any]]]:
    """What receivers of the signals of alerts were told."""
    found: list[tuple[object, Any]] = []

    def receive(sender: object, alert: Any, **kwargs: object) -> None:
        found.append((sender, alert))

    both = (signals.alert_fired, signals.alert_resolved)
    for signal in both:
        signal.connect(receive)
    yield found
    for signal in both:
        signal.disconnect(receive)
