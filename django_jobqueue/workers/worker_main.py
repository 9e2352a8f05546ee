"""The main function of a worker process: from its fork to its exit code."""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
import time
from functools import partial
from typing import Any, Final

from django_jobqueue import rooms, signals
from django_jobqueue.conf import conf
from django_jobqueue.domain.log_events import Event
from django_jobqueue.domain.series import Series
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution import connection_reset
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes import forking, identity
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import IDLE_AFTER, LIMITS, ProcessTable
from django_jobqueue.processes.shared_value import SharedValue
from django_jobqueue.processes.shutdown import WORKER_STOPS, WORKER_WRITES
from django_jobqueue.processes.wakeups import WakeupPipe
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import database_identity
from django_jobqueue.text.json_reading import read_json
from django_jobqueue.text.redaction import mask_data
from django_jobqueue.workers.presence import Presence
from django_jobqueue.workers.process_counters import ProcessCounters
from django_jobqueue.workers.process_limits import ProcessLimits
from django_jobqueue.workers.unfinished_jobs_dump import UnfinishedJobsDump
from django_jobqueue.workers.worker import Worker

logger = logging.getLogger("django_jobqueue.worker")

ENDED: Final = 0
RELEASED: Final = 70  # told to end with jobs unfinished; they are to be released
REPLACE: Final = 75  # a handler hangs; what is left is to be released (EX_TEMPFAIL)

# What the supervisor says through the pipe. Drained, a worker stays, for an operator to
# resume; told to end it drains, and ends when nothing is left.
DRAIN, RESUME, END, CANCEL, QUIT = b"d", b"r", b"e", b"c", b"q"

# Seconds after which a handler that computes lets another thread go on. With Python's
# own 5 ms outcomes were written at 60 to 80 % of the rate at which tiny handlers ended;
# what is not written yet is what a crash runs again. With 1 ms they keep up.
SWITCH: Final = 0.001
# Objects that may be made, and not freed, until Python looks for garbage in cycles. A
# claim of some thousand jobs makes more than its own 2,000 (700 before 3.13), none
# of them garbage: looking took 5 to 9 % of the CPU in a drain. 20,000 are 2 to 4 MB.
GARBAGE: Final = 20_000
BEAT: Final = 0.25  # seconds between looks at the pipe's silence, with a job
IDLE_BEAT: Final = 1.0  # without one
OF_LEASE: Final = 15  # looks in a lease at least
IDLE_CHECKS: Final = 3  # the same when nobody has had anything to do for a lease
REPLACED_WITHIN: Final = 10.0  # seconds from the decision to the process's end


def collect_seldom() -> None:
    """Look for garbage in cycles less often, unless the project wants it even less
    often, or not at all."""
    first, *others = gc.get_threshold()
    if first:
        gc.set_threshold(max(first, GARBAGE), *others)


