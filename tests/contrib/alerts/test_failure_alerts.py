"""New and regressed failure groups: one alert in the whole cluster, that reaches each
channel."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from django_jobqueue.contrib.alerts import Notification, alert_rows
from django_jobqueue.contrib.alerts.alerter import Alerter
from django_jobqueue.contrib.alerts.models import Alert, AlertDelivery
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.models import FailureGroup
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import finish_unsuccessful, rescue
from django_jobqueue.store.session import FINISHING
from tests.contrib.alerts.conftest import TEST_CALLABLE, alerts_to, retry_now
from tests.store.outcomes import failed, failure, finished_as, held_by, report
from tests.store.rows import ADD, claimed, make_many, register

FILE = "tests.contrib.alerts.conftest"


def fail(own: OwnConnection, *messages: str) -> None:
    worker = register(own)
    make_many(len(messages))
    jobs = claimed(own, worker, count=len(messages))
    ends = [
        finished_as(job, failed(failure(text)))
        for job, text in zip(jobs, messages, strict=True)
    ]
    assert report(own, held_by(worker), *ends) == set()


def texts(sent: list[Notification]) -> list[str]:
    return [one.title for one in sent]


def test_workers_that_meet_a_new_error_at_once_make_one_alert(
    own: OwnConnection, make_alerter: Callable[[], Alerter]
) -> None:
    threads, each = 4, 3
    worker = register(own)
    make_many(threads * each)
    jobs = claimed(own, worker, count=threads * each)
    barrier = Barrier(threads)

    def meet(number: int) -> None:
        db = OwnConnection("tests", plans=FINISHING)
        db.fetch("SELECT 1")
        for job in jobs[number * each : (number + 1) * each]:
            barrier.wait(30)
            report(
                db, held_by(worker), finished_as(job, failed(failure("no such order")))
            )
        db.close()
        connections.close_all()

    with alerts_to() as sent, ThreadPoolExecutor(threads) as pool:
        list(pool.map(meet, range(threads)))
        alerters = [make_alerter(), make_alerter()]
        for alerter in alerters * 2:
            alerter.tick()
    assert Alert.objects.count() == 1
    assert texts(sent) == ["A new failure: ValueError in shop.jobs:send"]
    (alert,) = sent[0].alerts
    assert (alert.error, alert.job_type) == ("no such order", ADD)


def test_a_resolved_failure_that_is_back_makes_one_alert(
    own: OwnConnection, alerter: Alerter
) -> None:
    """None, if alerts are off."""
    fail(own, "unseen")
    assert FailureGroup.objects.exists()
    assert not Alert.objects.exists()
    with alerts_to() as sent:
        fail(own, "no such order")
        alerter.tick()
        FailureGroup.objects.update(state="resolved")
        fail(own, "no such order", "no such order")
        fail(own, "no such order")
        alerter.tick()
    assert texts(sent)[1:] == [
        "A resolved failure is back: ValueError in shop.jobs:send"
    ]


def test_a_crash_makes_an_alert_and_what_a_failed_transaction_recorded_none(
    own: OwnConnection, alerter: Alerter
) -> None:
    worker = register(own)
    make_many(2)
    first, _ = claimed(own, worker, count=2)
    stolen = finished_as(first, failed())
    stolen.fence += 1
    with alerts_to() as sent:
        assert finish_unsuccessful.end(own, held_by(worker), [stolen], 0.0) == {
            first.id
        }
        assert not Alert.objects.exists()
        rescue.rescue(own, [worker], crashed=True, reason="killed by signal 9")
        alerter.tick()
    text = f"A worker died while a job of type {ADD} ran. Whether that job caused "
    assert texts(sent) == [f"{text}it is unknown."]


def test_each_channel_gets_what_it_wants(own: OwnConnection, alerter: Alerter) -> None:
    wanted = {"to": TEST_CALLABLE, "on": ["failure_group"]}
    other = {"to": "tests.contrib.alerts.conftest.refuse", "on": ["regression"]}
    with alerts_to(wanted, other):
        fail(own, "no such order")
        alerter.tick()
    assert [row.channel for row in AlertDelivery.objects.all()] == [TEST_CALLABLE]
    assert AlertDelivery.objects.get().sent_at is not None


def test_many_alerts_make_one_digest_and_the_next_one_waits(
    own: OwnConnection, alerter: Alerter
) -> None:
    """Ten are sent one by one."""
    with alerts_to() as sent:
        fail(own, "a")
        alerter.tick()
        fail(own, *(f"error {letter}" for letter in "bcdefghijklmnopqrstuvwxyz"))
        alerter.tick()
        fail(own, "late")
        alerter.tick()
        assert [len(one.alerts) + one.others for one in sent] == [1, 25]
        assert sent[1].title == "25 alerts"
        assert sent[1].text.endswith("and 5 others")
        past = AlertDelivery.objects.filter(send_id__isnull=False)
        past.update(planned_at="2000-01-01T00:00Z")
        alerter.tick()
        assert [len(one.alerts) + one.others for one in sent] == [1, 25, 1]
        sent.clear()
        AlertDelivery.objects.update(planned_at="2000-01-01T00:00Z")
        fail(own, *(f"other {letter}" for letter in "abcdefghij"))
        alerter.tick()
        fail(own, "k")  # the eleventh in five minutes has nothing to be together with
        alerter.tick()
        assert [one.is_digest for one in sent] == [False] * 10


def test_a_refused_alert_is_sent_again_with_the_same_id(
    own: OwnConnection, alerter: Alerter, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[Notification] = []

    def refuse(notification: Notification) -> None:
        refused.append(notification)
        raise ConnectionRefusedError(111, "no")

    with alerts_to() as sent:
        fail(own, "no such order")
        with monkeypatch.context() as patch:
            patch.setattr("tests.contrib.alerts.conftest.take", refuse)
            alerter.tick()
            alerter.tick()  # too early
        assert len(refused) == 1
        assert AlertDelivery.objects.get().error == "ConnectionRefusedError 111"
        retry_now()
        alerter.tick()
        alerter.tick()
    assert [one.id for one in sent] == [refused[0].id]


def test_an_alert_that_nobody_accepts_is_given_up_after_a_day(
    own: OwnConnection, alerter: Alerter, caplog: pytest.LogCaptureFixture
) -> None:
    with alerts_to({"to": f"{FILE}.refuse"}):
        fail(own, "no such order")
        alerter.tick()
        AlertDelivery.objects.update(planned_at="2000-01-01T00:00Z")
        retry_now()
        alerter.tick()
        retry_now()
        alerter.tick()
    row = AlertDelivery.objects.get()
    assert (row.attempts, row.error) == (2, "ValueError")
    assert row.given_up_at is not None
    assert "given up" in caplog.messages[-1]


def test_a_holder_that_is_killed_loses_none_and_sends_again_with_the_same_id(
    own: OwnConnection,
    make_alerter: Callable[[], Alerter],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed after the channel accepted, and before that was written."""

    def die(*args: Any) -> None:
        raise KeyboardInterrupt

    with alerts_to() as sent:
        fail(own, "no such order")
        with monkeypatch.context() as patch:
            patch.setattr("django_jobqueue.contrib.alerts.alert_rows.sent", die)
            with pytest.raises(KeyboardInterrupt):
                make_alerter().tick()
        successor = make_alerter()
        successor.tick()
        assert len(sent) == 1  # the lease is still the other's
        own.run("UPDATE jobqueue_leases_lease SET lease_until = clock_timestamp()")
        successor.tick()
        successor.tick()
    assert [one.id for one in sent] == [sent[0].id] * 2
    assert Alert.objects.count() == 1


