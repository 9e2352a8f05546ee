"""A worker without threads, on the caller's connection and in its transaction."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from django.db import connections

from django_jobqueue import signals
from django_jobqueue.conf import CENTURY, conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.execution.atomic import run_atomically
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.inline import run_here
from django_jobqueue.execution.metadata import save_metadata
from django_jobqueue.execution.observed_attempts import observed
from django_jobqueue.execution.signal_sender import (
    announce_end,
    announce_expired,
    announce_rescued,
)
from django_jobqueue.processes import identity
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.find import find
from django_jobqueue.store.queue import (
    expire,
    finish,
    finish_unsuccessful,
    lanes,
    limits_in_force,
)
from django_jobqueue.store.queue.claim_quarantined import (
    claim_quarantined,
    next_quarantined,
    quarantined_lanes,
)
from django_jobqueue.store.queue.finish import Finished, Holder
from django_jobqueue.store.queue.hand_over import hand_over
from django_jobqueue.store.queue.keyed_turn import KeyTurns
from django_jobqueue.store.queue.lane_turn import fill, turn_of
from django_jobqueue.store.queue.lanes import Head, LaneMark
from django_jobqueue.store.queue.rescue import rescue
from django_jobqueue.store.rows import ClaimedJob, Job, Lane
from django_jobqueue.testing.faults import (
    CRASHED,
    LAPSED,
    MortalAttempt,
    Running,
    WorkerDied,
    running,
)
from django_jobqueue.testing.savepoints import is_broken, like_autocommit
from django_jobqueue.workers.claiming.lane_order import DueLane, LaneTurns
from django_jobqueue.workers.claiming.policies import Policies
from django_jobqueue.workers.completing.counters import Counters
from django_jobqueue.workers.reporter import Reporter

ENDED: Final = "its drain() ended"


class Ran(NamedTuple):
    """An attempt that ``drain()`` ran."""

    job: Job  # as the attempt left it
    attempt: int  # 1 for the first
    outcome: Outcome | None  # None if its worker died or lost the job
    error: BaseException | None  # what the handler raised
    crashed: bool = False
    lost: bool = False

    @property
    def verb(self) -> str:
        """The change to the job: ``succeed``, ``fail``, ``retry``, ``snooze``,
        ``cancel``, ``release``, ``crash`` or ``lose``. An expired job did not run, so
        it has none."""
        if self.outcome is not None:
            return self.outcome.verb.value
        return "crash" if self.crashed else "lose"


class InlineWorker:
    """Claims one job after the other, and runs it here.

    Most urgent first, then in the order in which they are due. Timeouts are not
    enforced: there is no second thread to do it.
    """

    def __init__(self, queues: Sequence[str] | None) -> None:
        self.db = DjangoDatabase()
        self._queues = queues
        self._policies = Policies(registry)
        self._key_turns: dict[Lane, KeyTurns] = {}
        self._turns = LaneTurns(conf.queue_weights, conf.ageing)
        self._holder: Holder | None = None  # there is a row of this worker
        self._name = identity.name_of(os.getpid())
        self._reporter = Reporter(self._name, OwnConnection("drain"))
        self._counters = Counters(conf.release)

    def claim(self) -> Attempt | None:
        """Take the next job; None if none can be run now."""
        for one in self._in_turn():
            take = self._claim_quarantined if one.is_quarantined else self._claim_lane
            if jobs := take(one.lane):
                return self._make(jobs[0])
        return None

    def _claim_lane(self, lane: Lane) -> list[ClaimedJob]:
        """Take the next job of this lane, within the limits of its type. Rates are not
        kept: time does not pass."""
        worker, marks = self._registered(), [LaneMark(lane)]
        limits = self._policies.limits(lane.job_type)
        turns = self._key_turns.setdefault(lane, KeyTurns())
        if limits.keys is not None:
            turns.adopt_all(self.db, lane)
        turn, jobs = (
            turn_of(lane, limits, turns, ignores_rates=True),
            list[ClaimedJob](),
        )
        fill(jobs, 1, turn, lambda left: turn.claim(self.db, worker, marks, left))
        return jobs

    def run(self, attempt: Attempt) -> Ran:
        """Run it and write what it came to."""
        holder = self._holder
        assert holder is not None  # it claimed the job
        here = Running(lambda: self._die(holder, LAPSED))
        before = running.set(here)
        try:
            with like_autocommit():
                finished = _execute(attempt, holder)
        finally:
            running.reset(before)
        if finished is None:
            self._die(holder, CRASHED)
        else:
            if here.is_lost:
                self._die(holder, LAPSED)  # anew, if an atomic handler's end undid it
            self._write(attempt, finished, holder)
        return Ran(
            job=self._job(attempt.job.id),
            attempt=attempt.job.attempts,
            outcome=None if finished is None or here.is_lost else finished.outcome,
            error=attempt.error,
            crashed=finished is None,
            lost=finished is not None and here.is_lost,
        )

    def tidy(self) -> None:
        """Do what the engine does besides: look at what operators say, expire, and
        rescue from dead workers."""
        self._policies.update(limits_in_force.overrides(self.db))
        while expired := expire.expire(self.db):
            announce_expired(expired, send=signals.send)
        lost = worker_rows.give_up(self.db)
        self._rescue([one.id for one in lost if one.was_draining], crashed=False)
        self._rescue(worker_rows.strays(self.db), crashed=True)

    def _rescue(self, dead: list[int], *, crashed: bool) -> None:
        if dead:
            rescued = rescue(self.db, dead, crashed=crashed, reason=LAPSED)
            announce_rescued(rescued, LAPSED, send=signals.send)

    def next_in(self) -> float | None:
        """Seconds until something happens by itself; None if nothing will."""
        quarantined = next_quarantined(
            self.db, self._policies.names, self._queues, keeps_rates=False
        ).due_in
        lapse = worker_rows.next_lapse(self.db).due_in
        expiry = expire.next_expiry(self.db)
        waits = [*(head.due_in for head in self._scan()), lapse, quarantined, expiry]
        return min((s for s in waits if s is not None and s > 0), default=None)

    def end(self) -> None:
        """Write the counts, and the end of this worker."""
        holder, self._holder = self._holder, None
        if is_broken(connections[self.db.alias]):
            return
        self._counters.write(self.db)
        if holder is not None:
            worker_rows.stopped(self.db, [holder.worker_id], end=ENDED)

    def _scan(self) -> list[Head]:
        """Where the lanes begin that may run here and are not empty."""
        return [
            head
            for head in lanes.scan(self.db, [])
            if head.due_in is not None and self._runs(head.lane)
        ]

    def _runs(self, lane: Lane) -> bool:
        if self._queues is not None and lane.queue not in self._queues:
            return False
        return self._policies.knows(lane.job_type)

    def _in_turn(self) -> list[DueLane]:
        """The lanes that have a job to run now, in the order of workers. No lane was
        served before, so those of one priority go by their first jobs."""
        names, queues = self._policies.names, self._queues
        due = [head for head in self._scan() if head.is_due]
        alone = quarantined_lanes(self.db, names, queues, keeps_rates=False)
        return self._turns.in_turn(due, alone)

    def _claim_quarantined(self, lane: Lane) -> list[ClaimedJob]:
        """Take a job that a worker would run in a process of its own."""
        worker, types, queues = self._registered(), [lane.job_type], [lane.queue]
        return claim_quarantined(self.db, worker, types, queues, keeps_rates=False)

    def _registered(self) -> int:
        """The id of this worker's row, which is written when it is first needed."""
        if self._holder is None:
            self._holder = Holder(self._register(), self._name, conf.release)
        return self._holder.worker_id

    def _register(self) -> int:
        pid = os.getpid()
        row = worker_rows.NewWorker(
            name=self._name,
            host=identity.host(),
            pid=pid,
            identity=identity.identity(pid),
            supervisor="drain()",
            release=conf.release,
            queues=self._queues,
            job_types=self._policies.names,
            threads=1,
            async_slots=1,
            versions=identity.versions(),
        )
        return worker_rows.register(self.db, row, CENTURY)

    def _make(self, job: ClaimedJob) -> Attempt:
        effective_policy = self._policies.effective_policy(job.job_type)
        return MortalAttempt(
            job,
            effective_policy.declaration,
            max_attempts=effective_policy.attempts_of(job),
            timeout=effective_policy.timeout_of(job),
            worker=self._name,
            claimed=time.monotonic(),
            save=save_metadata,
        )

    def _write(self, attempt: Attempt, finished: Finished, holder: Holder) -> None:
        """Finish the job; refused if the claim is lost."""
        self._reporter.write(self.db, [attempt])
        refused = set()
        if finished.outcome.verb is Verb.HAND_OVER:
            hand_over(self.db, holder, [finished], finished.ended)
            return
        if not attempt.committed:
            succeeded = finished.outcome.verb is Verb.SUCCEED
            verb = finish.succeed if succeeded else finish_unsuccessful.end
            refused = verb(self.db, holder, [finished], finished.ended)
        if not refused:
            self._counters.add([(attempt, finished)])
            announce_end(attempt, finished, send=signals.send)

    def _die(self, holder: Holder, reason: str) -> None:
        """End as if this worker had died with its jobs."""
        held = holder.worker_id
        worker_rows.stopped(self.db, [held], end=reason, lost=True)
        rescued = rescue(self.db, [held], crashed=True, reason=reason)
        announce_rescued(rescued, reason, send=signals.send)
        self._holder = None

    def _job(self, id: UUID) -> Job:
        job = find(self.db, id)
        if job is None:
            raise JobNotFound(id)
        return job


def _execute(attempt: Attempt, holder: Holder) -> Finished | None:
    """Run the handler; None if the worker dies in it."""
    try:
        if attempt.declaration.policy.atomic:
            run = observed(partial(run_atomically, holder=holder))
            return run(attempt)
        return run_here(attempt)
    except WorkerDied:
        return None