class WorkerMain:
    """A worker process, controlled through a pipe."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        process_table: ProcessTable,
        entry_number: int,
        order_pipe: int,
        dump: UnfinishedJobsDump,
        metrics: SharedValue | None = None,
    ) -> None:
        self._config = config
        self._metrics = metrics  # where to publish counters
        self._counters: WorkerCounters | None = None
        self._process_table = process_table
        self._entry_number = entry_number
        self._order_pipe = order_pipe
        self._dump = dump
        self._orders: list[bytes] = []
        self._is_stopping = False
        self._unresponsive_since: float | None = None
        self._wakeup = WakeupPipe()
        self._is_idle = False
        self._limits: ProcessLimits | None = None

    def live(self) -> int:
        """Register, work, stop; returns the exit code."""
        identity.name_process(
            "jq:quarantine" if self._config.quarantined else "jq:worker"
        )
        forking.guard_this_process()
        signals.send(signals.process_started, None, process="worker")
        connection_reset.keep_connections()
        sys.setswitchinterval(SWITCH)
        collect_seldom()
        self._process_table.keep_pipe(self._entry_number)
        worker = Worker(
            self._config,
            self._process_table.attempts(self._entry_number),
            self._process_table.news_of(self._entry_number),
            self._process_table.lane_progress,
            partial(self._process_table.ensure_leased, self._entry_number, conf.lease),
            database_identity.ensure_awake,
        )
        if not self._register(worker):
            self._process_table.write(self._entry_number, orderly=1)
            return ENDED
        presence = Presence(worker, self._process_table, self._entry_number)
        worker.activity.wakes(presence.claimed)
        worker.activity.wakes(self._wake_if_idle)
        worker.build()
        if self._metrics is not None:
            self._counters = WorkerCounters(worker, self._metrics)
        worker.watchdog.on_checked = presence.watched
        worker.start()
        if not self._config.drain:
            self._limits = ProcessLimits.of_settings()
        logger.info(
            "Worker %s started",
            worker.name,
            extra={"event": Event.WORKER_STARTED, "worker": worker.name},
        )
        while True:
            self._read(self._pause(worker))
            code = self._obey(worker)
            presence.publish()
            if self._counters is not None:
                self._counters.publish()
            if self._limits is not None:
                self._check_limits(self._limits, worker)
            worker.stack_dumper.request(
                self._process_table.entry(self._entry_number).stack_request
            )
            if code is None:
                code = self._exit_code(worker)
            if code is not None:
                self._stop(worker, code)
                return code

    def _stop(self, worker: Worker, code: int) -> None:
        """Write all known outcomes and stop the worker. The decision is published
        first: if a step fails, no job is blamed for it."""
        self._process_table.write(self._entry_number, orderly=1)
        try:
            if code == REPLACE:
                self._exit_within(REPLACED_WITHIN, code)
            if code != ENDED:
                worker.record_ends(WORKER_WRITES, unresponsive=code == REPLACE)
            worker.stop(WORKER_WRITES if code == RELEASED else WORKER_STOPS)
            if self._counters is not None:
                self._counters.publish(at_once=True)
            if code == RELEASED:
                unfinished = [_describe(attempt) for attempt in list(worker.held)]
                self._dump.add(str(os.getpid()), unfinished)
        except Exception:
            logger.exception("The end of worker %s failed", worker.name)
        else:
            logger.info(
                "Worker %s ended",
                worker.name,
                extra={"event": Event.WORKER_ENDED, "worker": worker.name},
            )

    def _check_limits(self, limits: ProcessLimits, worker: Worker) -> None:
        """Have the supervisor replace this process if it has reached a limit."""
        if limit := limits.exceeded(finished=worker.finished):
            number = LIMITS.index(limit)
            self._process_table.write(self._entry_number, exceeded=number)
            self._process_table.call_supervisor()
            self._limits = None

    @staticmethod
    def _exit_within(seconds: float, code: int) -> None:
        """Exit after this time even if a step of the stop hangs, as a log handler may:
        nobody kills a process that is being replaced."""
        exiting = threading.Timer(seconds, os._exit, [code])
        exiting.daemon = True
        exiting.start()

    def _register(self, worker: Worker) -> bool:
        """Write the worker's row, however long it takes; False if asked to stop."""
        while True:
            began = int(lease_time() * 1_000)
            try:
                self._process_table.write(
                    self._entry_number, registered=began, worker=worker.register()
                )
            except StoreUnavailable as error:
                self._read(error.retry_in)
                if END in self._orders or QUIT in self._orders:
                    return False
            else:
                return True

    def _pause(self, worker: Worker) -> float:
        if self._is_stopping or self._config.drain:
            return 0.01
        if self._may_idle(worker):
            return conf.lease / IDLE_CHECKS
        return min(BEAT if worker.held else IDLE_BEAT, conf.lease / OF_LEASE)

    def _may_idle(self, worker: Worker) -> bool:
        """True if it has had nothing to do for a lease, and hears when it has."""
        self._is_idle = True  # said first: see Activity
        seconds = time.monotonic() - worker.activity.last
        is_idle = seconds > conf.lease * IDLE_AFTER
        self._is_idle = is_idle and self._config.listen and not worker.held
        return self._is_idle

    def _wake_if_idle(self) -> None:
        """End a long wait; from any thread."""
        if self._is_idle:
            self._is_idle = False
            self._wakeup.ring()

    def _read(self, seconds: float) -> None:
        _, ready = self._wakeup.wait(seconds, self._order_pipe)
        if ready:
            order = os.read(self._order_pipe, 64)
            if not order:
                os._exit(forking.ORPHANED)
            self._orders += [bytes([letter]) for letter in order]

    def _obey(self, worker: Worker) -> int | None:
        """Carry out an order; returns an exit code if it was to quit."""
        orders, self._orders = self._orders, []
        for order in orders:
            if order == DRAIN:
                self._set_draining(worker, True)
            elif order == RESUME and not self._is_stopping:
                self._set_draining(worker, False)
            elif order == END:
                self._begin_to_stop(worker)
            elif order == CANCEL:
                worker.interrupt()
            elif order == QUIT:
                return RELEASED
        return None

    def _begin_to_stop(self, worker: Worker) -> None:
        self._is_stopping = True
        self._set_draining(worker, True)

    def _set_draining(self, worker: Worker, draining: bool) -> None:
        self._process_table.write(self._entry_number, draining=draining)
        if draining:
            worker.drain()
        else:
            worker.resume()

    def _exit_code(self, worker: Worker) -> int | None:
        """The exit code, if it is time to exit."""
        if worker.unresponsive or worker.problem:
            return self._exit_code_if_unresponsive(worker)
        if self._is_stopping and worker.may_end:
            return ENDED
        if self._config.drain and worker.finish_drain():
            return ENDED
        return None

    def _exit_code_if_unresponsive(self, worker: Worker) -> int | None:
        """The exit code, if nothing is left but a handler that hangs, or GRACE is over
        since. Until then the other jobs finish."""
        now = time.monotonic()
        if self._unresponsive_since is None:
            self._unresponsive_since = now
            self._process_table.write(self._entry_number, condemned=1)
            self._begin_to_stop(worker)
        if worker.only_unresponsive_left or now > self._unresponsive_since + conf.grace:
            return REPLACE
        return None


