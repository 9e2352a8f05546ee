"""Hosts with real dispatchers and a real relay, whose statements go to the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, ClassVar, Final, cast

import greenlet
import pytest

from django_jobqueue.host.maintenance import host_listener
from django_jobqueue.host.maintenance.host_listener import SecondChecks
from django_jobqueue.processes import wakeups, worker_relay
from django_jobqueue.processes.worker_relay import WorkerNews, WorkerRelay
from django_jobqueue.store.notify import JobElsewhere
from django_jobqueue.store.queue import (
    claim,
    claim_limited,
    keyed_turn,
    lane_turn,
    lanes,
    release,
)
from django_jobqueue.store.queue.lanes import Head
from django_jobqueue.store.queue.limits_in_force import Limits
from django_jobqueue.store.rows import ClaimedJob
from django_jobqueue.workers.claiming import (
    claimer,
    dispatcher,
    known_lanes,
    lane_scanner,
    lane_selection,
    next_starts,
    policies,
    slow_scans,
)
from django_jobqueue.workers.claiming.claimer import Claimer
from django_jobqueue.workers.claiming.dispatcher import Dispatcher
from django_jobqueue.workers.claiming.next_step import FIRST
from django_jobqueue.workers.executors import base as executors
from django_jobqueue.workers.executors.base import Executor, ExecutorCallbacks
from tests.simulation.world import LIMITS, Row, World

POLL_INTERVAL: Final = 60.0  # seconds, so that whatever is lost is found too late
RENEWED_WITHIN: Final = 0.5  # seconds from a death until the supervisor sees it
RESCUED_WITHIN: Final = 1.0

CONF: Final = SimpleNamespace(
    poll_interval=POLL_INTERVAL, queue_weights=None, ageing=None, prefetch=0.2
)
TIMED: Final = (
    claimer,
    dispatcher,
    wakeups,
    executors,
    keyed_turn,
    known_lanes,
    lane_scanner,
    lane_selection,
    next_starts,
    host_listener,
    slow_scans,
    worker_relay,
)


class Patches:
    """What stands in the place of the database and of the clock, for many worlds."""

    world: ClassVar[World]

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(lane_scanner, "SLOW", 60.0)
        for module in TIMED:
            patch.setattr(module, "time", self)
        for module in (policies, dispatcher, lane_selection):
            patch.setattr(module, "conf", CONF)
        patch.setattr(next_starts, "random", self)
        patch.setattr(dispatcher, "PolicyReader", PolicyReader)
        statements: dict[Any, dict[str, str]] = {
            claim: {"claim": "claim"},
            claim_limited: {"claim_limited": "claim_limited"},
            lane_turn: {"claim_rated": "claim_rated"},
            keyed_turn: {
                name: name for name in ("claim_keyed", "stopped", "next_retry", "adopt")
            },
            lanes: {name: name for name in ("scan", "full_scan", "probe")},
            wakeups.worker_rows: {"set_listening": "set_listening"},
            release: {"release": "release"},
        }
        for module, names in statements.items():
            for name, method in names.items():
                patch.setattr(module, name, self._statement(method))

    def _statement(self, method: str) -> Callable[..., Any]:
        def run(*args: Any, **named: Any) -> Any:
            return getattr(self.world, method)(*args, **named)

        return run

    def monotonic(self) -> float:
        """Of all clocks."""
        return self.world.now

    def uniform(self, least: float, most: float) -> float:
        """Of the module ``random``."""
        return least + (most - least) * self.world.draw()


class Connection:
    """Nothing is asked of it: the statements are patched."""

    def patience(self, seconds: float) -> Any:
        return nullcontext()

    def close(self) -> None: ...


class Policies:
    """Of all job types of the model; ``room`` is for those that are not async."""

    names = [*LIMITS]

    def runs(self, job_type: str, *, is_async: bool) -> bool:
        return not is_async

    def is_exclusive(self, job_type: str) -> bool:
        return LIMITS[job_type] != Limits()

    def limits(self, job_type: str) -> Limits:
        return LIMITS[job_type]


class PolicyReader:
    """Reads nothing new, but takes its time."""

    def __init__(self, worker: int, connection: Any, policies: Any) -> None: ...

    def read(self) -> None:
        Patches.world.pause()


class Attempt:
    """A job that a worker holds."""

    error = None

    def __init__(self, job: ClaimedJob, claimed: float) -> None:
        self.job, self.claimed = job, claimed


class Slots(Executor):
    """Runs jobs for as long as is drawn."""

    def __init__(
        self, worker: SimulatedWorker, slots: int, *, is_async: bool = False
    ) -> None:
        callbacks = ExecutorCallbacks(
            on_done=lambda attempt, finished: None,
            on_slot_free=lambda: worker.dispatcher.slot_free(),
            count_unwritten=lambda: len(worker.unwritten),
        )
        super().__init__(slots, callbacks)
        self.is_async = is_async
        self._worker = worker

    def put(self, attempts: Sequence[Any]) -> None:
        """Begin those that there are slots for."""
        self._buffer.extend(attempts)  # private: as other executors do
        self._start()

    def _start(self) -> None:
        world = self._worker.world
        # private: as above
        waiting, running = self._buffer, self._running
        while waiting and len(running) < self.slots:
            attempt = waiting.popleft()
            running.add(attempt)
            world.later(world.run_time(), lambda a=attempt: self._end(a))

    def _end(self, attempt: Any) -> None:
        """In a thread of its own."""
        if self._worker.is_alive:
            self._worker.unwritten.append(attempt)
            self._running.discard(attempt)  # private: as above
            self._start()
            self._finished(attempt, self._worker.finished)  # private: as above
            self._worker.complete()


class Table:
    """The process table, without shared memory."""

    def __init__(self, workers: int) -> None:
        self.jobs_heard, self.behind_heard = 1, 0
        self.alone, self.listener_hears = False, True
        self._columns = {
            name: [0] * workers for name in ("readiness", "answered", "pid", "worker")
        }

    def column(self, field: str) -> list[int]:
        return self._columns[field][:]

    def write(self, number: int, **values: int) -> None:
        for name, value in values.items():
            self._columns[name][number] = value


class Pipe:
    """A NewsPipe of a worker, or that of the listener."""

    def __init__(self, world: World, on_text: Callable[[], None] | None = None) -> None:
        self._world, self._on_text = world, on_text
        self._texts: list[str] = []
        self._waiting: object = None

    def send(self, text: str = "") -> bool:
        self._texts.append(text)
        if self._on_text is not None:
            self._on_text()
        elif self._waiting is not None:
            self._world.later(self._world.delay(), self._wake(self._waiting))
        return True

    def _wake(self, waiting: object) -> Callable[[], None]:
        greenlet_now = cast("tuple[Any]", waiting)

        def wake() -> None:
            if self._waiting is waiting:
                self._waiting = None
                greenlet_now[0].switch()

        return wake

    def wait(self, seconds: float) -> list[str]:
        if not self._texts and seconds > 0:
            self._waiting = [greenlet.getcurrent()]
            self._world.later(seconds, self._wake(self._waiting))
            self._world.stop()
        texts, self._texts = self._texts, []
        return texts


class News(WorkerNews):
    """Others act between two things that a worker says."""

    world: World

    def set_readiness(self, readiness: int) -> None:
        super().set_readiness(readiness)
        if self.world.draw() < 0.3:
            self.world.pause()

    def answer(self, heard: int) -> None:
        if self.world.draw() < 0.3:
            self.world.pause()
        super().answer(heard)


class SimulatedWorker:
    """A dispatcher, slots and a completer."""

    finished = cast("Any", SimpleNamespace(ran=0.05))

    def __init__(self, host: Host, number: int, id: int, news: News) -> None:
        self.world, self.host, self.number, self.id = host.world, host, number, id
        self.is_alive = True
        self.held: set[Any] = set()
        self.unwritten: list[Any] = []
        self._completes = False
        connection = cast("Any", Connection())
        policies = cast("Any", Policies())
        made = Claimer(
            id,
            connection,
            policies=policies,
            queues=None,
            make=cast("Any", Attempt),
            held=self.held,
        )
        self.dispatcher = Dispatcher(
            id,
            connection,
            made,
            policies=policies,
            cancellation_poll=cast("Any", SimpleNamespace(poll=lambda c, now: 3_600.0)),
            gets_notifications=lambda: True,
            host_news=news,
            pass_on=self._hear,
        )
        made.warm_up = lambda: None  # type: ignore[method-assign]
        slots = Slots(self, self.world.random.choice([1, 1, 2, 3]))
        self.dispatcher.executors = [slots]
        if self.world.draw() < 0.4:  # room that no job of these has
            self.dispatcher.executors.append(Slots(self, 1, is_async=True))
        self.slots = slots
        self._was_idle = self.world.draw() < 0.8 or not self.world.has_nets
        if self._was_idle:
            self._become_idle()
        self.world.later(self.world.delay(), greenlet.greenlet(self._run).switch)

    def _run(self) -> None:
        """As Loop does in a thread."""
        loop, seconds = self.dispatcher, POLL_INTERVAL
        while True:
            if not self._was_idle:
                seconds = loop.tick()
            self._was_idle = False
            loop.is_resting = True
            loop._sleep(seconds)  # private: as above
            loop.is_resting = False
            loop._woken.clear()  # private: as above
            if not self.is_alive:
                self.world.stop()

    def _become_idle(self) -> None:
        """It has had nothing to do for long, so that it hardly polls any more."""
        world, dispatcher = self.world, self.dispatcher
        known, flag = dispatcher._known, dispatcher._listening  # private: as below
        known.jobs_arrived = known.may_have_more = known.policies_changed = False
        known.policies_due_at = flag.since + 2 * world.now
        known.empty_rounds, known.fast_since = len(FIRST), world.now
        flag.is_set = True
        world.listening[self.id] = self.host.name
        dispatcher._heard = 1  # private: as above
        dispatcher.scanner.full_scans.begins()
        if world.draw() < 0.7 or not world.has_nets:
            heads = [Head(lane, None, world.empty) for lane in world.known]
            dispatcher.lane_selection.lanes.learn(heads)

    def _hear(self, news: Any, about: str) -> None:
        self.dispatcher.policies_changed()

    @property
    def has_free_slot(self) -> bool:
        """Whether it could run one more job."""
        claims = self.dispatcher._known.is_open  # private: what a drain says
        return self.is_alive and claims and self.slots.free > 0

    def complete(self) -> None:
        """Write the outcomes that wait, in another thread."""
        if not self._completes:
            self._completes = True
            self.world.spawn(self._complete())

    def _complete(self) -> Iterator[float]:
        world = self.world
        while self.unwritten and self.is_alive:
            done, self.unwritten[:] = self.unwritten[:], []
            yield world.delay()
            fences = {attempt.job.id: attempt.job.fence for attempt in done}
            rows = [
                row
                for row in world.rows
                if row.worker == self.id and fences.get(row.id) == row.fence
            ]
            payloads = [payload for row in rows for payload in self._outcome(row)]
            yield world.delay()
            for row in rows:
                row.is_locked, row.worker = False, 0
                if row.will_end:
                    world.rows.remove(row)
                    world.ended.append(row)
                else:
                    row.status = "queued"
            world.tell(payloads)
            world.check()
            yield world.delay()
            self.dispatcher.ended(done)
            self.held.difference_update(done)
        self._completes = False

    def _outcome(self, row: Row) -> list[tuple[str | None, str]]:
        """What a transaction says of it that is not committed yet."""
        world = self.world
        row.is_locked = True
        if world.draw() > 0.1 or row.fence > 2:
            row.will_end = True
            return []
        row.will_end = False
        row.put_at(world.now + world.random.choice([0.0, 0.02, 0.1]) * world.has_nets)
        now = row.due <= world.now
        return [(None, "b:default" if now else "q:default")] * bool(world.listening)


class Host:
    """Workers, and a listener for all of them."""

    def __init__(self, world: World, name: str, workers: int, first: int) -> None:
        self.world, self.name = world, name
        self.is_alive = True
        self.ids = [*range(first, first + workers)]
        self._inbox: list[str] = []
        self._has_turn = False
        self.table = Table(workers)
        pipes = SimpleNamespace(
            listener=Pipe(world, self.take_turn),
            workers=[Pipe(world) for _ in range(workers)],
        )
        self.relay = WorkerRelay(cast("Any", self.table), cast("Any", pipes))
        self._second_checks = SecondChecks()
        self.workers = []
        for number, id in enumerate(self.ids):
            self.table.write(number, pid=1, worker=id)
            news = News(cast("Any", self.table), number, cast("Any", pipes))
            news.world = world
            self.workers.append(SimulatedWorker(self, number, id, news))

    @property
    def has_free_slot(self) -> bool:
        """Whether a worker could run one more job."""
        return any(worker.has_free_slot for worker in self.workers)

    def notify(self, payload: str) -> None:
        """The server sends this at a commit."""
        self._inbox.append(payload)
        self.take_turn()

    def take_turn(self) -> None:
        """Have the listener look soon."""
        if not self._has_turn:
            self._has_turn = True
            self.world.later(self.world.delay(), self._turn)

    def _turn(self) -> None:
        """As HostListener does."""
        self._has_turn = False
        if not self.is_alive:
            return
        inbox, self._inbox = self._inbox, []
        for payload in inbox:
            self._distribute(payload[0], payload[2:])
        self.relay.hear(self.relay.pipe.wait(0))
        self.relay.proceed()
        if self.relay.untold:
            self.relay.untold.clear()
            if set(self.world.listening) - set(self.ids):
                self.world.tell([(None, "q:default")])
        if self._second_checks.check(self._still_wait):
            self.relay.jobs_arrived()
        checks = self._second_checks.seconds_until_due
        due = min(self.relay.seconds_until_due, checks)
        if due < POLL_INTERVAL:
            self.world.later(due, self._turn)

    def _still_wait(self, ids: Sequence[str]) -> set[str]:
        wanted = set(ids)
        waiting = [row for row in self.world.rows if self.world.may_run(row)]
        return {str(row.id) for row in waiting if str(row.id) in wanted}

    def _distribute(self, letter: str, about: str) -> None:
        if letter == "t":
            self.relay.pass_to_all("t:")
        elif letter == "j":
            self.relay.job_arrived(about)
        elif letter in "qb":
            self.relay.jobs_arrived(behind=letter == "b")
        elif self._second_checks.must_act(JobElsewhere.parse(about)):
            self.relay.jobs_arrived()

    def die(self) -> Iterator[float]:
        """The machine is off; others rescue its jobs."""
        self.is_alive = False
        for worker in self.workers:
            worker.is_alive = False
        yield RESCUED_WITHIN
        self.world.rescue(self.ids)

    def lose(self, worker: SimulatedWorker) -> Iterator[float]:
        """A worker process dies; the supervisor clears its entry."""
        worker.is_alive = False
        yield RENEWED_WITHIN
        self.table.write(worker.number, pid=0, readiness=0, answered=0)
        yield RESCUED_WITHIN - RENEWED_WITHIN
        self.world.rescue([worker.id])
