"""Which process is taken for one that does not see the clock, and whose fault it is.

Time, what runs, and the CPU that threads used are parameters.
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from uuid import UUID, uuid4

import pytest
from django.test import override_settings

from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.host import hangs
from django_jobqueue.host.hangs import MARGIN, Hang, HangWatch, cpu_seconds
from django_jobqueue.processes.attempt_table import AttemptTable, RunningAttempt
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.worker import Worker
from tests.execution.test_attempt import attempt_of
from tests.sample import jobs
from tests.support.tables import differing
from tests.support.waiting import eventually

PID = 7
FIRST, SECOND, THIRD = 11, 12, 13  # threads
DUE = 100.0  # time.monotonic()


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    seconds: dict[int, float] = {}
    monkeypatch.setattr(hangs, "cpu_seconds", lambda pid, running: dict(seconds))
    return seconds


def runs(thread: int, deadline: float = DUE) -> RunningAttempt:
    return RunningAttempt(uuid4(), thread, deadline)


def jobs_of(*attempts: RunningAttempt) -> list[UUID]:
    return [one.job for one in attempts]


class Watched:
    """A process that is looked at once a second."""

    def __init__(self, *running: RunningAttempt) -> None:
        self.watch = HangWatch()
        self.running = list(running)

    def until(
        self, end: float, watched: Callable[[float], float] = lambda now: 0.0
    ) -> tuple[float, Hang] | None:
        """Look until it is judged; returns when, and how."""
        for now in itertools.count(DUE - 5):
            if now > end:
                return None
            found = self.watch.judge(PID, self.running, watched(now), now)
            if found is not None:
                return now, found
        return None


@pytest.mark.usefixtures("used")
def test_an_attempt_past_its_deadline_in_a_silent_process_is_timed_out() -> None:
    one = runs(FIRST)
    with override_settings(JOBQUEUE={"CANCEL_GRACE": 1}):
        found = Watched(one).until(DUE + 60)
    assert found[1] == Hang(timed_out=jobs_of(one))
    assert 1 + MARGIN < found[0] - DUE <= 1 + MARGIN + 2  # looks are a second apart


@pytest.mark.usefixtures("used")
def test_nobody_is_judged_whose_time_is_not_over_or_who_sees_to_it() -> None:
    for deadline in (math.inf, DUE + 1_000):
        assert Watched(runs(FIRST, deadline)).until(DUE + 500) is None
    # A process that looks at its clock ends what runs too long itself.
    assert Watched(runs(FIRST)).until(DUE + 500, lambda now: now - 0.3) is None


@pytest.mark.usefixtures("used")
def test_one_that_falls_silent_later_is_judged_from_then_on() -> None:
    one = runs(FIRST)
    found = Watched(one).until(DUE + 500, lambda now: min(now, DUE + 50))
    assert found[0] > DUE + 50 + MARGIN


@pytest.mark.usefixtures("used")
def test_after_the_machine_stood_still_a_process_is_given_time_to_look() -> None:
    """Its last look is long ago, and so is that of whoever judges."""
    watch, running = HangWatch(), [runs(FIRST)]
    for now in (DUE - 1, DUE + 600, DUE + 600.9):
        assert watch.judge(PID, running, DUE - 1, now) is None
    assert watch.judge(PID, running, DUE + 601, DUE + 601.2) is None
    for now in (DUE + 602, DUE + 605):  # it stood still once more
        assert watch.judge(PID, running, DUE + 601, now) is None


def computing(
    used: dict[int, float], deadlines: tuple[float, ...], share: dict[int, float]
) -> list[int] | None:
    """Which of three attempts are timed out in a silent process whose threads use such
    shares of the CPU."""
    used.clear()
    threads = (FIRST, SECOND, THIRD)
    attempts = [runs(*one) for one in zip(threads, deadlines, strict=True)]

    def compute(now: float) -> float:
        used.update({thread: 40.0 + now * of_it for thread, of_it in share.items()})
        return 0.0

    found = Watched(*attempts).until(DUE + 60, compute)
    assert not found[1].suspects
    return [one.thread for one in attempts if one.job in found[1].timed_out]


def test_of_several_the_one_that_computes_is_timed_out(used: dict[int, float]) -> None:
    due, mixed = (DUE, DUE, DUE), (DUE, DUE - 2, DUE + 900)
    few, late = 0.02, (DUE, DUE, DUE + 900)
    both = [FIRST, SECOND]  # whose time is over, where nobody stands out
    rows: list[tuple[tuple[float, ...], dict[int, float], list[int]]] = [
        (due, {FIRST: 1.0, SECOND: few, THIRD: few}, [FIRST]),
        (due, {FIRST: few, SECOND: 1.0, THIRD: few}, [SECOND]),
        (mixed, {FIRST: 1.0, SECOND: few, THIRD: few}, [FIRST]),
        (mixed, {FIRST: few, SECOND: 1.0, THIRD: few}, [SECOND]),
        (late, {}, both),  # /proc does not tell
        (late, {FIRST: 0.0, SECOND: 0.0, THIRD: 0.0}, both),  # asleep with the lock
        (late, {FIRST: 1.0, SECOND: 1.0, THIRD: 0.0}, both),  # one without the lock
    ]
    assert differing(rows, partial(computing, used)) == []


def test_one_that_may_compute_on_has_the_grace(used: dict[int, float]) -> None:
    late, holder = runs(FIRST), runs(SECOND, math.inf)

    def compute(now: float) -> float:
        used.update({FIRST: 1.0, SECOND: now})
        return 0.0

    with override_settings(JOBQUEUE={"GRACE": 30, "CANCEL_GRACE": 1}):
        found = Watched(late, holder).until(DUE + 60, compute)
    assert found[1] == Hang(suspects=jobs_of(holder))
    assert found[0] > DUE + 31


def test_what_ended_before_the_process_died_is_nobodys_fault() -> None:
    gone, there, other = runs(FIRST), runs(SECOND), runs(THIRD)
    hang = Hang(timed_out=jobs_of(gone, there), suspects=jobs_of(other, gone))
    assert hang.among([there, other]) == Hang(jobs_of(there), jobs_of(other))


def test_the_cpu_of_a_thread_is_read_from_the_system() -> None:
    own = runs(threading.get_native_id())
    before = cpu_seconds(os.getpid(), [own, runs(0)])[own.thread]
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    after = cpu_seconds(os.getpid(), [own])
    assert after[own.thread] - before >= 0.05
    assert cpu_seconds(0, [own]) == {}


# The table.


def attempt(timeout: float | None = 60.0) -> Attempt:
    return attempt_of(lambda: None, timeout=timeout)


def test_a_table_shows_what_runs_to_other_processes() -> None:
    table = AttemptTable(2)
    first, second = attempt(timeout=5.0), attempt(timeout=None)
    child = os.fork()
    if child == 0:
        rows = table.row(FIRST), table.row(SECOND)
        for row in rows:
            row.enter(attempt())
            row.leave()
        rows[0].enter(attempt())
        rows[0].enter(first)
        rows[1].enter(second)
        os._exit(0)
    os.waitpid(child, 0)
    by_job = {one.job: one for one in table.running()}
    assert by_job.keys() == {first.job.id, second.job.id}
    assert [by_job[one.job.id].thread for one in (first, second)] == [FIRST, SECOND]
    assert 0 < by_job[first.job.id].deadline - time.monotonic() <= 5
    assert by_job[second.job.id].deadline == math.inf
    table.clear()
    assert table.running() == []


def test_what_does_not_fit_into_a_table_is_not_there() -> None:
    table = AttemptTable(1)
    rows = [table.row(FIRST) for _ in range(3)]
    for row in rows[1:]:
        row.enter(attempt())
    assert table.running() == []
    rows[0].enter(one := attempt())
    assert [found.job for found in table.running()] == [one.job.id]
    AttemptTable(0).row(FIRST).enter(one)
    assert AttemptTable(0).running() == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("handler", ["stay", "astay"])
def test_a_worker_shows_what_runs(handler: str, own: OwnConnection) -> None:
    table = AttemptTable(4)
    worker = Worker(WorkerConfig(threads=2, async_slots=2, listen=False), table)
    worker.register()
    worker.build()
    gate = jobs.gates["gate"] = threading.Event()
    for _ in range(2):
        made = {getattr(jobs, handler).enqueue("gate").id for _ in range(2)}
        worker.dispatcher.tick()
        eventually(lambda: len(table.running()) == 2)
        assert {one.job for one in table.running()} == made
        assert all(one.deadline > time.monotonic() for one in table.running())
        gate.set()
        eventually(lambda: not table.running())
        gate.clear()
        eventually(lambda: worker.completer.waiting == 2)
        worker.completer.tick()
    for executor in worker.executors:
        executor.stop(5)
    for loop in (worker.dispatcher, worker.completer, worker.reporter):
        loop.close()
