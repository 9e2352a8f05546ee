"""Every executor: what is put in comes out, in slots, in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from django_jobqueue.domain.retry_decision import Verb
from django_jobqueue.domain.states import AttemptEnd
from django_jobqueue.execution import attempt_steps, connection_reset
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.workers.executors.base import Executor, ExecutorCallbacks
from django_jobqueue.workers.executors.coroutines import Coroutines
from django_jobqueue.workers.executors.threads import Threads
from tests.execution.test_attempt import attempt_of
from tests.support.waiting import eventually

SLOTS = 3


class Scene:
    """An executor, and what came out of it."""

    def __init__(self, kind: type[Executor]) -> None:
        self.done: list[Finished] = []
        self.wanted = threading.Event()
        self.gate = threading.Event()
        self.running = self.peak = 0
        self.lock = threading.Lock()
        callbacks = ExecutorCallbacks(on_done=self._take, on_slot_free=self.wanted.set)
        self.executor: Executor
        if kind is Threads:
            self.executor = Threads(SLOTS, callbacks, run=attempt_steps.run)
        else:
            self.executor = Coroutines(SLOTS, callbacks)

    def _take(self, attempt: Attempt, finished: Finished) -> None:
        self.done.append(finished)

    def attempt(self, work: Callable[[], None] = lambda: None) -> Attempt:
        """An attempt that waits for the gate, then works."""

        def enter() -> None:
            with self.lock:
                self.running += 1
                self.peak = max(self.peak, self.running)

        def leave() -> None:
            with self.lock:
                self.running -= 1

        def handler() -> None:
            enter()
            self.gate.wait(20)
            leave()
            work()

        async def ahandler() -> None:
            enter()
            while not self.gate.is_set():
                await asyncio.sleep(0.001)
            leave()
            work()

        return attempt_of(ahandler if self.executor.is_async else handler)


@pytest.fixture(params=[Threads, Coroutines])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(request.param)
    yield made
    made.gate.set()
    assert made.executor.stop(20)


def test_never_more_run_than_there_are_slots(scene: Scene) -> None:
    scene.executor.put([scene.attempt() for _ in range(10)])
    eventually(lambda: scene.running == SLOTS)
    assert scene.executor.free == 0
    assert scene.executor.buffered == 10 - SLOTS
    assert len(scene.executor.running) == SLOTS
    scene.gate.set()
    eventually(lambda: len(scene.done) == 10)
    assert scene.peak == SLOTS
    eventually(lambda: scene.executor.free == SLOTS)


def test_what_is_put_in_is_begun_in_order(scene: Scene) -> None:
    begun: list[int] = []
    scene.gate.set()
    for number in range(20):
        scene.executor.put([scene.attempt(lambda n=number: begun.append(n))])
        eventually(lambda number=number: len(scene.done) == number + 1)
    assert begun == list(range(20))


def test_a_failing_handler_does_not_cost_a_slot(scene: Scene) -> None:
    scene.gate.set()

    def fail() -> None:
        raise SystemExit(1)

    scene.executor.put([scene.attempt(fail) for _ in range(10)])
    eventually(lambda: len(scene.done) == 10)
    assert {finished.outcome.verb for finished in scene.done} == {Verb.RETRY}
    eventually(lambda: scene.executor.free == SLOTS)
    assert scene.executor.runtimes.mean("tests.job") > 0  # they were noted


def test_nothing_begins_after_a_pause_before_the_connection_was_looked_at(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, looked = threading.Event(), threading.Event()
    look = connection_reset.before_job

    def slowly() -> None:
        looking.set()
        looked.wait(20)
        look()

    monkeypatch.setattr(connection_reset, "before_job", slowly)
    monkeypatch.setattr(connection_reset.ThreadState, "must_reset", True)
    scene.gate.set()
    made = [scene.attempt() for _ in range(SLOTS)]
    scene.executor.put(made[:1])
    assert looking.wait(20)
    scene.executor.put(made[1:])  # while it looks
    if scene.executor.is_async:
        tried = threading.Event()
        loop = scene.executor._loop  # private: its turn
        loop.call_soon_threadsafe(tried.set)
        assert tried.wait(20)
    assert [attempt.started for attempt in made] == [0.0] * SLOTS
    looked.set()
    eventually(lambda: len(scene.done) == SLOTS)


def test_what_waits_can_be_taken_back(scene: Scene) -> None:
    attempts_ = [scene.attempt() for _ in range(10)]
    scene.executor.put(attempts_)
    eventually(lambda: scene.running == SLOTS)
    taken = scene.executor.take_back()
    assert taken == attempts_[SLOTS:]
    scene.gate.set()
    eventually(lambda: len(scene.done) == SLOTS)


def test_it_says_when_it_could_do_with_more(scene: Scene) -> None:
    scene.executor.put([scene.attempt()])
    eventually(lambda: scene.running == 1)
    assert not scene.wanted.is_set()
    scene.gate.set()
    assert scene.wanted.wait(20)


def are_known(executor: Executor, seconds: float) -> None:
    for _ in range(50):
        executor.runtimes.ran("tests.job", seconds)


def test_tiny_jobs_are_left_to_few_threads_until_they_get_stuck() -> None:
    scene = Scene(Threads)
    executor = scene.executor
    are_known(executor, 0.00001)
    executor.put([scene.attempt() for _ in range(10)])
    eventually(lambda: scene.running == 1)
    executor.nudge()  # takes note of what waits first
    assert scene.running == 1
    executor.nudge()  # it is still the same
    eventually(lambda: scene.running == SLOTS)
    scene.gate.set()
    eventually(lambda: len(scene.done) == 10)
    assert executor.stop(20)


def test_a_short_job_does_not_wait_for_one_that_runs() -> None:
    scene = Scene(Threads)
    executor = scene.executor
    are_known(executor, 0.005)
    for number in range(1, SLOTS + 1):
        executor.put([scene.attempt()])
        eventually(lambda wanted=number: scene.running == wanted)
    scene.gate.set()
    assert executor.stop(20)


def test_it_knows_whether_more_outcomes_are_about_to_come(scene: Scene) -> None:
    executor = scene.executor
    assert not executor.ends_soon
    executor.put([scene.attempt()])
    eventually(lambda: scene.running == 1)
    assert not executor.ends_soon  # nobody knows how long this one takes
    are_known(executor, 0.005)
    assert executor.ends_soon
    scene.gate.set()
    eventually(lambda: not executor.ends_soon)
    assert executor.stop(20)


def test_an_end_that_cannot_be_handled_is_a_failure_and_costs_no_slot(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the worker itself stumble over what an attempt came to."""

    def stumble(self: Attempt) -> Finished:
        raise MemoryError("no room for the outcome")

    scene.gate.set()
    broken = scene.attempt()
    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "conclude", stumble)
        scene.executor.put([broken])
        eventually(lambda: scene.done)
    scene.executor.put([scene.attempt() for _ in range(SLOTS)])
    eventually(lambda: len(scene.done) == 1 + SLOTS)

    outcome = scene.done[0].outcome
    assert (outcome.verb, outcome.end) == (Verb.FAIL, AttemptEnd.FAILED)
    assert "could not handle the end of this attempt; see its log" in outcome.reason
    assert all(f.outcome.verb is Verb.SUCCEED for f in scene.done[1:])
    eventually(lambda: scene.executor.free == SLOTS)


def test_troubles_between_jobs_are_no_jobs(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble() -> None:
        raise RuntimeError("a connection that cannot be closed")

    monkeypatch.setattr(connection_reset, "before_job", stumble)
    monkeypatch.setattr(connection_reset, "after_job", stumble)
    monkeypatch.setattr(connection_reset.ThreadState, "must_reset", True)
    scene.gate.set()
    scene.executor.put([scene.attempt() for _ in range(SLOTS + 1)])
    eventually(lambda: len(scene.done) == SLOTS + 1)
    assert all(f.outcome.verb is Verb.SUCCEED for f in scene.done)
