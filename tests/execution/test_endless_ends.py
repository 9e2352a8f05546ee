"""Event loops, threads and ends of attempts that get stuck, seen from inside."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import override_settings

from django_jobqueue import signals
from django_jobqueue.domain.retry_decision import StopReason, Verb
from django_jobqueue.execution import connection_reset
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import run
from django_jobqueue.workers.executors import base, coroutines
from django_jobqueue.workers.executors.coroutines import Coroutines
from django_jobqueue.workers.executors.threads import Threads
from django_jobqueue.workers.watchdog import Watchdog
from tests.execution.test_attempt import attempt_of
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived
from tests.support.waiting import eventually
from tests.workers.test_executors import SLOTS, Scene


@pytest.fixture
def scene() -> Iterator[Scene]:
    """An event loop with slots."""
    made = Scene(Coroutines)
    made.gate.set()
    yield made
    made.gate.set()
    assert made.executor.stop(20)
    del made
    gc.collect()  # what asyncio says of forgotten tasks is said in this test


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing has time before a handler or after it."""
    monkeypatch.setattr(base, "LEAST_PATIENCE", 0.0)
    with override_settings(JOBQUEUE={"GRACE": 0, "CANCEL_GRACE": 0}):
        yield


class Gate:
    """Holds up who comes, until it is opened."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def block(self, *words: object, **arguments: object) -> str:
        self.entered.set()
        self.opened.wait(60)
        return ""

    async def ablock(self) -> None:
        await sync_to_async(self.block)()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Opened at the end."""
    made = Gate()
    yield made
    made.opened.set()


async def stop() -> None:
    asyncio.get_running_loop().stop()


async def stop_and_wait() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


async def cancel_all() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def exit_in_task() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    asyncio.get_running_loop().create_task(leave())
    await asyncio.sleep(0)