def test_a_stopped_holder_lets_another_go_on_and_receivers_need_no_channel(
    own: OwnConnection,
    make_alerter: Callable[[], Alerter],
    heard: list[tuple[object, Any]],
) -> None:
    with alerts_to() as sent:
        first, second = make_alerter(), make_alerter()
        first.tick()
        first.close()
        fail(own, "no such order")
        second.tick()
        assert len(sent) == 1
    FailureGroup.objects.update(state="resolved")
    fail(own, "no such order")  # without a channel
    second.tick()
    second.tick()
    assert announcer.flush(20)
    text = "A new failure: ValueError in shop.jobs:send"
    back = "A resolved failure is back: ValueError in shop.jobs:send"
    assert [(sender, alert.text) for sender, alert in heard] == [
        ("failure_group", text),
        ("regression", back),
    ]


def test_old_alerts_are_deleted_with_their_deliveries(
    own: OwnConnection, alerter: Alerter
) -> None:
    with alerts_to():
        fail(own, "a", "b")
        alerter.tick()
    old = Alert.objects.order_by("pk").first()
    assert old is not None
    Alert.objects.filter(pk=old.pk).update(fired_at=old.fired_at - timedelta(days=91))
    assert alert_rows.drop(own) is False
    assert Alert.objects.count() == AlertDelivery.objects.count() == 1
    assert not Alert.objects.filter(pk=old.pk).exists()
