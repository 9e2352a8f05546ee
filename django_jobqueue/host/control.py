"""Controls the workers of a host, be they processes or threads: obeys operators,
fences, replaces and stops."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from django_jobqueue.conf import conf
from django_jobqueue.domain.host_plans import HostPlan
from django_jobqueue.domain.log_events import Event
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.restarts import QuarantineRestarts, Restarts
from django_jobqueue.host.scaling import Scaling, plan_of
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import (
    DESIRES,
    LIMITS,
    ProcessEntry,
    ProcessTable,
)
from django_jobqueue.processes.shutdown import Step, Stopping
from django_jobqueue.processes.worker_config import WorkerConfig

logger = logging.getLogger("django_jobqueue.supervisor")


class HostedWorker(Protocol):
    """A worker of this host: a child process, or threads of this process."""

    how_fenced: ClassVar[str]  # the end of a sentence for the log
    entry_number: int  # in the process table
    generation: int  # of the plan that it was started for
    quarantined: bool  # it is there for one job that must run alone
    is_recycled: bool  # it works until its successor does, and ends then
    is_ending: bool  # it ends, and counts no more: its successor may start
    is_killed: bool  # its end does not wait for its jobs
    fenced: str  # the problem with its lease, if that ended it

    @property
    def name(self) -> str:
        """As the admin shows it."""
        ...

    def drain(self) -> None:
        """Claim nothing more."""
        ...

    def resume(self) -> None:
        """Claim again, unless it is ending."""
        ...

    def take(self, step: Step) -> None:
        """Take a step of a stop. After the first one it ends with its last job, however
        long that takes."""
        ...

    def fence(self, problem: str) -> None:
        """Stop running jobs: others may start them any moment."""
        ...


class HostControl:
    """Decides for the workers of a host; the workers carry it out.

    ``wanted`` is how many ordinary workers should run now.
    """

    def __init__(
        self,
        config: WorkerConfig,
        process_table: ProcessTable,
        *,
        wanted: int,
        grace: float,
    ) -> None:
        self.process_table = process_table
        self.wanted = wanted
        self.is_draining = False  # all of the host, and those that it would start
        self.scaling = Scaling(config, wanted)
        self.grace = grace
        self.stopping = Stopping(grace=grace, cancel_grace=conf.cancel_grace)
        self.restarts = Restarts()
        self.on_recycled: Callable[[str], None] = lambda why: None  # for metrics
        self._quarantine = QuarantineRestarts()
        self._stop_at = math.inf  # time.monotonic() at which the grace is over
        process_table.renewed_at = lease_time()

    @property
    def config(self) -> WorkerConfig:
        """The configuration of workers that start."""
        return self.scaling.config

    # Starts and ends.

    def missing(self, workers: Sequence[HostedWorker]) -> int:
        """How many ordinary workers to start now."""
        if not self._may_start():
            return 0
        return max(0, self.wanted - sum(map(_is_present, workers)))

    @property
    def wants_no_worker(self) -> bool:
        """True if operators have parked or drained this host."""
        return self.is_draining or self.scaling.is_parked

    def wants_quarantined(self, workers: Sequence[HostedWorker]) -> bool:
        """True to start a worker for one job that must run alone.

        When operators have stopped all workers, there is none for such jobs either.
        """
        if not self._may_start():
            return False
        if self.wanted <= 0 and not self.config.drain:
            return False
        if any(worker.quarantined for worker in workers):
            return False
        seen_at = self.process_table.quarantine_seen_at
        return self._quarantine.wants_worker(seen_at, time.monotonic())

    def _may_start(self) -> bool:
        table = self.process_table
        is_ready = table.maintenance_is_ready and table.may_work(lease_time())
        return is_ready and not (self.stopping or self.is_draining)

    def ended(
        self,
        worker: HostedWorker,
        entry: ProcessEntry,
        *,
        crashed: bool = False,
        reason: str = "ended",
        lived: float = 0.0,
    ) -> ProcessDeath:
        """A worker ended. Make room for its successor; returns the facts that
        maintenance needs. ``lived``: seconds from its start."""
        self.activity()
        now = time.monotonic()
        if worker.fenced:
            crashed, reason = False, f"its lease {worker.fenced}"
        if worker.quarantined:
            self._quarantine.ended(now, has_claimed=bool(entry.claimed))
        if crashed:
            self.restarts.died(lived=lived, now=now)
            # One that had a row may have had jobs, so the log has each such end.
            if entry.worker or self.restarts.note_cause(reason, now):
                how_often = self.restarts.how_often
                extra = {"event": Event.WORKER_DIED, "worker": worker.name}
                logger.error(
                    "Worker %s: %s%s", worker.name, reason, how_often, extra=extra
                )
        else:
            self.restarts.reset()
        if self.config.drain and entry.orderly and not worker.is_ending:
            # It found nothing to run; but a job that ran alone may have left some.
            self.wanted = 1 if worker.quarantined else self.wanted - 1
        stopping = bool(self.stopping)
        return ProcessDeath(
            entry.worker, worker.name, crashed, reason, stopping=stopping
        )

    def is_over(self, workers: Sequence[HostedWorker], *, all_recovered: bool) -> bool:
        """True if the host has nothing left to do: it was stopped, a drain is done, or
        operators have stopped every worker. ``all_recovered``: maintenance has looked
        after the jobs of all that died."""
        if workers:
            return False
        if self.stopping:
            return True
        if self.wanted > 0 or self.scaling.is_parked or not all_recovered:
            return False
        return not (self.config.drain and self.process_table.quarantine_seen_at)

    # Requests and leases.

    def fence_and_obey(self, workers: Sequence[HostedWorker]) -> None:
        """Fence the workers without a lease, replace those that cannot go on, and do
        what operators ask of the others."""
        for worker in workers:
            entry = self.process_table.entry(worker.entry_number)
            if not worker.is_killed:
                self._fence(worker, entry)
            if entry.condemned:
                worker.is_ending = True  # its successor starts while it ends
            self._obey(worker, entry)
            if entry.exceeded and self._may_recycle(worker, workers):
                self._recycle(worker, LIMITS[entry.exceeded])
        self._end_recycled(workers)
        if self.scaling.is_under_way:
            self._scale(workers)

    # The plan.

    @property
    def plan(self) -> HostPlan:
        """The workers that this host has, or is about to have."""
        if self.scaling.is_under_way:
            return self.scaling.plan
        return plan_of(self.config, max(0, self.wanted))

    def begin_to_scale(self, plan: HostPlan) -> None:
        """Go to this plan, as the workers that there are allow."""
        self.wanted = self.scaling.begin(plan, max(0, self.wanted))
        self.activity()

    def is_at_plan(self, workers: Sequence[HostedWorker]) -> bool:
        """True if all workers of the plan are at work, as far as any may be, or claim
        nothing if none is to."""
        if self.scaling.is_under_way or any(map(_waits_for_successor, workers)):
            return False
        if self.is_draining:
            table = self.process_table
            return all(table.entry(w.entry_number).draining for w in workers)
        return not self._may_start() or self._at_work(workers) >= self.wanted

    def _scale(self, workers: Sequence[HostedWorker]) -> None:
        """Take the next step: replace one more worker, or have no more than planned."""
        generation = self.scaling.generation
        old = [w for w in workers if _is_present(w) and w.generation != generation]
        if old and not (self._may_start() and self.wanted > 0):
            for worker in old:  # they have no successors now, and claim nothing
                self._end(worker)
        elif old and not any(map(_waits_for_successor, workers)):
            old[0].is_recycled = True
            self.on_recycled("scaled")
            self.activity()
        if not old and not any(map(_waits_for_successor, workers)):
            self.wanted = self.scaling.plan.processes
            self.scaling.is_under_way = False
        for worker in [w for w in workers if _is_present(w)][max(0, self.wanted) :]:
            self._end(worker)

    def _at_work(self, workers: Sequence[HostedWorker]) -> int:
        """How many ordinary workers are registered."""
        table = self.process_table
        return sum(
            bool(table.entry(worker.entry_number).worker)
            for worker in workers
            if _is_present(worker)
        )

    # Replacements.

    def _may_recycle(
        self, worker: HostedWorker, workers: Sequence[HostedWorker]
    ) -> bool:
        """True if it has no successor yet. There are never more than twice as many
        processes as are wanted, however long the handlers of the old ones take."""
        leaving = sum(w.is_recycled or w.is_ending for w in workers)
        is_leaving = worker.is_recycled or worker.is_ending
        return not is_leaving and leaving < self.wanted

    def _recycle(self, worker: HostedWorker, limit: str) -> None:
        """Start its successor; it goes on until that is there."""
        worker.is_recycled = True
        self.on_recycled(limit.removeprefix("MAX_").lower())
        self.activity()
        logger.info(
            "Worker %s has reached %s; it ends when its successor works",
            worker.name,
            limit,
            extra={
                "event": Event.WORKER_RECYCLED,
                "worker": worker.name,
                "limit": limit,
            },
        )

    def _end_recycled(self, workers: Sequence[HostedWorker]) -> None:
        """End those whose successors work, so that there are never fewer slots; and
        successors that are not wanted any more."""
        if not any(worker.is_recycled for worker in workers):
            return
        recycled = [w for w in workers if _waits_for_successor(w)]
        successors = [w for w in workers if _is_present(w)]
        for worker in successors[max(0, self.wanted) :]:
            self._end(worker)
        surplus = self._at_work(workers) + len(recycled) - self.wanted
        for worker in recycled[: max(0, surplus)]:
            self._end(worker)

    def _end(self, worker: HostedWorker) -> None:
        """Have it finish what it runs; it counts no more."""
        self.activity()
        worker.is_ending = True
        worker.take(Step.END)

    def _fence(self, worker: HostedWorker, entry: ProcessEntry) -> None:
        """End a worker whose jobs others may start any moment, also while it stops."""
        renewed_at = self.process_table.renewed_at
        if entry.lost:
            problem = "was given up"
        elif entry.is_cut_off(renewed_at, lease_time(), conf.lease):
            problem = "could not be renewed in time"
        else:
            return
        logger.error(
            "Worker %s: its lease %s; %s",
            worker.name,
            problem,
            worker.how_fenced,
            extra={"event": Event.LEASE_LOST, "worker": worker.name},
        )
        worker.fence(problem)

    def _obey(self, worker: HostedWorker, entry: ProcessEntry) -> None:
        desire = DESIRES[entry.desired]
        is_drained = desire == "drain" or self.is_draining
        if is_drained and not entry.paused:
            self.process_table.write(worker.entry_number, paused=1)
            self.activity()
            worker.drain()
        elif entry.paused and not is_drained:
            self.process_table.write(worker.entry_number, paused=0)
            self.activity()
            worker.resume()
        if desire in ("stop", "restart") and not worker.is_ending:
            if desire == "stop" and not worker.quarantined:
                self.wanted -= 1
                self.scaling.one_less()
            if desire == "restart":
                self.on_recycled("asked")
            self._end(worker)

    def activity(self) -> None:
        """Wake whoever rests: there is something to do."""
        self.process_table.activity(lease_time(), conf.lease)

    # The stop of the host.

    def stop_within(self, grace: float) -> None:
        """Stop, with so many seconds for running jobs; of several stops, the one that
        ends first holds."""
        now = time.monotonic()
        if now + grace < self._stop_at:
            self._stop_at = now + grace
            self.stopping = Stopping(grace=grace, cancel_grace=conf.cancel_grace)
            self.stopping.signal(now)

    def proceed(self, workers: Sequence[HostedWorker]) -> None:
        """Take the steps of the stop that are due."""
        for step in self.stopping.due(time.monotonic()):
            if step is Step.CANCEL and workers:
                logger.warning("%s; asking them to stop", _count(len(workers)))
            for worker in workers:
                self.activity()
                worker.take(step)


def _is_present(worker: HostedWorker) -> bool:
    """True if it counts as one of the ordinary workers, and will."""
    return not (worker.quarantined or worker.is_recycled or worker.is_ending)


def _waits_for_successor(worker: HostedWorker) -> bool:
    """True if it works until its successor does."""
    return worker.is_recycled and not worker.is_ending


def _count(workers: int) -> str:
    if workers == 1:
        return "1 worker still has jobs"
    return f"{workers} workers still have jobs"
