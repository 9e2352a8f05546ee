"""One worker of this process, from its row in the database to its last outcome."""

from __future__ import annotations

import logging
import os
import time
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.embedded.threaded_worker import ThreadedWorker
from django_jobqueue.host.maintenance.burial import ProcessDeath
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import DESIRES, ProcessEntry, ProcessTable
from django_jobqueue.processes.shutdown import Step, Stopping
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.workers.presence import Presence

logger = logging.getLogger("django_jobqueue.worker")

LAST_WORDS: Final = 0.7  # seconds for writing outcomes


class WorkerLifecycle:
    """A worker and its entry in the process table. Where workers have processes, this
    is what each does with itself, and the supervisor with each."""

    def __init__(
        self,
        config: WorkerConfig,
        process_table: ProcessTable,
        entry: int,
        *,
        grace: float,
    ) -> None:
        self.config = config
        self.worker = ThreadedWorker(config, is_leased=self._is_leased)
        self.is_leaving = False
        self.is_last = False  # an operator wants no successor
        self.has_failed = False  # at its start
        self._process_table = process_table
        self._number = entry
        self._presence = Presence(self.worker, process_table, entry)
        self._grace = grace
        self._stopping: Stopping | None = None
        self._until = 0.0  # time.monotonic() at which the grace is over
        self._closed_at: int | None = None  # rounds of its dispatcher
        self._is_quit = False
        self._end = "ended"

    def begin(self) -> None:
        """Register, and begin. Raises StoreUnavailable."""
        began = int(lease_time() * 1_000)
        worker = self.worker.register()
        self._process_table.clear(self._number)
        self._write(pid=os.getpid(), registered=began, worker=worker, renewable=1)
        self.worker.activity.wakes(self._presence.claimed)
        self.worker.build()
        try:
            self.worker.start()
        except RuntimeError as error:  # there is no room for all of its threads
            logger.error("Worker %s cannot start: %s", self.worker.name, error)
            self.has_failed = self.is_leaving = self._is_quit = True
            self._end = "it could not start"
        else:
            logger.info("Worker %s started", self.worker.name)

    @property
    def is_paused(self) -> bool:
        """Whether an operator asked it to claim nothing."""
        return bool(self._entry.paused)

    @property
    def has_claimed(self) -> bool:
        """Whether it has had a job."""
        return bool(self._entry.claimed)

    @property
    def is_empty(self) -> bool:
        """Whether it claims nothing more, and has nothing."""
        closed_at = self._closed_at
        is_shut = closed_at is not None and self.worker.dispatcher.rounds > closed_at
        return is_shut and self.worker.is_empty

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self._is_quit or (self.is_leaving and self.is_empty)

    def look(self) -> None:
        """Say how it is, do what was asked, take the next step of its end."""
        worker, entry = self.worker, self._entry
        self._presence.say()
        worker.stack_dumper.ask(entry.stack_request)
        if not self.is_leaving:
            self._fence(entry)
            self._obey(entry)
        if self.config.drain and worker.is_empty and not self.is_leaving:
            if worker.is_idle:
                self.leave()
            worker.dispatcher.wake()  # does what it finished allow something else?
        self._proceed()

    def close_doors(self) -> None:
        """Claim nothing more."""
        if self._closed_at is None:
            self.worker.drain()
            self._closed_at = self.worker.dispatcher.rounds
            self._write(draining=1)

    def open_doors(self) -> None:
        """Claim again."""
        if self._closed_at is not None:
            self._closed_at = None
            self.worker.resume()
            self._write(draining=0)

    def leave(self, grace: float | None = None, *, end: str = "ended") -> None:
        """Claim nothing more, and end: after the grace in any case. Another call may
        only shorten it."""
        now, grace = time.monotonic(), self._grace if grace is None else grace
        if not self.is_leaving:
            self._end = end
        if not self.is_leaving or now + grace < self._until:
            self.is_leaving = True
            self._until = now + grace
            self._stopping = Stopping(grace=grace, cancel_grace=conf.cancel_grace)
            self._stopping.signal(now)

    def end(self) -> ProcessDeath:
        """End everything; returns what the rescuer has to know."""
        self.worker.end(LAST_WORDS)
        self._process_table.clear(self._number)
        logger.info("Worker %s ended", self.worker.name)
        return ProcessDeath(self.worker.id, self.worker.name, False, self._end)

    @property
    def _entry(self) -> ProcessEntry:
        return self._process_table.entry(self._number)

    def _write(self, **values: int) -> None:
        self._process_table.write(self._number, **values)

    def _is_leased(self) -> bool:
        entry, renewed_at = self._entry, self._process_table.renewed_at
        overdue = entry.is_overdue(renewed_at, lease_time(), conf.lease)
        return not entry.lost and not overdue

    def _fence(self, entry: ProcessEntry) -> None:
        """Stop what may no longer run: others may start its jobs any moment."""
        cut_off = entry.is_cut_off(
            self._process_table.renewed_at, lease_time(), conf.lease
        )
        if entry.lost or cut_off:
            why = "was given up" if entry.lost else "could not be renewed in time"
            logger.error(
                "Worker %s: its lease %s; its handlers are told to stop, and another "
                "worker takes its place",
                self.worker.name,
                why,
            )
            self.leave(0.0, end=f"its lease {why}")

    def _obey(self, entry: ProcessEntry) -> None:
        """What an operator asks for."""
        desire = DESIRES[entry.desired]
        if desire == "drain" and not entry.paused:
            self._write(paused=1)
            self.close_doors()
        elif desire == "resume" and entry.paused:
            self._write(paused=0)
            self.open_doors()
        elif desire in ("stop", "restart"):
            self.is_last = desire == "stop"
            self.leave()

    def _proceed(self) -> None:
        """The next steps of its end."""
        steps = [] if self._stopping is None else self._stopping.due(time.monotonic())
        for step in steps:
            match step:
                case Step.DRAIN:
                    self.close_doors()
                case Step.CANCEL:
                    self.worker.interrupt()
                case Step.QUIT | Step.KILL:
                    self._is_quit = True
