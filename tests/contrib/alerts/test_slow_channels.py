"""A channel that does not come back holds up no other one, and loses no lease."""

from __future__ import annotations

import socket
import threading
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

from django_jobqueue.contrib.alerts import Notification, bounded_calls
from django_jobqueue.contrib.alerts.alerter import TTL, Alerter
from django_jobqueue.contrib.alerts.bounded_calls import WITHIN, BoundedCalls
from django_jobqueue.contrib.alerts.http_post import NotSent, get
from django_jobqueue.contrib.alerts.models import AlertDelivery
from django_jobqueue.store.connection import OwnConnection
from tests.contrib.alerts.conftest import TEST_CALLABLE, alerts_to, retry_now
from tests.contrib.alerts.test_failure_alerts import fail
from tests.support.waiting import eventually


class Calls(list[Notification]):
    """Notifications, and what their channel raises."""

    error: BaseException | None = None


gate, calls = threading.Event(), Calls()


def hang(notification: Notification) -> None:
    """A channel of the project."""
    calls.append(notification)
    gate.wait(20)
    if calls.error is not None:
        raise calls.error


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(bounded_calls, "WITHIN", 0.05)
    gate.clear()
    calls.clear()
    calls.error = None
    yield
    gate.set()


@pytest.mark.django_db(transaction=True)
def test_a_channel_that_hangs_is_tried_again_and_the_others_go_on(
    own: OwnConnection, alerter: Alerter
) -> None:
    slow = {"to": f"{__name__}.hang", "name": "slow"}
    with alerts_to(slow, {"to": TEST_CALLABLE, "name": "other"}) as taken:
        fail(own, "no")
        alerter.tick()
        assert (len(calls), len(taken)) == (1, 1)
        delivery = AlertDelivery.objects.get(channel="slow")
        assert delivery.error == "it takes longer than 0.05 s"
        retry_now()
        alerter.tick()
        assert len(calls) == 1  # the first call has not ended
        gate.set()
        eventually(lambda: retry_now() or alerter.tick() and len(calls) == 2)
        assert AlertDelivery.objects.exclude(sent_at=None).count() == 2
    assert 2 * WITHIN <= TTL


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [SystemExit, CancelledError])
def test_a_channel_that_exits_is_tried_again_and_the_others_go_on(
    own: OwnConnection, alerter: Alerter, error: type[BaseException]
) -> None:
    gate.set()
    broken = {"to": f"{__name__}.hang", "name": "broken"}
    with alerts_to(broken, {"to": TEST_CALLABLE, "name": "other"}) as taken:
        calls.error = error()
        fail(own, "no")
        alerter.tick()
        assert len(taken) == 1
        delivery = AlertDelivery.objects.get(channel="broken")
        assert (delivery.attempts, delivery.error) == (1, error.__name__)


def test_a_server_that_drips_is_waited_for_no_longer_than_for_another_one() -> None:
    """Each byte begins the timeout of a socket again."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                while not gate.wait(0.01):
                    connection.sendall(b"H")

        threading.Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(NotSent, match="longer than"):
            BoundedCalls().call("drip", partial(get, url))
        gate.set()


def test_what_a_call_raises_is_raised_here() -> None:
    def refuse() -> None:
        raise NotSent("HTTP 500")

    with pytest.raises(NotSent, match="HTTP 500"):
        BoundedCalls().call("refuse", refuse)
