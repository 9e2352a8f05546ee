"""A worker in threads of a process that has other things to do, and goes on without
it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.log_events import Event
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.host.hangs import MARGIN
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessEntry, ProcessTable
from django_jobqueue.processes.shutdown import WORKER_STOPS, Step, Stopping
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import database_identity
from django_jobqueue.workers.presence import Presence
from django_jobqueue.workers.unresponsive_attempts import record_in_thread
from django_jobqueue.workers.watchdog import waits_for_another
from django_jobqueue.workers.worker import Worker

logger = logging.getLogger("django_jobqueue.worker")

RECORDED_WITHIN: Final = 1.0  # seconds; the watchdog waits for it
NAMED: Final = 5  # jobs in a line of the log


class ThreadedWorker(Worker):
    """A worker process would end; this one has to clear up after itself."""

    _has_logged_lock: ClassVar = False  # that a job held the interpreter's lock

    def __init__(
        self, config: WorkerConfig, *, ensure_leased: Callable[[], None]
    ) -> None:
        super().__init__(
            config,
            ensure_leased=ensure_leased,
            on_connect=database_identity.ensure_awake,
        )
        self._checked_at = time.monotonic()

    def build(self) -> None:
        """Make the parts; nothing runs yet."""
        super().build()
        self.watchdog.on_checked = self._log_lock

    def end(self, timeout: float) -> None:
        """End the loops and the threads; close every connection.

        What still runs after ``timeout`` seconds goes on, since a thread cannot be
        killed; its outcome will be refused.
        """
        deadline = time.monotonic() + timeout
        self.stop(timeout)
        for executor in self.executors:
            executor.stop(max(0.1, deadline - time.monotonic()))
        for loop in (*self._loops, self.stack_dumper):
            if loop.has_started:
                loop.stop(max(0.1, deadline - time.monotonic()))
            else:
                loop.close()
        for attempt in list(self.held):
            if not attempt.over:
                logger.error(
                    "Job %s (%s) does not stop; it goes on in this process while "
                    "another worker may start it",
                    attempt.job.id,
                    attempt.job.job_type,
                )

    def _log_lock(self) -> None:
        """Log once that a job has kept all other threads, this watchdog's among them,
        from running."""
        now, last = time.monotonic(), self._checked_at
        self._checked_at = now
        started = [attempt for attempt in list(self.held) if attempt.started]
        since = max(last, min((attempt.started for attempt in started), default=now))
        if now - since <= conf.cancel_grace + MARGIN or self._has_logged_lock:
            return
        ThreadedWorker._has_logged_lock = True
        logger.error(
            "For %.1f s no other thread of this process ran: a job holds the "
            "interpreter's lock. Its timeout cannot be enforced here, nor can the "
            "lease be renewed meanwhile: run such jobs with runworkers. Running: %s",
            now - since,
            ", ".join(f"{a.job.id} ({a.job.job_type})" for a in started[:NAMED]),
        )

    def _give_up(self, unresponsive: list[Attempt]) -> None:
        """Record their known outcomes, or that they timed out. Their slots are free
        again when they end after all."""
        for attempt in unresponsive:
            is_recorded = attempt in self.unresponsive or attempt.handed_over
            if is_recorded or waits_for_another(attempt):
                continue
            self.unresponsive.append(attempt)
            logger.error(
                "Job %s (%s) does not stop; %s, and its slot is lost until it ends. "
                "Restart this process to end it",
                attempt.job.id,
                attempt.job.job_type,
                "its outcome is recorded"
                if attempt.over
                else "it is recorded as timed out",
            )
            record_in_thread(
                self.completer.add,
                [attempt],
                RECORDED_WITHIN,
                "its thread was given up",
            )

    def _break_down(self, why: str) -> None:
        """Log it once."""
        if self.problem is None:
            self.problem = why
            logger.error("%s. Restart this process to end it", why.capitalize())


class HostedThreads:
    """A worker with its entry in the process table, as host control sees it (see
    ``HostedWorker``). It does in this process all that a worker process does alone."""

    how_fenced: ClassVar[str] = (
        "telling its handlers to stop; another worker takes its place"
    )

    def __init__(
        self, config: WorkerConfig, process_table: ProcessTable, entry_number: int
    ) -> None:
        self.config = config
        ensure_leased = partial(process_table.ensure_leased, entry_number, conf.lease)
        self.worker = ThreadedWorker(config, ensure_leased=ensure_leased)
        self.entry_number = entry_number
        self.generation = 0  # its plan never changes
        self.quarantined = config.quarantined
        self.is_recycled = False  # never: its memory is that of its process
        self.is_ending = False
        self.is_killed = False
        self.fenced = ""
        self._process_table = process_table
        self._presence = Presence(self.worker, process_table, entry_number)
        self._fencing = Stopping(grace=0.0, cancel_grace=conf.cancel_grace)
        self._drained_at: int | None = None  # rounds of its dispatcher
        self._has_quit = False

    def begin(self) -> None:
        """Register, and start. Raises StoreUnavailable; RuntimeError if there is no
        room for all of its threads, and then ``end()`` has to clear up."""
        began = int(lease_time() * 1_000)
        worker = self.worker.register()
        self._process_table.clear(self.entry_number)
        self._write(pid=os.getpid(), registered=began, worker=worker, renewable=1)
        self.worker.activity.wakes(self._presence.claimed)
        self.worker.build()
        self.worker.start()
        self._log("Worker %s started", Event.WORKER_STARTED)

    @property
    def name(self) -> str:
        """As the admin shows it."""
        return self.worker.name

    @property
    def is_paused(self) -> bool:
        """True if an operator asked it to claim nothing."""
        return bool(self.state.paused)

    @property
    def state(self) -> ProcessEntry:
        """Its entry in the process table."""
        return self._process_table.entry(self.entry_number)

    @property
    def is_empty(self) -> bool:
        """True if it claims nothing more, and has nothing."""
        at = self._drained_at
        is_drained = at is not None and self.worker.dispatcher.rounds > at
        return is_drained and self.worker.is_empty

    @property
    def is_done(self) -> bool:
        """True if there is nothing left to wait for."""
        return self._has_quit or (self.is_ending and self.is_empty)

    def check(self) -> None:
        """Publish its state; end when a drain is done, or its lease was lost."""
        self._presence.publish()
        self.worker.stack_dumper.request(self.state.stack_request)
        if self.config.drain and not self.is_ending and self.worker.finish_drain():
            self.take(Step.END)
        for step in self._fencing.due(time.monotonic()):
            self.take(step)

    def drain(self) -> None:
        """Claim nothing more."""
        if self._drained_at is None:
            self.worker.drain()
            self._drained_at = self.worker.dispatcher.rounds
            self._write(draining=1)

    def resume(self) -> None:
        """Claim again, unless it is ending."""
        if self._drained_at is not None and not self.is_ending:
            self._drained_at = None
            self.worker.resume()
            self._write(draining=0)

    def take(self, step: Step) -> None:
        """Take a step of a stop. A thread cannot be killed, so the last two are one."""
        match step:
            case Step.END:
                self.is_ending = True
                self.drain()
            case Step.CANCEL:
                self.worker.interrupt()
            case Step.QUIT | Step.KILL:
                self._has_quit = True

    def fence(self, problem: str) -> None:
        """Tell its handlers to stop, since others may start its jobs any moment."""
        self.fenced = problem
        self.is_killed = self.is_ending = True
        self._fencing.signal(time.monotonic())

    def end(self) -> None:
        """End its threads, and close its connections."""
        self.worker.end(WORKER_STOPS)
        self._process_table.clear(self.entry_number)
        self._log("Worker %s ended", Event.WORKER_ENDED)

    def _log(self, text: str, event: Event) -> None:
        logger.info(text, self.name, extra={"event": event, "worker": self.name})

    def _write(self, **values: int) -> None:
        self._process_table.write(self.entry_number, **values)
