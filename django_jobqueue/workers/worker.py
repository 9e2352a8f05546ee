"""One worker process: dispatcher, completer, listener, watchdog, and executors."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.dispatch import Signal

from django_jobqueue import observers, signals
from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.retry_decision import StopReason
from django_jobqueue.execution.atomic import run_atomically
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import arun, run
from django_jobqueue.execution.metadata import save_metadata
from django_jobqueue.execution.observed_attempts import aobserved, observed
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.processes import identity
from django_jobqueue.processes.attempt_table import AttemptTable
from django_jobqueue.processes.lane_progress import SharedLaneProgress
from django_jobqueue.processes.listener import Listener
from django_jobqueue.processes.loop import Activity, Loop
from django_jobqueue.processes.shutdown import LEAST_FLUSH
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.processes.worker_relay import WorkerNews
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import News
from django_jobqueue.store.partial_batches import BRIEF
from django_jobqueue.store.queue.finish import Finished, Holder
from django_jobqueue.store.rows import ClaimedJob
from django_jobqueue.store.session import FINISHING, PINNED
from django_jobqueue.store.worker_rows import NewWorker
from django_jobqueue.workers.claiming.claimer import Claimer
from django_jobqueue.workers.claiming.dispatcher import Dispatcher
from django_jobqueue.workers.claiming.policies import CancellationPoll, Policies
from django_jobqueue.workers.claiming.quarantine_dispatcher import QuarantineDispatcher
from django_jobqueue.workers.completing.completer import Completer
from django_jobqueue.workers.executors.base import (
    Executor,
    ExecutorCallbacks,
    in_thread,
)
from django_jobqueue.workers.executors.coroutines import Coroutines
from django_jobqueue.workers.executors.threads import Threads
from django_jobqueue.workers.reporter import Reporter
from django_jobqueue.workers.stack_dump import StackDumper
from django_jobqueue.workers.unresponsive_attempts import (
    log_unresponsive,
    record_in_thread,
    report_ended,
)
from django_jobqueue.workers.watchdog import Watchdog, waits_for_another

logger = logging.getLogger("django_jobqueue.worker")


class Worker:
    """Claims jobs and runs them, until it is asked to stop."""

    def __init__(
        self,
        config: WorkerConfig,
        table: AttemptTable | None = None,
        host_news: WorkerNews | None = None,
        lane_progress: SharedLaneProgress | None = None,
        ensure_leased: Callable[[], None] = lambda: None,
        on_connect: Callable[[OwnConnection], None] = lambda connection: None,
    ) -> None:
        """``ensure_leased`` raises LeaseOverdue while nothing may be claimed. For
        ``on_connect`` see OwnConnection."""
        self.config = config
        self._on_connect = on_connect
        self._ensure_leased = ensure_leased
        self._lane_progress = lane_progress
        self.host_news = host_news if config.listen else None
        self.listener: Listener | None = None  # unless its host listens, or nobody can
        self._table = table or AttemptTable(0)
        self.id = 0
        self.name = config.name or identity.name_of(os.getpid())
        self.activity = Activity()
        self.held: set[Attempt] = set()
        self.finished = 0  # attempts whose outcomes are written
        self.unresponsive: list[Attempt] = []
        self.problem: str | None = None  # why it cannot go on, if it cannot
        self.policies = Policies(registry, config.has_slots_for)
        self.executors: list[Executor] = []
        self._registrar = self._connection("register", pooled=not config.listen)
        self._loops: list[Loop] = []
        self._reports: list[threading.Thread] = []  # of attempts that hang
        self._is_open = True
        self.calls = 0  # how often it heard that an operator asks for something

    # Its life, step by step.

    def register(self) -> int:
        """Write this worker's row. Raises StoreUnavailable."""
        row = row_of(self.name, self.config, self.policies.names)
        self.id = worker_rows.register(self._registrar, row, conf.lease)
        self._registrar.close()
        return self.id

    def build(self) -> None:
        """Make the parts; nothing runs yet."""
        holder = Holder(self.id, self.name, conf.release)
        pooled = not self.config.listen
        self.dispatcher = self._make_dispatcher(pooled)
        reports = self._connection("reporter", plans=PINNED, pooled=pooled)
        self.reporter = Reporter(self.name, reports)
        self._on_report = self.reporter.add
        self.completer = Completer(
            holder,
            self._connection("completer", plans=FINISHING, pooled=pooled),
            more_will_end=self._more_will_end,
            on_written=self._written,
            write_reports=self.reporter.write,
            hold_back=self._hold_back,
        )
        self._make_executors(holder)
        self.dispatcher.executors = self.executors
        self.watchdog = Watchdog(
            self.executors, self.held, self._give_up, self._break_down
        )
        watchdog = self.watchdog  # whose sleep ends: the worker holds a job
        self.activity.wakes(lambda: watchdog.wake() if watchdog.sleeps else None)
        stack_dumps = self._connection("stack dumper", pooled=pooled)
        self.stack_dumper = StackDumper(self.id, stack_dumps, self.executors)
        self._loops = [self.completer, self.watchdog, self.dispatcher, self.reporter]
        if self.config.listen and self.host_news is None:
            self.listener = Listener(self._connection("listener"), self._hear)
            self._loops.append(self.listener)

    def start(self) -> None:
        """Start everything."""
        for loop in self._loops:
            loop.start()
        _announce(signals.worker_started, self)

    def drain(self) -> None:
        """Claim nothing more; what was not started is given back."""
        if self._is_open:
            self._is_open = False
            self.dispatcher.stop_claiming()

    def resume(self) -> None:
        """Claim again."""
        if not self._is_open:
            self._is_open = True
            self.dispatcher.resume_claiming()

    def interrupt(self) -> None:
        """Tell every running handler to stop."""
        for executor in self.executors:
            for attempt in executor.running:
                attempt.interrupt(StopReason.STOP)

    def stop(self, timeout: float) -> None:
        """End the loops; write what is known, and then send the last signals, in so
        many seconds for all of it."""
        deadline = time.monotonic() + timeout

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        for loop in (self.dispatcher, self.watchdog, self.reporter):
            loop.stop(0)
        if self.listener is not None:
            self.listener.stop(0)
        self.completer.stop(left())
        self.dispatcher.stop(min(left(), 1.0))
        _announce(signals.worker_stopped, self)
        announcer.flush(left())
        for reporting in self._reports:
            reporting.join(left())
        observers.flush(max(left(), LEAST_FLUSH))

    @property
    def running(self) -> int:
        """The number of jobs in its slots."""
        return sum(len(executor.running) for executor in self.executors)

    @property
    def is_empty(self) -> bool:
        """True if it holds no job any more."""
        return not self.held and self.completer.is_done

    @property
    def may_end(self) -> bool:
        """True if it holds no job and no claim is under way, so that it will hold none
        if it was drained before."""
        return self.dispatcher.is_resting and self.is_empty

    @property
    def is_idle(self) -> bool:
        """True if it holds no job and could claim none."""
        return self.is_empty and self.dispatcher.is_idle

    def finish_drain(self) -> bool:
        """True if nothing is left that it could run. Has it look again after its last
        job, whose end may allow another one to start; but between two rounds only."""
        if self.is_idle:
            return True
        if self.may_end:
            self.dispatcher.wake()
        return False

    @property
    def only_unresponsive_left(self) -> bool:
        """True if whatever it still holds will never end by itself."""
        if not (self.unresponsive or self.problem):
            return False
        dead = [attempt for e in self.executors if e.is_dead for attempt in e.running]
        return self.held <= {*self.unresponsive, *dead}

    def record_ends(self, within: float, *, unresponsive: bool) -> None:
        """Hand over what is known of attempts that do not get to it themselves; this
        process is about to end. ``unresponsive``: those that do not stop timed out.

        To record the others may call code of the project, as for the text of an
        exception; it has ``within`` seconds.
        """
        over = [attempt for attempt in list(self.held) if attempt.over]
        left = [attempt for attempt in over if not attempt.handed_over]
        known = [attempt for attempt in left if attempt.is_known]
        for attempt in known:
            self.completer.add(attempt, attempt.finish_ended())
        if known and observers.registered:
            self._reports.append(in_thread("ended", partial(report_ended, known)))
        if unresponsive:
            unknown = [attempt for attempt in left if not attempt.handed_over]
            hanging = self.unresponsive
            lost = [a for a in hanging if not (a.over or waits_for_another(a))]
            recording = record_in_thread(self.completer.add, [*unknown, *lost], within)
            self._reports += filter(None, [recording])

    # How the parts speak with each other.

    def _more_will_end(self) -> bool:
        return any(executor.ends_soon for executor in self.executors)

    def _written(self, done: Sequence[Attempt]) -> None:
        self.dispatcher.ended(done)  # first, so that it is never idle for a moment
        self.held.difference_update(done)
        self.finished += len(done)

    def _hold_back(self, job_types: frozenset[str]) -> None:
        """Claim no jobs of these types, until the database takes their outcomes."""
        self.policies.held_back = job_types
        self.dispatcher.jobs_arrived(behind=True)

    def _give_up(self, unresponsive: list[Attempt]) -> None:
        new = [attempt for attempt in unresponsive if attempt not in self.unresponsive]
        self.unresponsive += new
        self.drain()
        for attempt in new:  # last, since a handler of log records may be what hangs
            log_unresponsive(attempt)

    def _break_down(self, why: str) -> None:
        if self.problem is None:
            self.problem = why
            self.drain()
            logger.error("This worker will be replaced: %s", why)

    def _hear(self, news: News, about: str) -> None:
        match news:
            case News.JOBS | News.BEHIND:
                if self.config.serves(about):
                    self.dispatcher.jobs_arrived(behind=news is News.BEHIND)
            case News.JOB_TYPES:
                self.dispatcher.policies_changed()
            case News.CANCEL:
                self.cancel(about)
            case _ if about in (str(self.id), self.config.supervisor):
                self.calls += 1  # an operator asks this worker, or its host
                self.activity()

    def cancel(self, id: str) -> None:
        """An operator cancels a job that may be running here."""
        for attempt in list(self.held):
            if str(attempt.job.id) == id:
                attempt.interrupt(StopReason.CANCEL)

    def _make(self, job: ClaimedJob, claimed: float) -> Attempt:
        effective_policy = self.policies.effective_policy(job.job_type)
        return Attempt(  # by position: by name it takes half as long again
            job,
            effective_policy.declaration,
            effective_policy.max_attempts
            if job.max_attempts is None
            else effective_policy.attempts_of(job),
            effective_policy.timeout if job.timeout is None else job.timeout,
            self.name,
            claimed,
            self._on_report,
            save_metadata,
        )

    def _connection(self, purpose: str, **options: Any) -> OwnConnection:
        return OwnConnection(purpose, on_connect=self._on_connect, **options)

    def _make_dispatcher(self, pooled: bool) -> Dispatcher:
        connection = self._connection(
            "dispatcher", plans=PINNED, pooled=pooled, patience=BRIEF
        )
        claimer = Claimer(
            self.id,
            connection,
            policies=self.policies,
            queues=self.config.queues,
            make=self._make,
            held=self.held,
            activity=self.activity,
            ensure_leased=self._ensure_leased,
            lane_progress=self._lane_progress,
        )
        self.claims = claimer.counts
        dispatcher_class = (
            QuarantineDispatcher if self.config.quarantined else Dispatcher
        )
        return dispatcher_class(
            self.id,
            connection,
            claimer,
            policies=self.policies,
            cancellation_poll=CancellationPoll(lambda: list(self.held), self.cancel),
            gets_notifications=self._gets_notifications,
            host_news=self.host_news,
            pass_on=self._hear,
        )

    def _gets_notifications(self) -> bool:
        source = self.host_news or self.listener
        return source is not None and source.hears

    def _make_executors(self, holder: Holder) -> None:
        def run_sync(attempt: Attempt) -> Finished:
            if attempt.declaration.policy.atomic:
                return run_atomically(attempt, holder, self.reporter.flush)
            return run(attempt)

        callbacks = ExecutorCallbacks(
            on_done=self.completer.add,
            on_slot_free=self.dispatcher.slot_free,
            count_unwritten=lambda: self.completer.waiting,
            table=self._table,
        )
        if self.config.threads:
            threads = Threads(self.config.threads, callbacks, run=observed(run_sync))
            self.executors.append(threads)
        if self.config.async_slots:
            slots, run_async = self.config.async_slots, aobserved(arun)
            self.executors.append(Coroutines(slots, callbacks, run=run_async))


def row_of(name: str, config: WorkerConfig, job_types: Sequence[str]) -> NewWorker:
    """The row of a worker of this process that starts."""
    pid = os.getpid()
    return NewWorker(
        name=name,
        host=identity.host(),
        pid=pid,
        identity=identity.identity(pid),
        supervisor=config.supervisor,
        release=conf.release,
        queues=config.queues,
        job_types=job_types,
        threads=config.threads,
        async_slots=config.async_slots,
        versions=identity.versions(),
    )


def _announce(signal: Signal, worker: Worker) -> None:
    announcer.send(
        signal,
        Worker,
        name=worker.name,
        worker_id=worker.id,
        queues=worker.config.queues,
    )