def _describe(attempt: Attempt) -> dict[str, Any]:
    job = attempt.job
    data = mask_data(read_json(job.data), attempt.declaration.policy.sensitive)
    return {
        "id": str(job.id),
        "job_type": job.job_type,
        "queue": job.queue,
        "attempt": job.attempts,
        "started": bool(attempt.started),
        "ran_seconds": round(time.monotonic() - attempt.started, 3)
        if attempt.started
        else 0,
        "worker": attempt.worker,
        "data": data,
    }


class WorkerCounters:
    """Reads what the parts of a worker count anyway. Used by its main thread, before
    the worker starts and then again and again."""

    def __init__(self, worker: Worker, value: SharedValue) -> None:
        self._worker = worker
        self._completed = worker.completer.count_for_metrics()
        self._process = ProcessCounters(value)
        self._of_rooms = tuple(rooms.offered("metrics"))

    def publish(self, *, at_once: bool = False) -> None:
        """Publish them, once a second at most."""
        if self._process.is_due() or at_once:
            self._process.publish(self._counters(), self._gauges())

    def _counters(self) -> Series:
        claims, worker = self._worker.claims, self._worker
        source = worker.host_news or worker.listener
        counted: Series = {
            **self._completed.latest,
            "jobqueue_worker_claims_total": {
                ("jobs",): claims.with_jobs,
                ("nothing",): claims.without,
            },
            "jobqueue_worker_claimed_jobs_total": {(): claims.jobs},
            "jobqueue_worker_claim_seconds_total": {(): claims.seconds},
            "jobqueue_worker_notifications_total": {
                (): 0 if source is None else source.received
            },
        }
        for one in self._of_rooms:
            counted |= one.counted()
        return counted

    def _gauges(self) -> Series:
        executors = self._worker.executors
        labels = {one: "async" if one.is_async else "thread" for one in executors}
        return {
            "jobqueue_worker_slots": {(labels[one],): one.slots for one in executors},
            "jobqueue_worker_busy_slots": {
                (labels[one],): len(one.running) for one in executors
            },
            "jobqueue_worker_unwritten_outcomes": {
                (): self._worker.completer.unwritten
            },
        }