@pytest.mark.dear
@pytest.mark.parametrize(
    "treatments", [(stop, stop_and_wait, cancel_all), (exit_in_task,)]
)
def test_the_event_loop_goes_on_whatever_a_handler_does_to_it(
    scene: Scene, treatments: tuple[Any, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """What it cancelled before its first step is started once more."""
    for treat in treatments:
        caplog.clear()
        for number in range(1, 4):
            scene.executor.put([attempt_of(treat), scene.attempt()])
            eventually(lambda number=number: len(scene.done) == 2 * number)
        scene.executor.put([scene.attempt() for _ in range(SLOTS)])
        eventually(lambda: len(scene.done) == 6 + SLOTS)
        assert {finished.outcome.verb for finished in scene.done} == {Verb.SUCCEED}
        assert scene.executor.problem(0.0) is None
        assert "the loop continues" in caplog.text
        scene.done.clear()


@pytest.mark.dear
def test_a_loop_without_room_for_its_thread_is_started_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, function: object) -> threading.Thread:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(coroutines, "in_thread", refuse)
        with pytest.raises(RuntimeError):
            scene.executor.put([scene.attempt()])
        with pytest.raises(RuntimeError):
            scene.executor.nudge()
    assert scene.executor.problem(0.0) is None
    scene.executor.nudge()
    eventually(lambda: scene.done)


def test_a_loop_that_has_ended_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(Coroutines)

    async def fail(self: Coroutines) -> None:
        raise MemoryError

    # private: such a loop cannot be made from outside
    monkeypatch.setattr(Coroutines, "_live", fail)
    monkeypatch.setattr(Coroutines, "_fill", lambda self: None)  # private: as above
    with contextlib.suppress(RuntimeError):  # it may have ended already
        scene.executor.put([scene.attempt()])
    eventually(lambda: scene.executor.problem(0.0))
    assert scene.executor.is_dead
    assert "has ended" in caplog.text
    scene.executor.take_back()


@pytest.mark.dear
@pytest.mark.usefixtures("impatient")
def test_sync_code_that_outlives_its_attempt_holds_up_nobody_and_is_a_problem(
    scene: Scene, gate: Gate
) -> None:
    left: list[object] = []

    async def leave_it() -> None:
        left.append(asyncio.ensure_future(gate.ablock()))
        while not gate.entered.is_set():
            await asyncio.sleep(0.001)

    async def fail() -> None:
        raise ValueError("no such order")

    scene.executor.put([attempt_of(leave_it)])
    eventually(lambda: len(scene.done) == 1)
    eventually(lambda: not scene.executor.running)
    threading.Event().wait(2 * coroutines.PAUSE)  # it looks at the connection then
    scene.executor.put([scene.attempt(), attempt_of(fail)])
    eventually(lambda: len(scene.done) == 3)
    verbs = sorted(finished.outcome.verb.value for finished in scene.done)
    assert verbs == ["retry", "succeed", "succeed"]
    assert scene.executor.problem(1.0) is None
    assert "does not end" in str(scene.executor.problem(1.1))
    gate.opened.set()
    eventually(lambda: scene.executor.problem(2.0) is None)


def test_an_exit_while_connections_are_looked_at_costs_no_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leave() -> None:
        raise SystemExit(3)

    scene = Scene(Threads)
    scene.gate.set()
    monkeypatch.setattr(connection_reset, "before_job", leave)
    monkeypatch.setattr(connection_reset.ThreadState, "must_reset", True)
    monkeypatch.setattr(connection_reset, "after_job", leave)
    scene.executor.put([scene.attempt() for _ in range(2 * SLOTS)])
    eventually(lambda: len(scene.done) == 2 * SLOTS)
    eventually(lambda: scene.executor.free == SLOTS)
    assert scene.executor.stop(20)


# The watchdog.


class Looks:
    """A watchdog that looks at the attempts of an executor."""

    def __init__(self, scene: Scene) -> None:
        self.lost: list[Attempt] = []
        seen = {attempt_of(jobs.add)}
        self.watchdog = Watchdog([scene.executor], seen, self.lost.extend)

    def look(self) -> list[Attempt]:
        """What two looks have given up."""
        self.lost.clear()
        self.watchdog.tick()
        threading.Event().wait(0.01)
        self.watchdog.tick()
        return list(self.lost)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("stage", ["before", "receiver", "text", "cleaning"])
def test_an_attempt_is_watched_from_its_slot_until_it_gives_it_back(
    stage: str, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unspeakable(Exception):
        __str__ = gate.block

    def handler() -> None:
        if stage == "text":
            raise Unspeakable

    monkeypatch.setattr(connection_reset.ThreadState, "must_reset", True)
    if stage == "before":
        monkeypatch.setattr(connection_reset, "before_job", gate.block)
    elif stage == "cleaning":
        monkeypatch.setattr(connection_reset, "after_job", gate.block)
    elif stage == "receiver":
        signals.attempt_succeeded.connect(gate.block)
    scene = Scene(Threads)
    looks = Looks(scene)
    attempt = attempt_of(handler)
    scene.executor.put([attempt])
    try:
        assert gate.entered.wait(20)
        assert looks.look() == [attempt]
        gate.opened.set()
        eventually(lambda: not scene.executor.running)
        assert looks.look() == []
    finally:
        signals.attempt_succeeded.disconnect(gate.block)
        gate.opened.set()
    assert scene.executor.stop(20)


@pytest.mark.dear
@pytest.mark.usefixtures("impatient")
def test_an_end_that_waits_for_others_is_not_given_up(scene: Scene, gate: Gate) -> None:
    """Its receiver waits for the thread that another handler uses by right, whose sync
    code is left to its timeout."""

    def receiver(**arguments: object) -> None:
        """Is sync."""

    signals.attempt_succeeded.connect(receiver)
    try:
        scene.executor.put([attempt_of(gate.ablock)])
        assert gate.entered.wait(20)
        assert scene.executor.problem(1.0) is scene.executor.problem(1e9) is None
        scene.executor.put([waiting := attempt_of(asyncio.sleep, '{"delay": 0}')])
        eventually(lambda: waiting.over)
        assert Looks(scene).look() == []
        assert waiting.finished is not None
        gate.opened.set()
        eventually(lambda: len(scene.done) == 2)
    finally:
        signals.attempt_succeeded.disconnect(receiver)


# What is recorded.


def test_what_is_known_of_a_stuck_end_is_recorded() -> None:
    attempt = attempt_of(lambda: 7)
    finished = run(attempt)
    assert attempt.finish_ended() is finished
    attempt.finished = None  # as if it had hung a moment before
    outcome = attempt.finish_ended().outcome
    assert (outcome.verb, outcome.result) == (Verb.SUCCEED, "7")


def test_an_error_of_which_nothing_can_be_said_is_a_timeout() -> None:
    asks = ((StopReason.NOTHING, Verb.RETRY), (StopReason.CANCEL, Verb.CANCEL))
    for asked, verb in asks:
        attempt = attempt_of(lambda: None)
        attempt.started, attempt.over, attempt.asked = 1.0, True, asked
        attempt.error = jobs.Unspeakable()
        assert not attempt.is_known
        assert attempt.finish_ended().outcome.verb is verb


def test_a_receiver_that_hangs_hinders_no_end_of_a_worker(
    worker: HandDriven, gate: Gate, journal: str
) -> None:
    """Neither an outcome that is known nor one that is made up waits for receivers."""
    both = (signals.attempt_succeeded, signals.attempt_failed)
    for signal in both:
        signal.connect(gate.block)
    try:
        jobs.write.enqueue(journal, "known")
        worker.claim()
        (known,) = worker.worker.held
        eventually(lambda: known.over)
        jobs.stay.enqueue("stuck gate")
        jobs.gates["stuck gate"] = gate.opened
        worker.claim()
        (stays,) = worker.worker.held - {known}
        eventually(lambda: stays.started)
        stays.asked = StopReason.TIME_OUT
        worker.worker.unresponsive = [known, stays]
        worker.worker.record_ends(0.05, unresponsive=True)
        eventually(lambda: worker.worker.completer.waiting == 2)
        worker.finish()
        assert [job.status for job in archived()] == ["succeeded"]
        assert worker.worker.is_empty
    finally:
        for signal in both:
            signal.disconnect(gate.block)
        gate.opened.set()
