"""What operators ask of an embedded worker."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.models import Host, Worker
from tests.embedded.conftest import Start
from tests.sample import jobs
from tests.support.rows import archived, queued
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def state() -> str:
    return str(Worker.objects.order_by("id")[0].state)


def test_a_drained_worker_claims_nothing_until_it_is_resumed(start: Start) -> None:
    worker = start()
    worker.wait_idle()
    row = Worker.objects.get()
    operations.ask_workers([row.id], "drain")
    eventually(lambda: state() == "draining")
    jobs.add.enqueue(1)
    with pytest.raises(TimeoutError, match="the worker is paused by an operator"):
        worker.wait_idle(0.3)
    assert len(queued()) == 1
    operations.ask_workers([row.id], "resume")
    eventually(lambda: archived())
    worker.wait_idle()


def test_a_worker_that_is_restarted_has_a_successor_while_its_jobs_end(
    start: Start, gate: threading.Event
) -> None:
    worker = start()
    jobs.stay.enqueue("gate")
    eventually(lambda: queued(status="running"))
    row = Worker.objects.get()
    operations.ask_workers([row.id], "restart")
    eventually(lambda: Worker.objects.count() == 2)
    id = jobs.add.enqueue(1).id
    eventually(lambda: archived(id=id))
    assert archived(id=id)[0].worker != row.name
    gate.set()
    eventually(lambda: state() == "stopped")
    worker.wait_idle()
    assert {job.status for job in archived()} == {"succeeded"}


def test_a_worker_that_is_stopped_stays_stopped(start: Start) -> None:
    worker = start()
    worker.wait_idle()
    operations.ask_workers([Worker.objects.get().id], "stop")
    worker.run()  # in the foreground, which ends then
    assert not worker.is_running
    jobs.add.enqueue(1)
    assert state() == "stopped"
    assert len(queued()) == 1


def test_it_says_where_a_job_is_and_can_cancel_it(
    start: Start, gate: threading.Event
) -> None:
    worker = start()
    id = jobs.stay.enqueue("gate").id
    eventually(lambda: queued(status="running"))
    operations.request_stack_dumps([Worker.objects.get().id])
    answer = eventually(lambda: Worker.objects.get().stack_dump)
    assert "in stay" in str(answer)
    operations.cancel([id])
    worker.wait_idle()
    assert [job.status for job in archived()] == ["cancelled"]


def test_the_row_of_an_embedded_worker_shows_what_it_does_and_what_it_cannot(
    start: Start, settings: Any
) -> None:
    settings.JOBQUEUE = {"LEASE": 3}
    worker = start(threads=3, async_slots=0, queues=["default"])
    worker.wait_idle()
    row = eventually(Host.objects.first)
    plan = (row.processes, row.threads, row.async_slots, row.queues)
    assert plan == (1, 3, 0, ["default"])
    assert (row.embedded, row.state) == (True, "running")
    assert Worker.objects.get().supervisor == row.name

    def has(**columns: object) -> bool:
        return Host.objects.filter(pk=row.pk, **columns).exists()

    for what, state in (("drain", "draining"), ("resume", "running")):
        operations.ask_hosts(row.pk, what)
        eventually(lambda s=state: has(state=s))
    # Operations refuse this; somebody writes it by hand.
    Host.objects.update(desired={"number": 9, "processes": 3, "restart": 9})
    eventually(lambda: has(error__contains="embedded in another program"))
    assert has(processes=1, state="running", applied__restart__isnull=True)
    jobs.add.enqueue(1)
    eventually(archived)
    operations.ask_hosts(row.pk, "stop")
    eventually(lambda: not worker.is_running)
    assert has(state="stopped", stopped_at__isnull=False)
