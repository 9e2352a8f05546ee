"""A host goes to another plan, whatever else it is told to do."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any, ClassVar

from django_jobqueue.domain.host_plans import HostPlan
from django_jobqueue.host.control import HostControl
from django_jobqueue.host.supervisor import DrainAll
from django_jobqueue.processes.process_table import LIMITS, ProcessTable
from django_jobqueue.processes.shutdown import Step
from django_jobqueue.processes.worker_config import WorkerConfig


class PlayedWorker:
    """A worker that registers when it starts, and ends when a test says so."""

    how_fenced: ClassVar[str] = ""
    quarantined = is_recycled = is_ending = is_killed = False
    fenced = ""

    def __init__(self, entry_number: int, generation: int) -> None:
        self.entry_number = entry_number
        self.generation = generation
        self.name = f"web-1:{entry_number}"
        self.is_drained = False

    def drain(self) -> None:
        self.is_drained = True

    def resume(self) -> None:
        self.is_drained = False

    def take(self, step: Step) -> None:
        self.is_ending = True

    def fence(self, problem: str) -> None:
        raise AssertionError(problem)


class PlayedHost:
    """Host control with played workers, which end at once when they are told to."""

    def __init__(self, processes: int, **options: Any) -> None:
        self.table = ProcessTable(50)
        self.table.maintenance_is_ready = True
        config = WorkerConfig(threads=2, async_slots=0, **options)
        self.control = HostControl(config, self.table, wanted=processes, grace=0)
        self.recycled: Counter[str] = Counter()
        self.control.on_recycled = lambda why: self.recycled.update([why])
        self.workers: list[PlayedWorker] = []
        self.most = self.fewest = 0  # workers that claim
        self.settle()
        self.most = self.fewest = self.at_work

    @property
    def at_work(self) -> int:
        return sum(not worker.is_ending for worker in self.workers)

    def scale(self, **changes: Any) -> None:
        self.control.begin_to_scale(self.control.plan.changed(changes))

    def settle(self) -> None:
        for _ in range(100):
            before = self._state()
            self.play()
            if self._state() == before:
                return
        raise AssertionError("the host finds no end")

    def end(self, worker: PlayedWorker, *, orderly: bool = True) -> None:
        """This worker ends, because it found nothing more or was told to."""
        self.table.write(worker.entry_number, orderly=orderly)
        self.workers.remove(worker)
        entry = self.table.entry(worker.entry_number)
        self.control.ended(worker, entry, crashed=not orderly)
        self.table.clear(worker.entry_number)

    def find_nothing(self) -> None:
        """Under --drain, each worker ends when it finds no job."""
        for _ in range(100):
            if self.is_over:
                return
            for worker in list(self.workers):
                self.end(worker)
            self.settle()
        raise AssertionError("the host does not end")

    @property
    def is_over(self) -> bool:
        return self.control.is_over(self.workers, all_recovered=True)

    @property
    def slots(self) -> list[int]:
        """The generation of each worker: which plan its slots are of."""
        return sorted(worker.generation for worker in self.workers)

    def play(self) -> None:
        self.control.fence_and_obey(self.workers)
        self.control.proceed(self.workers)
        for worker in [worker for worker in self.workers if worker.is_ending]:
            self.end(worker)
        for _ in range(self.control.missing(self.workers)):
            number = self.table.free()
            self.table.write(number, pid=1, worker=100 + number)
            generation = self.control.scaling.generation
            self.workers.append(PlayedWorker(number, generation))
        self.most = max(self.most, self.at_work)
        self.fewest = min(self.fewest, self.at_work)

    def _state(self) -> object:
        states = [(w.entry_number, w.is_recycled, w.is_ending) for w in self.workers]
        return states, self.control.wanted, self.control.scaling.is_under_way


PLANS = [
    ({"processes": 6}, 6, 0),
    ({"processes": 1}, 1, 0),
    ({"threads": 5}, 3, 1),
    ({"queues": ["mail"]}, 3, 1),
    ({"processes": 5, "threads": 1}, 5, 1),
    ({"processes": 1, "async_slots": 9}, 1, 1),
]
CHANGES = [changes for changes, _, _ in PLANS]


def test_workers_are_replaced_one_by_one_and_never_too_few() -> None:
    for changes, processes, generation in PLANS:
        host = PlayedHost(3)
        host.scale(**changes)
        host.settle()
        assert host.slots == [generation] * processes, changes
        assert host.control.is_at_plan(host.workers), changes
        assert min(3, processes) <= host.fewest, changes
        assert host.most <= max(3, processes) + 1, changes


def test_a_worker_that_is_replaced_for_its_slots_counts_as_scaled() -> None:
    host = PlayedHost(3)
    host.table.write(host.workers[0].entry_number, exceeded=LIMITS.index("MAX_JOBS"))
    host.settle()
    assert host.recycled == {"jobs": 1}
    host.scale(processes=5)
    host.settle()
    assert host.recycled == {"jobs": 1}  # nobody was replaced
    host.scale(threads=5)
    host.settle()
    assert host.recycled == {"jobs": 1, "scaled": 5}


def test_a_successor_that_dies_holds_up_no_scaling() -> None:
    host = PlayedHost(2)
    host.scale(threads=5)
    host.control.fence_and_obey(host.workers)
    host.play()
    newest = host.workers[-1]
    assert newest.generation == 1
    host.end(newest, orderly=False)
    host.settle()
    assert host.slots == [1, 1]


def test_a_host_that_drains_ends_also_if_it_is_scaled_meanwhile() -> None:
    for changes, ended in product(CHANGES, (0, 1, 2)):
        host = PlayedHost(3, drain=True)
        for worker in host.workers[:ended]:
            host.end(worker)
        host.scale(**changes)
        host.settle()
        assert not host.is_over, changes  # those of the new plan look for jobs, too
        host.find_nothing()
        assert host.control.missing([]) == 0, changes


def test_a_host_that_drains_and_is_parked_stays_until_it_is_scaled_again() -> None:
    host = PlayedHost(2, drain=True)
    host.scale(processes=0)
    host.settle()
    assert (host.workers, host.is_over) == ([], False)
    host.scale(processes=1)
    host.settle()
    assert host.at_work == 1
    host.find_nothing()


def test_a_host_that_drains_all_stops_while_it_is_scaled() -> None:
    for changes in [*CHANGES, {"processes": 0}]:
        host = PlayedHost(3, drain_all=True)
        drain_all = DrainAll(host.control.config, host.control)
        host.scale(**changes)
        host.play()
        drain_all.proceed()
        assert not host.control.stopping, changes
        host.table.nothing_remains = True
        drain_all.proceed()
        assert host.control.missing(host.workers) == 0, changes
        for worker in list(host.workers):
            host.end(worker)
        host.settle()
        assert host.is_over, changes


def test_a_host_that_stands_by_has_the_plan_when_it_becomes_active() -> None:
    before = {"processes": 3, "threads": 2, "async_slots": 0, "queues": None}
    for changes, processes, generation in PLANS:
        host = PlayedHost(0, standby="main")
        host.table.standby_is_held, host.table.standby_until = False, 0.0
        host.control.wanted = 3
        host.scale(**changes)
        host.settle()
        assert host.workers == [], changes
        assert host.control.is_at_plan([]), changes  # as far as it may be
        assert host.control.plan == HostPlan(**before).changed(changes)
        host.table.standby_is_held, host.table.standby_until = True, math.inf
        host.settle()
        assert host.slots == [generation] * processes, changes


def test_nobody_is_replaced_while_a_host_steps_down() -> None:
    host = PlayedHost(2, standby="main")
    host.scale(threads=5)
    host.play()
    host.table.standby_is_held, host.table.standby_until = False, 0.0
    host.settle()
    assert host.slots in ([], [1])  # nobody is left of the plan before
    host.table.standby_is_held, host.table.standby_until = True, math.inf
    host.settle()
    assert host.slots == [1, 1]
