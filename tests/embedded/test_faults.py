"""What an embedded worker does where a worker process would be killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.test import override_settings

from django_jobqueue import operations
from django_jobqueue.embedded import embedded_supervisor
from django_jobqueue.models import QueuedJob, Worker
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import rescue
from tests.embedded.conftest import Start
from tests.sample import jobs
from tests.store.meanwhile import open_transaction
from tests.support.rows import archived, queued
from tests.support.selection import some_slow
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def _short_lease() -> Iterator[None]:
    with override_settings(JOBQUEUE={"LEASE": 2, "RELEASE": "tests"}):
        yield


def give_up(own: OwnConnection) -> None:
    """What another host does when this one does not renew its lease."""
    with own.transaction() as db:  # the host renews it again and again
        db.run("UPDATE jobqueue_worker SET lease_until = now() - interval '1 second'")
        ((lost, *_),) = worker_rows.give_up(db)
    rescue.rescue(own, [lost], crashed=True, reason="its lease lapsed")


@pytest.mark.parametrize(
    "name", some_slow(["renewer", "completer", "listener"], ["completer"])
)
def test_a_worker_without_room_for_one_of_its_threads_is_started_again(
    start: Start, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    begin, failed = threading.Thread.start, []

    def without_room(thread: threading.Thread) -> None:
        if thread.name == name and len(failed) < 2:
            failed.append(thread)
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", without_room)
    worker = start(threads=1)
    eventually(lambda: len(failed) == 2)
    job = jobs.add.enqueue(1, b=2)
    eventually(lambda: archived(id=job.id))
    worker.stop()
    assert {row.state for row in Worker.objects.all()} == {"stopped"}
    assert {row.end for row in Worker.objects.all()} <= {"ended", "it could not start"}
    assert not any(thread.name == name for thread in threading.enumerate())


@pytest.mark.usefixtures("_short_lease")
def test_a_worker_that_others_gave_up_stops_its_handlers_and_has_a_successor(
    start: Start, own: OwnConnection, gate: threading.Event
) -> None:
    worker = start(threads=1)
    jobs.stay.enqueue("gate")
    eventually(lambda: queued(status="running"))
    name = worker.name
    give_up(own)

    eventually(lambda: Worker.objects.filter(state="running").exclude(name=name))
    job = eventually(lambda: queued(status="running"))[0]
    assert job.worker_id != Worker.objects.get(name=name).id
    gate.set()
    worker.wait_idle()
    (done,) = archived()
    assert (done.status, done.attempts, done.crashes) == ("succeeded", 1, 1)
    assert Worker.objects.get(name=name).state == "lost"


@pytest.mark.usefixtures("_short_lease")
def test_handlers_are_told_to_stop_when_the_lease_cannot_be_renewed(
    start: Start, own: OwnConnection, gate: threading.Event
) -> None:
    worker = start(threads=1)
    jobs.stay.enqueue("gate")
    eventually(lambda: queued(status="running"))
    name = worker.name
    with own.raw() as connection, connection.transaction():
        connection.execute("SET LOCAL statement_timeout = 0")
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        connection.execute("LOCK TABLE jobqueue_worker IN SHARE ROW EXCLUSIVE MODE")
        eventually(lambda: worker.name == "", what="the worker to be fenced")
    eventually(lambda: worker.name not in ("", name))
    gate.set()
    worker.wait_idle()
    assert [job.status for job in archived()] == ["succeeded"]


def test_a_handler_that_hangs_is_timed_out_and_gives_its_slot_back_when_it_ends(
    start: Start, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    with override_settings(JOBQUEUE={"CANCEL_GRACE": 0.1}):
        worker = start(threads=1, async_slots=0)
        jobs.hang_until.enqueue("gate")
        (unresponsive,) = eventually(lambda: archived())
        assert (unresponsive.status, unresponsive.attempts) == ("failed", 1)
        assert "so its thread was given up" in unresponsive.error_message
        assert "its slot is lost until it ends" in caplog.text
        jobs.add.enqueue(1)
        assert len(queued(status="queued")) == 1  # there is no slot
        gate.set()
        eventually(lambda: len(archived()) == 2)
        worker.wait_idle()
    assert archived(id=unresponsive.id)[0].status == "failed"


def test_a_job_that_must_run_alone_does_so_with_no_other_beside_it(
    start: Start, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_supervisor, "ALONE_AFTER", 0.3)
    jobs.stay.enqueue("gate")
    quarantined = QueuedJob.objects.create(
        job_type_id="tests.sample.add", data={"a": 1}, quarantined=True
    )
    worker = start()
    eventually(lambda: Worker.objects.filter(state="draining"))  # it makes room
    later = jobs.add.enqueue(2).id
    assert [job.id for job in queued(status="queued")] == [quarantined.id, later]
    gate.set()
    (done,) = eventually(lambda: archived(id=quarantined.id))
    row = Worker.objects.get(name=done.worker)
    assert (row.threads, row.name != worker.name) == (1, True)
    eventually(lambda: archived(id=later))
    assert archived(id=later)[0].worker == worker.name
    eventually(lambda: Worker.objects.filter(id=row.id, state="stopped"))


def test_it_starts_when_the_database_can_be_used(
    start: Start, own: OwnConnection
) -> None:
    with own.raw() as connection, connection.transaction():
        connection.execute("LOCK TABLE jobqueue_worker IN ACCESS EXCLUSIVE MODE")
        worker = start()
        with pytest.raises(TimeoutError, match="the worker has not started"):
            worker.wait_idle(0.2)
    jobs.add.enqueue(1)
    worker.wait_idle(30)
    assert [job.status for job in archived()] == ["succeeded"]


def test_the_doors_stay_open_beside_a_job_that_must_run_alone_and_may_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_supervisor, "ALONE_AFTER", 0.0)
    operations.pause(["tests.sample.aadd"])
    jobs.aadd.enqueue(1)
    QueuedJob.objects.update(quarantined=True)
    worker = start(threads=1)
    for number in range(20):
        made = jobs.add.enqueue(number)
        eventually(lambda id=made.id: archived(id=id))
    assert [row.name for row in Worker.objects.all()] == [worker.name]

    operations.resume(["tests.sample.aadd"])
    eventually(lambda: not queued())
    assert len(archived()) == 21


def test_the_doors_are_opened_again_where_a_job_that_must_run_alone_is_locked(
    start: Start, other: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_supervisor, "ALONE_AFTER", 0.0)
    quarantined = jobs.aadd.enqueue(1).id
    QueuedJob.objects.update(quarantined=True)
    with open_transaction(other) as transaction:
        transaction.run(
            "SELECT FROM jobqueue_queuedjob WHERE id = %(id)s FOR UPDATE",
            {"id": quarantined},
        )
        start(threads=1)
        eventually(lambda: Worker.objects.filter(end="ended").count() == 2)
        jobs.add.enqueue(2)
        eventually(archived)
    eventually(lambda: not queued(), within=60)
