"""Clocks: of a machine that was suspended, and of a database that was set."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import pytest

from django_jobqueue.conf import conf
from django_jobqueue.embedded.threaded_worker import HostedThreads
from django_jobqueue.host.child import Child
from django_jobqueue.host.control import HostControl
from django_jobqueue.host.maintenance.renewer import Renewer
from django_jobqueue.processes.lease_clock import ClockWatch, lease_time
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.wakeups import WakeupPipes
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import database_identity
from django_jobqueue.store.connection import OwnConnection
from tests.execution.test_attempt import attempt_of
from tests.support.hand_driven import HandDriven


@pytest.fixture
def suspend(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let the machine sleep: ``suspend(60)``. time.monotonic() stands still then."""
    clock_gettime = time.clock_gettime

    def sleep(seconds: float) -> None:
        monkeypatch.setattr(
            time, "clock_gettime", lambda clock: clock_gettime(clock) + seconds
        )

    return sleep


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_lease_is_judged_by_a_clock_that_counts_sleep() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= lease_time() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def renewed(worker: HandDriven, own: OwnConnection) -> ProcessTable:
    """A host whose worker holds a job and was renewed just now."""
    process_table = ProcessTable(1, WakeupPipes())
    registered = int(lease_time() * 1_000)
    process_table.write(
        0, pid=os.getpid(), worker=worker.worker.id, renewable=1, registered=registered
    )
    process_table.write(0, held=1)
    Renewer(process_table, own).tick()
    return process_table


def test_after_a_sleep_a_supervisor_kills_what_others_may_have_taken_over(
    worker: HandDriven,
    own: OwnConnection,
    suspend: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed: list[Child] = []
    monkeypatch.setattr(Child, "kill", lambda child: killed.append(child))
    child = Child(os.getpid(), 0, 0, time.monotonic())
    process_table = renewed(worker, own)
    control = HostControl(WorkerConfig(), process_table, wanted=1, grace=0)
    control.fence_and_obey([child])
    suspend(conf.lease / 2)
    control.fence_and_obey([child])
    assert killed == []
    suspend(conf.lease)
    control.fence_and_obey([child])
    assert killed == [child]
    assert child.fenced


def test_after_a_sleep_the_renewer_renews_at_once(
    worker: HandDriven, own: OwnConnection, suspend: Callable[[float], None]
) -> None:
    process_table = renewed(worker, own)
    renewer = Renewer(process_table, own)
    renewer.tick()
    before = process_table.renewed_at
    renewer.tick()
    assert process_table.renewed_at == before
    suspend(conf.lease / 2)
    renewer.tick()
    assert process_table.renewed_at > before


@pytest.mark.django_db(transaction=True)
def test_after_a_sleep_an_embedded_worker_leaves(
    suspend: Callable[[float], None], own: OwnConnection
) -> None:
    database_identity.check_in(own)  # as maintenance does before there are workers
    process_table = ProcessTable(1)
    config = WorkerConfig(threads=1, listen=False)
    control = HostControl(config, process_table, wanted=1, grace=0)
    hosted = HostedThreads(config, process_table, 0)
    hosted.begin()
    control.fence_and_obey([hosted])
    assert not hosted.is_ending
    hosted.worker.held.add(attempt_of(lambda: None))
    hosted.worker.activity()
    suspend(conf.lease)
    control.fence_and_obey([hosted])
    assert hosted.is_ending
    hosted.worker.held.clear()
    hosted.end()


def test_a_clock_that_is_set_forward_is_noticed_by_what_it_went_too_far() -> None:
    watch = ClockWatch()
    assert watch.see(5_000.0, 10.0, 10.1) < 0  # it is seen for the first time
    assert watch.see(5_005.0, 15.0, 15.1) <= 0.0
    assert watch.see(5_040.0, 20.0, 20.1) == pytest.approx(30, abs=0.2)
    assert watch.see(5_045.0, 25.0, 25.1) <= 0.0
    assert watch.see(1_000.0, 30.0, 30.1) < 0


def test_an_answer_that_took_long_is_not_taken_for_a_clock_that_was_set() -> None:
    """It was seen at some moment between the question and the answer."""
    watch = ClockWatch()
    watch.see(5_000.0, 10.0, 40.0)  # at 10
    assert watch.see(5_060.0, 41.0, 70.0) <= 0.0  # at 70
