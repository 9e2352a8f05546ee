"""The parent of the worker processes of ``runworkers``: forks, reaps and stops them.

Host control decides (``control.py``); this strategy has a process for each worker.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import time
from contextlib import closing
from dataclasses import replace
from types import FrameType
from typing import Final
from uuid import uuid4

from django_jobqueue.conf import conf
from django_jobqueue.domain.log_events import Event
from django_jobqueue.host.child import Child, how_it_died, how_it_ended
from django_jobqueue.host.children import Children
from django_jobqueue.host.code_trial import Program
from django_jobqueue.host.control import HostControl
from django_jobqueue.host.host_orders import HostOrders, capacity
from django_jobqueue.host.host_status import HostStatus
from django_jobqueue.host.liveness import Liveness
from django_jobqueue.host.process_health import ProcessHealth
from django_jobqueue.host.step_down import StepDown
from django_jobqueue.processes import identity
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_state import memory_frozen, signals_handled
from django_jobqueue.processes.process_table import ProcessEntry, ProcessTable
from django_jobqueue.processes.wakeups import WakeupPipes
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.workers.unfinished_jobs_dump import UnfinishedJobsDump
from django_jobqueue.workers.worker_main import IDLE_CHECKS, OF_LEASE

logger = logging.getLogger("django_jobqueue.supervisor")

CHECK_EVERY: Final = 1.0  # seconds between looks at leases and at operators' requests
STOPPED_AT_ONCE: Final = 1  # exit codes
JOBS_REMAIN: Final = 3
PIPED: Final = 8  # processes whose workers the host's listener wakes, at least


class DrainAll:
    """Stops a host as a signal does, when maintenance finds no job, or when the time
    for it is over."""

    def __init__(self, config: WorkerConfig, control: HostControl) -> None:
        self.timed_out = False
        self._is_on = config.drain_all
        self._control = control
        self._timeout = config.drain_timeout
        self._ends_at = time.monotonic() + self._timeout

    @property
    def seconds_left(self) -> float:
        """Seconds until the time is over; without end if none was set."""
        return max(0.0, self._ends_at - time.monotonic()) if self._is_on else math.inf

    def proceed(self) -> None:
        """Stop the host if it is time."""
        if not self._is_on or self._control.stopping:
            return
        if self._control.process_table.nothing_remains:
            self._stop(logging.INFO, "Nothing is left to run: stopping")
        elif not self.seconds_left:
            self.timed_out = True
            self._stop(
                logging.WARNING,
                f"Jobs are left after --drain-timeout {self._timeout:g} s: stopping",
            )

    def _stop(self, level: int, message: str) -> None:
        extra = {"event": Event.HOST_STOPPING, "signal": ""}
        logger.log(level, message, extra=extra)
        self._control.stop_within(conf.grace)


class Supervisor:
    """Runs no handler, and has no thread and no database connection, so it may fork."""

    def __init__(
        self,
        config: WorkerConfig,
        processes: int,
        listening: socket.socket | None = None,
        *,
        program: Program | None = None,
        no_program: str = "",
    ) -> None:
        """``listening``: where to serve metrics and answer probes; None is nowhere.
        Without a ``program`` the code cannot be loaded again; ``no_program`` says
        why."""
        self.config = _identified(config)
        # Workers of later entries, in a host that was scaled up, listen themselves.
        pipes = 2 * max(processes, PIPED) + 4
        self._wakeups = wakeups = WakeupPipes.with_workers(pipes)
        self._wakeup = wakeups.supervisor
        bounds = capacity(config, processes)
        self.process_table = ProcessTable(
            2 * bounds["processes"] + 4,
            wakeups,
            attempts=bounds["threads"] + bounds["async_slots"],
        )
        if config.standby:
            self.config = self.config._replace(standby_token=uuid4())
            self.process_table.standby_until = 0.0
            self.process_table.standby_is_held = False
        self.dump = UnfinishedJobsDump(conf.dump_dir, self.config.supervisor)
        self.control = HostControl(
            self.config, self.process_table, wanted=processes, grace=conf.grace
        )
        self.children = Children(
            self.config,
            self.process_table,
            self.dump,
            restarts=self.control.restarts,
            maintenance_wakeup=wakeups.maintenance,
            listening=listening,
        )
        self.orders = HostOrders(
            self.control,
            self.process_table,
            bounds=bounds,
            program=program,
            no_program=no_program,
            on_plan=self.children.change_config,
        )
        self._signals = 0
        self._counters = self.children.counters
        if self._counters is not None:
            self.control.on_recycled = self._counters.count_recycled
        self._health = ProcessHealth(self.process_table, self.children)
        self._liveness = Liveness(heartbeat_file=conf.heartbeat_file, grace=conf.grace)
        self._step_down = StepDown(self.process_table, self.control.activity)
        self._drain_all = DrainAll(self.config, self.control)

    def run(self) -> int:
        """Run until told to stop, or drained; returns the exit code.

        It can be called once, in the main thread.
        """
        with (
            closing(self._wakeups),
            closing(self.children),
            memory_frozen(),
            signals_handled(self._stop_signal, wakes=self._wakeup.writer),
        ):
            self.process_table.supervised_at = time.monotonic()
            self.orders.report([])
            self.children.ensure_others()
            while not self._is_over():
                self._round()
            self._liveness.notify(self._status)
            self.orders.end()
            self.children.end_others()
            self.dump.merge()
            if not self.orders.is_restarting:
                self._liveness.end()
        self._log_end()
        if self._signals > 1:
            return STOPPED_AT_ONCE
        return JOBS_REMAIN if self._drain_all.timed_out else 0

    def restart_program(self) -> None:
        """Start the program again in the place of this one, if operators asked for
        that; returns if they did not. To be called last."""
        if self.orders.is_restarting and self.orders.program is not None:
            environment = {**self._liveness.environment, **self.orders.environment}
            if self.children.exporter is not None:
                environment |= self.children.exporter.environment
            self._liveness.restart()
            self.orders.program.replace_this_process(environment)

    def _log_end(self) -> None:
        if self.children.exporter is None:
            logger.info("Stopped", extra={"event": Event.HOST_STOPPED})
            return
        url = self.children.exporter.url
        extra = {"event": Event.HOST_STOPPED, "url": url}
        logger.info("Stopped. Metrics were at %s", url, extra=extra)

    def _round(self) -> None:
        self._sleep()
        self.process_table.supervised_at = time.monotonic()
        self.process_table.is_stopping = bool(self.control.stopping)
        self.children.spared = self.orders.trial_pid
        for child, entry, code in self.children.reap():
            self._ended(child, entry, code)
        self._health.kill_paused()
        is_ready = self.process_table.maintenance_is_ready  # before orders are read
        self.orders.proceed(list(self.children))
        self.control.fence_and_obey(list(self.children))
        self._step_down.proceed(list(self.children))
        self._health.kill_unresponsive()
        self._drain_all.proceed()
        self.control.proceed(list(self.children))
        self.children.ensure_others()  # while workers end, too: leases are renewed
        if is_ready:
            self._fill()
        self._liveness.notify(self._status)

    def _status(self) -> HostStatus:
        status = HostStatus.of(self.process_table)
        return replace(status, is_restarting=self.orders.is_restarting)

    def _is_over(self) -> bool:
        all_recovered = self.children.maintenance.is_done
        return self.control.is_over(list(self.children), all_recovered=all_recovered)

    # Signals and time.

    def _stop_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        self.orders.is_restarting = False
        name = signal.Signals(number).name
        if self._signals == 1:
            self.control.stop_within(conf.grace)
            logger.info(
                "%s: stopping. No more jobs are claimed; running jobs have %g s to "
                "finish. A second signal stops at once.",
                name,
                conf.grace,
                extra={"event": Event.HOST_STOPPING, "signal": name},
            )
        elif self._signals == 2:
            self.control.stopping.signal(time.monotonic())
            logger.warning(
                "%s again: stopping at once. Unfinished jobs are released and listed "
                "in %s",
                name,
                self.dump.where,
                extra={"event": Event.HOST_STOPPING, "signal": name},
            )

    def _sleep(self) -> None:
        now, stopping = time.monotonic(), self.control.stopping
        if self._may_idle():
            timeout = conf.lease / IDLE_CHECKS
        else:
            timeout = min(CHECK_EVERY, conf.lease / OF_LEASE)
        timeout = min(timeout, self._drain_all.seconds_left)
        if self.config.standby and len(self.children):
            timeout = min(timeout, self._step_down.seconds_until_next())
        if (start := self.children.next_start) is not None:
            timeout = min(timeout, max(0.0, start - now))
        if stopping.next_at is not None:
            timeout = min(timeout, max(0.0, stopping.next_at - now))
        if (pause := self._liveness.longest_pause) is not None:
            timeout = min(timeout, pause)
        is_ready = self.process_table.maintenance_is_ready
        if stopping or self.config.drain or not is_ready:
            timeout = min(timeout, 0.02)
        self._wakeup.wait(timeout)

    def _may_idle(self) -> bool:
        """True if there is no clock to watch, and a wakeup comes when there is one."""
        if self.children.is_paused or not self.process_table.may_idle(
            lease_time(), conf.lease
        ):
            return False
        return not any(entry.held for entry in self.process_table)

    # Births and deaths.

    def _fill(self) -> None:
        """Start the missing workers."""
        if self.control.wants_quarantined(list(self.children)):
            self._spawn(quarantined=True)
        if self.config.drain and not self.children.maintenance.is_done:
            return  # the jobs of the dead cannot be claimed yet
        for _ in range(self.control.missing(list(self.children))):
            self._spawn(quarantined=False)

    def _spawn(self, *, quarantined: bool) -> None:
        generation = self.control.scaling.generation
        self.children.spawn(quarantined=quarantined, generation=generation)
        self.control.activity()

    def _ended(self, child: Child, entry: ProcessEntry, code: int) -> None:
        """A worker ended: have maintenance look after its jobs."""
        self._health.ended(child)
        crashed = not entry.orderly and child.hang is None
        if self.control.stopping and code == -signal.SIGKILL:
            crashed = False  # by us, at the end of its time
        reason = how_it_ended(code, orderly=bool(entry.orderly))
        if child.hang is not None:
            reason = "killed, because a job held the interpreter's lock"
        elif child.runs_another_program:
            reason = "killed, because a job replaced it with another program"
        death = self.control.ended(
            child,
            entry,
            crashed=crashed,
            reason=reason,
            lived=time.monotonic() - child.born,
        )
        self.children.recover(child, death)
        how = how_it_died(child, entry, code)
        was_stopped = bool(self.control.stopping) and code == -signal.SIGKILL
        if self._counters is not None and how and not was_stopped:
            self._counters.count_death(how)


def _identified(config: WorkerConfig) -> WorkerConfig:
    """The configuration with the name and the identity of this process."""
    pid = os.getpid()
    return config._replace(
        host_id=identity.host_id(pid),
        host_identity=identity.identity(pid),
        supervisor=identity.name_of(pid),
    )
