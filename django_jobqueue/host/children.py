"""The children of a supervisor: worker processes, and a maintenance process that does
what needs the database."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from django_jobqueue.host.child import ENDS, LAST_BREATH, Child, exit_code, fork
from django_jobqueue.host.hangs import Hang
from django_jobqueue.host.maintenance.burial import ProcessDeath
from django_jobqueue.host.maintenance.maintenance_child import MaintenanceChild
from django_jobqueue.host.restarts import Restarts
from django_jobqueue.processes import identity
from django_jobqueue.processes.idle import WakeupPipe
from django_jobqueue.processes.process_table import ProcessEntry, ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.workers.unfinished_jobs import Dump
from django_jobqueue.workers.worker_main import ENDED, WorkerMain

logger = logging.getLogger("django_jobqueue.supervisor")


class Children:
    """Forks them, learns of their ends, and has the maintenance process bury the
    dead."""

    def __init__(
        self,
        config: WorkerConfig,
        process_table: ProcessTable,
        dump: Dump,
        *,
        maintenance_wakeup: WakeupPipe,
    ) -> None:
        self.workers: dict[int, Child] = {}  # by process id
        self.restarts = Restarts()  # of workers
        self.maintenance = MaintenanceChild(
            process_table,
            dump,
            wakeup=maintenance_wakeup,
            config=config,
            fork=self._fork,
        )
        self._config = config
        self._process_table = process_table
        self._dump = dump

    def __iter__(self) -> Iterator[Child]:
        """The worker processes; they may end meanwhile."""
        return iter(list(self.workers.values()))

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def is_paused(self) -> bool:
        """Whether somebody was stopped (SIGSTOP)."""
        return any(child.paused_since is not None for child in self._everybody())

    @property
    def next_start(self) -> float | None:
        """time.monotonic() at which one may start that may not start yet."""
        now = time.monotonic()
        starts = (self.restarts.next_at, self.maintenance.restarts.next_at)
        return min((start for start in starts if start > now), default=None)

    def spawn(self, *, quarantined: bool) -> None:
        """Start a worker process, unless it is too soon after the last ones died;
        ``quarantined``: for one job that must run alone."""
        process_table, dump = self._process_table, self._dump
        entry = process_table.free()
        if entry is None or not self.restarts.is_due(time.monotonic()):
            return
        config = replace(self._config, listen=process_table.can_listen)
        if quarantined:
            config = config.for_quarantined()

        def live(control: int) -> int:
            return WorkerMain(
                config,
                process_table=process_table,
                entry=entry,
                control=control,
                dump=dump,
            ).live()

        process_table.clear(entry)
        process_table.attempts(entry).clear()
        child = self._fork(entry, live, self.restarts)
        if child is None:
            return
        child.quarantined = quarantined
        process_table.write(entry, pid=child.pid, renewable=1)
        self.workers[child.pid] = child

    def reap(self) -> Iterator[tuple[Child, ProcessEntry, int]]:
        """Learn who was paused, goes on, or ended; yields the workers that ended, with
        what their entries said and their exit codes."""
        for child in self._everybody():
            while (seen := child.look()) is not None and seen.si_code not in ENDS:
                self._pause(child, seen.si_code == os.CLD_STOPPED)
            if seen is None:
                continue
            code = exit_code(seen)
            if child is self.maintenance.child:
                self.maintenance.ended(code)
            else:
                yield child, self._leave(child, code), code
        self._reap_strangers()

    def bury(
        self,
        child: Child,
        entry: ProcessEntry,
        *,
        crashed: bool,
        reason: str,
        stopping: bool,
    ) -> None:
        """Have the maintenance process look after the jobs of a worker that ended.

        ``stopping``: because the whole host stops; its unfinished jobs are listed.
        """
        if not entry.worker:
            return  # it ended before it had a row
        hang = child.hang or Hang()
        self.maintenance.bury(
            ProcessDeath(
                entry.worker,
                identity.name_of(child.pid),
                crashed,
                reason,
                stopping=stopping,
                timed_out=tuple(hang.timed_out),
                suspects=tuple(hang.suspects),
            )
        )

    def close(self) -> None:
        """End at once whoever is left: nobody would look after them."""
        for child in self._everybody():
            child.kill()
            child.code(LAST_BREATH)
            child.reap()
        self.workers.clear()
        self.maintenance.child = None

    def _everybody(self) -> list[Child]:
        maintenance = self.maintenance.child
        return [*self.workers.values(), *([] if maintenance is None else [maintenance])]

    def _fork(
        self, entry: int, live: Callable[[int], int], restarts: Restarts
    ) -> Child | None:
        """None if the system has no room for one more process now."""
        others, now = [child.control for child in self._everybody()], time.monotonic()
        try:
            return fork(entry, live, others, is_loud=restarts.speaks_up(now))
        except OSError as error:
            restarts.died(lived=0.0, now=now)
            if restarts.is_news(str(error), now):
                logger.error("No process can be started (%s); trying again", error)
            return None

    def _pause(self, child: Child, paused: bool) -> None:
        child.paused_since = time.monotonic() if paused else None
        if child is not self.maintenance.child:
            self._process_table.write(child.entry, renewable=not paused)

    def _leave(self, child: Child, code: int) -> ProcessEntry:
        """A worker has ended. What its handlers started must not live on beside their
        next attempts; if all its jobs had ended, it may."""
        entry = self._process_table.entry(child.entry)
        if not (entry.orderly and code == ENDED):
            child.kill()
        child.reap()
        self._process_table.clear(child.entry)
        del self.workers[child.pid]
        return entry

    def _reap_strangers(self) -> None:
        """As the first process of a container this one has to let go of those that lost
        their parents. Elsewhere, somebody else may wait for what is not ours."""
        if os.getpid() != 1:
            return
        ours = {child.pid for child in self._everybody()}
        flags = os.WEXITED | os.WNOHANG
        while (seen := _look_at_any(flags | os.WNOWAIT)) and seen.si_pid not in ours:
            os.waitid(os.P_PID, seen.si_pid, flags)


def _look_at_any(flags: int) -> os.waitid_result | None:
    try:
        return os.waitid(os.P_ALL, 0, flags)
    except ChildProcessError:
        return None
