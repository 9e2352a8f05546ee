"""Signals about what was written: which, from whom, and that receivers harm nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.dispatch import Signal
from django.utils import timezone

from django_jobqueue import signals
from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.execution.signal_sender import Announcer, announcer
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.expirer import Expirer
from django_jobqueue.host.maintenance.pruner import Pruner
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.worker import Worker
from tests.sample import jobs
from tests.support.hand_driven import HandDriven, Make
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
ALL = {name: value for name, value in vars(signals).items() if type(value) is Signal}


@pytest.fixture
def heard() -> Iterator[list[tuple[str, object, dict[str, Any]]]]:
    """What receivers of every signal were told: name, sender, arguments."""
    told: list[tuple[str, object, dict[str, Any]]] = []
    names = {id(signal): name for name, signal in ALL.items()}

    def receive(sender: object, signal: Signal, **arguments: Any) -> None:
        told.append((names[id(signal)], sender, arguments))

    for signal in ALL.values():
        signal.connect(receive)
    yield told
    for signal in ALL.values():
        signal.disconnect(receive)


def names_of(heard: list[tuple[str, object, dict[str, Any]]]) -> list[str]:
    assert announcer.flush(20)
    return [name for name, _, _ in heard]


def last(heard: list[tuple[str, object, dict[str, Any]]]) -> tuple[object, Any]:
    _, sender, arguments = heard[-1]
    return sender, arguments


@pytest.mark.parametrize("handler", [jobs.add, jobs.aadd], ids=["sync", "async"])
def test_a_job_that_succeeds_is_told_from_its_handler_when_it_was_written(
    worker: HandDriven, heard: list[Any], handler: Any
) -> None:
    seen: list[str] = []

    def look(id: Any, **kwargs: Any) -> None:
        seen.append(ArchivedJob.objects.get(id=id).status)

    signals.job_succeeded.connect(look)
    try:
        id = handler.enqueue(a=1).id
        worker.work()
        assert names_of(heard) == [
            "job_enqueued",
            "attempt_started",
            "attempt_succeeded",
            "job_succeeded",
        ]
    finally:
        signals.job_succeeded.disconnect(look)
    assert all(sender is handler for _, sender, _ in heard)
    assert all(arguments["job_type"] == handler.name for _, _, arguments in heard)
    _, arguments = last(heard)
    assert (arguments["id"], arguments["attempt"]) == (id, 1)
    assert isinstance(arguments["outcome"], Outcome)
    assert seen == ["succeeded"]


def test_every_end_of_an_attempt_has_its_signal(
    worker: HandDriven, heard: list[Any]
) -> None:
    for made, told in (
        (jobs.fail.enqueue, ["job_retried", "job_retried", "job_failed"]),
        (lambda: jobs.say.enqueue(word="snooze"), ["job_snoozed"]),
        (lambda: jobs.say.enqueue(word="cancel"), ["job_cancelled"]),
    ):
        heard.clear()
        made()
        worker.work()
        found = names_of(heard)
        assert [name for name in found if name.startswith("job_")][1:] == told
        assert "attempt_failed" in found


def test_a_receiver_may_be_for_one_handler(worker: HandDriven) -> None:
    got: list[str] = []

    def receive(signal: Signal, **kwargs: Any) -> None:
        got.append("job" if signal is signals.job_succeeded else "enqueue")

    chosen = (signals.job_enqueued, signals.job_succeeded)
    for signal in chosen:
        signal.connect(receive, sender=jobs.add)
    try:
        jobs.add.using(priority=7).enqueue(a=1)
        jobs.aadd.enqueue(a=1)
        worker.work()
        assert announcer.flush(20)
    finally:
        for signal in chosen:
            signal.disconnect(receive, sender=jobs.add)
    assert got == ["enqueue", "job"]


def test_a_job_that_expires_is_told(own: OwnConnection, heard: list[Any]) -> None:
    soon = timezone.now() + timedelta(seconds=60)
    id = jobs.add.using(expires_at=soon).enqueue(a=1).id
    QueuedJob.objects.update(expires_at=timezone.now())
    deadlines = DeadlineWatch(own, WorkerConfig())
    Expirer(own, deadlines).tick()
    assert names_of(heard) == ["job_enqueued", "job_expired"]
    assert last(heard) == (jobs.add, {"job_type": jobs.add.name, "id": id})


def test_what_was_pruned_is_told_once_a_pass(
    worker: HandDriven, own: OwnConnection, heard: list[Any]
) -> None:
    for number in range(3):
        jobs.add.enqueue(number)
    worker.work()
    ArchivedJob.objects.update(finished_at=timezone.now() - timedelta(days=8))
    pruner = Pruner(own, DeadlineWatch(own, WorkerConfig()))
    while pruner.tick() < 100:
        pass
    assert names_of(heard)[-1] == "jobs_pruned"
    assert last(heard) == (None, {"count": 3})


def test_workers_tell_that_they_start_and_stop(
    make_worker: Make, heard: list[Any]
) -> None:
    worker = make_worker(queues=("mail",)).worker
    worker.start()
    assert names_of(heard) == ["worker_started"]
    expected = {"name": worker.name, "worker_id": worker.id, "queues": ("mail",)}
    assert last(heard) == (Worker, expected)
    worker.drain()
    worker.stop(20)
    assert names_of(heard) == ["worker_started", "worker_stopped"]


def test_without_receivers_no_thread_begins() -> None:
    signal, made = Signal(), Announcer()
    made.send(signal, None)
    assert not made.has_started
    assert made.flush(0)


def announce(receive: Callable[..., None], count: int) -> None:
    """Send so many signals to a receiver, and wait until it was called for all."""
    signal, made = Signal(), Announcer()
    signal.connect(receive)
    for number in range(count):
        made.send(signal, None, number=number)
    assert made.flush(20)
    assert made.stop(20)


def test_a_receiver_that_raises_does_not_keep_the_others_waiting() -> None:
    got: list[int] = []

    def receive(number: int, **kwargs: Any) -> None:
        if number == 1:
            raise ValueError("a bad receiver")
        got.append(number)

    announce(receive, 3)
    assert got == [0, 2]


def test_signals_that_nobody_can_keep_up_with_are_dropped_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("django_jobqueue.execution.signal_sender.LONGEST", 2)
    signal, made, gate = Signal(), Announcer(), threading.Event()
    got: list[int] = []

    def receive(number: int, **kwargs: Any) -> None:
        got.append(number)
        gate.wait(20)

    signal.connect(receive)
    made.send(signal, None, number=0)
    eventually(lambda: got)
    for number in range(1, 6):
        made.send(signal, None, number=number)
    gate.set()
    assert made.flush(20)
    assert got == [0, 1, 2]
    assert [r.levelname for r in caplog.records] == ["ERROR"]
    assert made.stop(20)


def test_what_a_receiver_left_open_reaches_no_other(transactional_db: None) -> None:
    got: list[bool] = []

    def receive(**kwargs: Any) -> None:
        got.append(connection.in_atomic_block)
        connection.set_autocommit(False)

    announce(receive, 2)
    assert got == [False, False]
