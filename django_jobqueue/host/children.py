"""The children of a supervisor: worker processes, and the maintenance process, which
uses the database for all of them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator

from django_jobqueue.host.child import ENDS, Child, exit_code, fork
from django_jobqueue.host.exporter_child import ExporterChild
from django_jobqueue.host.hangs import NAMED
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.maintenance_child import MaintenanceChild
from django_jobqueue.host.restarts import Restarts
from django_jobqueue.processes.host_counters import HostCounters
from django_jobqueue.processes.process_table import ProcessEntry, ProcessTable
from django_jobqueue.processes.shutdown import KILLED_ENDS
from django_jobqueue.processes.wakeups import WakeupPipe
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.rooms import load, named
from django_jobqueue.workers.unfinished_jobs_dump import UnfinishedJobsDump
from django_jobqueue.workers.worker_main import ENDED, WorkerMain


class Children:
    """Forks them, reaps them, and hands the jobs of dead workers to the maintenance
    process."""

    def __init__(
        self,
        config: WorkerConfig,
        process_table: ProcessTable,
        dump: UnfinishedJobsDump,
        *,
        restarts: Restarts,
        maintenance_wakeup: WakeupPipe,
        listening: socket.socket | None = None,
    ) -> None:
        """``listening``: where an exporter process is to serve metrics; None is
        nowhere."""
        self.workers: dict[int, Child] = {}  # by process id
        self.spared: int | None = None  # a process id that somebody else waits for
        self.restarts = restarts  # of workers
        self.maintenance = MaintenanceChild(
            process_table,
            dump,
            wakeup=maintenance_wakeup,
            config=config,
            fork=self._fork,
        )
        self.counters: HostCounters | None = None
        self.exporter: ExporterChild | None = None
        if listening is not None:
            self.counters = HostCounters(process_table.size)
            self.maintenance.counters = self.counters
            self.exporter = ExporterChild(
                process_table,
                self.counters,
                listening=listening,
                drains=config.drain or config.drain_all,
                fork=self._fork,
            )
        self._config = config
        self._process_table = process_table
        self._dump = dump
        for path in named("chunked_work").values():
            load(path)  # once, before the forks

    def __iter__(self) -> Iterator[Child]:
        """The worker processes, as a copy: they may be reaped meanwhile."""
        return iter(list(self.workers.values()))

    def __len__(self) -> int:
        return len(self.workers)

    @property
    def is_paused(self) -> bool:
        """True if a child is stopped (SIGSTOP)."""
        return any(child.paused_since is not None for child in self._all())

    @property
    def next_start(self) -> float | None:
        """time.monotonic() at which the next child may start that has to wait."""
        now = time.monotonic()
        starts = [self.restarts.next_at, self.maintenance.restarts.next_at]
        if self.exporter is not None:
            starts.append(self.exporter.restarts.next_at)
        return min((start for start in starts if start > now), default=None)

    def change_config(self, config: WorkerConfig) -> None:
        """Workers that start have this configuration from now on."""
        self._config = config
        self.maintenance.change_config(config)

    def ensure_others(self) -> None:
        """Start the processes beside the workers, or their successors."""
        if self.exporter is not None:
            self.exporter.ensure()
        self.maintenance.ensure()

    def end_others(self) -> None:
        """End the processes beside the workers; the exporter last, so that all of a
        stop can be watched."""
        self.maintenance.end()
        if self.exporter is not None:
            self.exporter.end()

    def spawn(self, *, quarantined: bool, generation: int = 0) -> None:
        """Start a worker process, unless the last ones died a moment ago;
        ``quarantined``: for one job that must run alone."""
        process_table, dump = self._process_table, self._dump
        number = process_table.free()
        if number is None or not self.restarts.is_due(time.monotonic()):
            return
        config = self._config._replace(listen=process_table.can_listen)
        if quarantined:
            config = config.for_quarantined()
        metrics = None if self.counters is None else self.counters.workers[number]

        def live(order_pipe: int) -> int:
            return WorkerMain(
                config,
                process_table=process_table,
                entry_number=number,
                order_pipe=order_pipe,
                dump=dump,
                metrics=metrics,
            ).live()

        process_table.clear(number)
        process_table.attempts(number).clear()
        child = self._fork(number, live, self.restarts)
        if child is None:
            return
        child.quarantined = quarantined
        child.generation = generation
        process_table.write(number, pid=child.pid, renewable=1)
        self.workers[child.pid] = child

    def reap(self) -> Iterator[tuple[Child, ProcessEntry, int]]:
        """Note which children are paused, go on, or have ended; yields the workers that
        have ended, with their last entries in the process table and exit codes."""
        for child in self._all():
            while (seen := child.poll_state()) is not None and seen.si_code not in ENDS:
                self._pause(child, seen.si_code == os.CLD_STOPPED)
            if seen is None:
                continue
            code = exit_code(seen)
            if child is self.maintenance.child:
                self.maintenance.ended(code)
            elif self.exporter is not None and child is self.exporter.child:
                self.exporter.ended(code)
            else:
                yield child, self._remove(child, code), code
        self._reap_strangers()

    def recover(self, child: Child, death: ProcessDeath) -> None:
        """Have the maintenance process look after the jobs of a worker that ended."""
        if not death.worker:
            return  # it ended before it had a row
        if child.hang is not None:
            death = death._replace(
                timed_out=tuple(child.hang.timed_out),
                suspects=tuple(child.hang.suspects),
            )
        elif death.crashed:
            # A job that was claimed ahead, or had ended, did not kill the process.
            running = self._process_table.attempts(child.entry_number).running()
            if len(running) <= NAMED:
                death = death._replace(suspects=tuple(one.job for one in running))
        self.maintenance.recover(death)

    def close(self) -> None:
        """Kill the children that are left: nobody would look after them."""
        for child in self._all():
            child.kill()
            child.wait_for_exit(KILLED_ENDS)
            child.reap()
        self.workers.clear()
        self.maintenance.child = None
        if self.exporter is not None:
            self.exporter.child = None

    def _all(self) -> list[Child]:
        exporter = None if self.exporter is None else self.exporter.child
        others = (self.maintenance.child, exporter)
        return [*self.workers.values(), *filter(None, others)]

    def _fork(
        self, number: int, live: Callable[[int], int], restarts: Restarts
    ) -> Child | None:
        """None if the system has no room for one more process now."""
        inherited, now = [child.order_pipe for child in self._all()], time.monotonic()
        if self.exporter is not None and restarts is not self.exporter.restarts:
            inherited.append(self.exporter.listening)
        try:
            return fork(number, live, inherited, is_verbose=restarts.is_verbose(now))
        except OSError as error:
            restarts.could_not_start("process", error, now)
            return None

    def _pause(self, child: Child, paused: bool) -> None:
        child.paused_since = time.monotonic() if paused else None
        if child is self.maintenance.child:
            self.maintenance.paused(paused)
        elif child.entry_number >= 0:
            self._process_table.write(child.entry_number, renewable=not paused)

    def _remove(self, child: Child, code: int) -> ProcessEntry:
        """A worker has ended. The programs that its handlers started must not live on
        beside the next attempts, unless all of its jobs had ended."""
        entry = self._process_table.entry(child.entry_number)
        if not (entry.orderly and code == ENDED):
            child.kill()
        child.reap()
        if self.counters is not None:
            self.counters.process_ended(self.counters.workers[child.entry_number])
        self._process_table.clear(child.entry_number)
        del self.workers[child.pid]
        return entry

    def _reap_strangers(self) -> None:
        """The first process of a container has to reap the processes that lost their
        parents. Elsewhere, other code may wait for processes that are not ours."""
        if os.getpid() != 1:
            return
        ours = {self.spared, *(child.pid for child in self._all())}
        flags = os.WEXITED | os.WNOHANG
        while (seen := _poll_any(flags | os.WNOWAIT)) and seen.si_pid not in ours:
            os.waitid(os.P_PID, seen.si_pid, flags)


def _poll_any(flags: int) -> os.waitid_result | None:
    try:
        return os.waitid(os.P_ALL, 0, flags)
    except ChildProcessError:
        return None
