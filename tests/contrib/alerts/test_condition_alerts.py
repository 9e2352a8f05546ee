"""Conditions: they fire after two of three checks, are repeated, and resolve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from django_jobqueue.contrib.alerts import Notification
from django_jobqueue.contrib.alerts.alerter import Alerter
from django_jobqueue.contrib.alerts.models import Alert
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.models import QueuedJob, Worker
from tests.contrib.alerts.conftest import alerts_to
from tests.stats.rows import ago, queued, worker

WAITS = "1 job is ready in queue mail; the oldest has waited for 10 m."


@pytest.fixture
def check(alerter: Alerter) -> Callable[[], None]:
    """A round in which the conditions are checked, and one that sends what it found."""

    def check() -> None:
        check_now(alerter)
        alerter.tick()

    return check


def check_now(alerter: Alerter) -> None:
    """Make a round after half a minute."""
    alerter._next_check = 0.0  # private: what a round waits for
    alerter.tick()


@pytest.fixture
def backlog(transactional_db: None) -> Iterator[list[Notification]]:
    """A worker, and a queue whose oldest job has waited for ten minutes."""
    worker()
    queued(queue="mail", run_after=ago(minutes=10))
    with alerts_to() as sent:
        yield sent


def lines(sent: list[Notification]) -> list[str]:
    return [alert.line for one in sent for alert in one.alerts]


def later(**length: float) -> None:
    length_ = timedelta(**length)
    Alert.objects.update(
        fired_at=F("fired_at") - length_,
        last_seen=F("last_seen") - length_,
        resolved_at=F("resolved_at") - length_,
        announced_at=F("announced_at") - length_,
    )


def test_a_condition_fires_once_and_is_resolved_five_minutes_after_its_end(
    backlog: list[Notification],
    check: Callable[[], None],
    heard: list[tuple[object, Any]],
) -> None:
    check()
    assert lines(backlog) == []  # seen once
    for _ in range(3):
        check()
    assert lines(backlog) == [WAITS]
    QueuedJob.objects.all().delete()
    for _ in range(3):
        check()
    assert len(backlog) == 1  # it may come back
    later(minutes=6)
    check()
    check()
    assert announcer.flush(20)
    assert lines(backlog)[1:] == [f"Resolved after 0 s: {WAITS}"]
    assert [one.type for one in backlog] == [
        "jobqueue.backlog.fired",
        "jobqueue.backlog.resolved",
    ]
    said = [(sender, alert.event) for sender, alert in heard]
    assert said == [("backlog", "fired"), ("backlog", "resolved")]
    row = Alert.objects.get()
    assert (row.subject, row.state, row.pending) == ("mail", "resolved", "")


def test_what_was_seen_in_two_of_three_checks_fires_and_is_repeated_once_a_day(
    backlog: list[Notification], check: Callable[[], None]
) -> None:
    check()
    job = QueuedJob.objects.get()
    QueuedJob.objects.all().delete()
    for _ in range(3):
        check()
    assert not Alert.objects.exists()
    job.save(force_insert=True)
    check()
    check()
    later(hours=25)
    check()
    check()
    assert lines(backlog) == [WAITS, f"Still firing: {WAITS}"]


def test_a_condition_that_comes_and_goes_sends_two_messages_an_hour(
    backlog: list[Notification], check: Callable[[], None]
) -> None:
    """It holds for three minutes of every ten."""

    def hold() -> None:
        queued(queue="mail", run_after=ago(minutes=10))
        for _ in range(3):
            check()
            later(minutes=1)

    def pause() -> None:
        QueuedJob.objects.all().delete()
        for _ in range(4):
            check()
            later(minutes=2)

    for _ in range(2):
        hold()
        pause()
    first = len(backlog)
    for _ in range(6):
        hold()
        pause()
    assert first == 3  # fired, resolved, fired
    assert len(backlog) == first
    for _ in range(6):
        later(minutes=10)
        check()
    check()
    assert lines(backlog)[first:] == [backlog[-1].title]
    assert backlog[-1].type == "jobqueue.backlog.resolved"


def test_two_alerters_make_one_alert(
    backlog: list[Notification], make_alerter: Callable[[], Alerter]
) -> None:
    """Both believe that they hold the lease."""
    for alerter in (make_alerter(), make_alerter()):
        for _ in range(3):
            alerter._conditions.check()  # private: without the lease
    assert Alert.objects.count() == 1


def test_a_new_holder_goes_on_with_an_alert_of_the_one_before(
    backlog: list[Notification], make_alerter: Callable[[], Alerter]
) -> None:
    first, second = make_alerter(), make_alerter()
    for _ in range(2):
        check_now(first)
    first.close()
    QueuedJob.objects.all().delete()
    later(minutes=30)
    for number in range(4):
        check_now(second)
        assert Alert.objects.get().state == ("firing" if number < 2 else "resolved")


def test_jobs_that_nobody_serves_stay_so_while_no_worker_claims(
    transactional_db: None, check: Callable[[], None]
) -> None:
    """Then nobody can know whether a worker would serve them."""
    worker(queues=["mail"])
    queued(queue="night")
    with alerts_to() as sent:
        check()
        check()
        Worker.objects.update(lease_until=ago(minutes=1))
        for _ in range(3):
            check()
        later(minutes=10)
        check()
        check()
    assert lines(sent) == [
        "1 job waits in queue 'night', which no living worker serves.",
        "No worker is alive, and 1 job waits. Start one with manage.py runworkers.",
    ]


def test_alerts_of_conditions_lead_to_the_list_that_they_are_about(
    transactional_db: None, check: Callable[[], None]
) -> None:
    worker()
    queued(queue="mail & more", run_after=ago(minutes=10))
    with alerts_to(SITE_URL="https://shop.example") as sent:
        check()
        check()
    assert [one.url for one in sent[0].alerts] == [
        "https://shop.example/admin/jobqueue/queuedjob/?queue=mail+%26+more"
    ]
