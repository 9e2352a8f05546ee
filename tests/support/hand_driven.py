"""A worker whose loops are called one by one: no thread decides anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest

from django_jobqueue import logs
from django_jobqueue.processes.lane_progress import SharedLaneProgress
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.processes.worker_relay import WorkerNews
from django_jobqueue.workers import worker as worker_module
from django_jobqueue.workers.claiming import dispatcher as dispatcher_module
from django_jobqueue.workers.claiming.dispatcher import Dispatcher
from django_jobqueue.workers.claiming.next_step import (
    Do,
    Known,
    Wait,
    next_step,
    next_wait,
)
from django_jobqueue.workers.completing.completer import Completer
from django_jobqueue.workers.executors.base import SAMPLES
from django_jobqueue.workers.worker import Worker
from tests.support.kept_connections import KeptConnection, leaving
from tests.support.waiting import eventually


class HandDriven:
    """A worker in this thread."""

    def __init__(
        self,
        config: WorkerConfig,
        lane_progress: SharedLaneProgress | None = None,
        host_news: WorkerNews | None = None,
        **parts: Any,
    ) -> None:
        self.steps = deque[str](maxlen=40)  # of the dispatcher
        with patch.object(worker_module, "OwnConnection", KeptConnection):
            self.worker = Worker(
                config, lane_progress=lane_progress, host_news=host_news, **parts
            )
            self.worker.register()
            self.worker.build()
        # On a busy machine a scan is taken for a long one, and the next one put off.
        scanner = self.worker.dispatcher.scanner
        scanner.full_scans.took = lambda seconds, **instead_of: None  # type: ignore[method-assign]
        scanner.long_scans.took = lambda seconds: None  # type: ignore[method-assign]

    @property
    def dispatcher(self) -> Dispatcher:
        """The loop that claims."""
        return self.worker.dispatcher

    @property
    def completer(self) -> Completer:
        """The loop that writes outcomes."""
        return self.worker.completer

    @property
    def held(self) -> int:
        """How many jobs it has."""
        return len(self.worker.held)

    def get_notifications(self) -> None:
        """Believe from now on that somebody tells it of jobs."""
        assert self.worker.listener is not None
        self.worker.listener.hears = True

    def has_run(self, handler: Any, seconds: float) -> None:
        """Know that jobs of this handler take so long: short ones are prefetched."""
        for _ in range(SAMPLES):
            self.worker.executors[0].runtimes.ran(handler.name, seconds)

    def claim(self, *, told: bool = False) -> float:
        """One round of the dispatcher, ``told`` that there are jobs; returns the rest
        it asks for."""
        if told:
            self.dispatcher.jobs_arrived()
        self.dispatcher._woken.clear()  # private: as the loop does between two rounds
        with (
            patch.object(dispatcher_module, "next_step", self._next_step),
            patch.object(dispatcher_module, "next_wait", self._next_wait),
        ):
            return self.dispatcher.tick()

    def _next_step(self, known: Known, now: float) -> Do | None:
        step = next_step(known, now)
        if step is not None:
            self.steps.append(step.name)
        return step

    def _next_wait(self, known: Known, now: float) -> Wait:
        wait = next_wait(known, now)
        facts = f"{wait.seconds:.3f} s, {wait.because.name}, has {self.held}"
        self.steps.append(f"{facts}, room {known.has_room}")
        return wait

    def run(self) -> None:
        """Wait until every claimed handler has ended."""
        eventually(
            lambda: not any(e.running or e.buffered for e in self.worker.executors),
            what="handlers to end",
        )

    def finish(self) -> None:
        """One round of the completer."""
        self.worker.completer.tick()

    def complete(self) -> None:
        """Run and finish what it has claimed."""
        self.run()
        self.finish()

    def turn(self, *, told: bool = False) -> None:
        """Claim, run and finish once."""
        self.claim(told=told)
        self.complete()

    def work(self, *, told: bool = False) -> None:
        """Claim, run and finish until nothing can be claimed any more."""
        for _ in range(100):
            self.turn(told=told)
            told = False
            if self.worker.is_idle:
                return
        raise AssertionError("the worker found no end")

    def close(self) -> None:
        """Let its threads and connections go; a test that failed shows what it did."""
        print("the dispatcher:", "; ".join(self.steps))
        selection = self.dispatcher.lane_selection
        print("its lanes:", *selection.lanes, sep="\n")
        print(
            "limited:",
            selection.limited_until,
            "start in:",
            selection.next_starts.seconds,
        )
        for executor in self.worker.executors:
            executor.stop(5)
        self.worker.dispatcher.close()
        self.worker.completer.close()
        self.worker.reporter.close()
        if self.worker.listener is not None:
            self.worker.listener.close()


Make = Callable[..., HandDriven]  # the fixture of this name


@pytest.fixture
def make_worker(
    transactional_db: None,
    kept_connections: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Make]:
    """Make hand-driven workers: ``make_worker(threads=2)``; of one host, if they share
    the progress of lanes; with ``host_news``, their host listens for them."""
    made: list[HandDriven] = []
    # A worker sets it for its process, and would leave it to the tests after.
    monkeypatch.setattr(logs, "shows_successes", False)

    def make(
        lane_progress: SharedLaneProgress | None = None,
        host_news: WorkerNews | None = None,
        ensure_leased: Callable[[], None] = lambda: None,
        **config: Any,
    ) -> HandDriven:
        settings: dict[str, Any] = {"threads": 4, "async_slots": 10, **config}
        worker = HandDriven(
            WorkerConfig(**settings),
            lane_progress,
            host_news,
            ensure_leased=ensure_leased,
        )
        made.append(worker)
        return worker

    yield make
    with leaving():
        for worker in made:
            worker.close()


@pytest.fixture
def worker(make_worker: Make) -> HandDriven:
    """One hand-driven worker."""
    return make_worker()
