"""Rescues the jobs of dead workers: those of this host at once, those of other hosts
when their lease has lapsed."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

import psycopg

from django_jobqueue.conf import conf
from django_jobqueue.domain.series import Labels, Series, summed
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance.dead_worker_recovery import (
    DeadWorkerRecovery,
    JobRecovery,
    ProcessDeath,
    summarize,
)
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.process_table import IDLE_EXTENSION
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import in_a_line
from django_jobqueue.store.next_deadlines import NextDeadlines
from django_jobqueue.store.queue.rescue import Rescued
from django_jobqueue.store.rollup import Count
from django_jobqueue.store.worker_rows import LostWorker
from django_jobqueue.workers.completing.attempt_totals import ATTEMPTS, AttemptTotals

logger = logging.getLogger("django_jobqueue.maintenance")

STRAYS_EVERY: Final = 4  # leases
STRAYS_AFTER: Final = 0.5  # seconds after a death, then twice that, up to the above
# Seconds between looks while a job that must run alone is due. Its pause, or the jobs
# that use up the limit of its type, may end any moment; the last worker that wanted it
# may have found it locked.
QUARANTINE_EVERY: Final = 1.0
REMEMBERED: Final = 10_000  # unfinished jobs that are listed when all stop
LAPSED: Final = "its lease lapsed: host lost, cut off or paused"
WHILE_STOPPING: Final = ", while it was stopping"
GONE: Final = "its worker is gone"


RESCUED: Final = "jobqueue_worker_rescued_jobs_total"


class RescueCounts:
    """The rescuer counts; any thread may read ``series``."""

    def __init__(self) -> None:
        self.series: Series = {}
        self._timed_out = AttemptTotals(conf.metrics_series, conf.metrics_queues)
        self._others: Series = {}

    def add(self, taken: Sequence[Rescued], timed_out: Iterable[Count] = ()) -> None:
        """These jobs were taken from a dead worker; these attempts ended for it."""
        rescued = Counter[Labels]((job.status,) for job in taken)
        ended = Counter[Labels](
            (
                *self._timed_out.labels_of(job.queue, job.job_type),
                "crashed" if job.crashed else "released",
            )
            for job in taken
        )
        new: Series = {RESCUED: {**rescued}, ATTEMPTS: {**ended}}
        self._others = summed([self._others, new])
        self._timed_out.add(timed_out)
        self.series = summed([self._others, self._timed_out.series(())])


class Rescuer(Loop):
    """Sleeps until the first lease can lapse, since leases only ever grow. After an
    outage of the database, every lease has run out because nobody could renew; so it
    waits for half a lease before it gives up a worker. After the database's clock was
    set forward, it waits until every living worker has renewed.

    It calls ``on_quarantined`` with the time.monotonic() at which it saw a job that
    must run alone and may, or with zero if there is none; and ``on_recovered`` with the
    number of the last death up to which it has dealt with all.
    """

    name = "rescuer"

    def __init__(
        self,
        connection: OwnConnection,
        deadlines: DeadlineWatch,
        *,
        on_quarantined: Callable[[float], None],
        on_recovered: Callable[[int], None],
    ) -> None:
        super().__init__()
        self.released: deque[Rescued] = deque(maxlen=REMEMBERED)  # for the dump
        self.counts = RescueCounts()
        self._connection = connection
        self._deadlines = deadlines
        self._on_quarantined = on_quarantined
        self._on_recovered = on_recovered
        self.recoveries: deque[DeadWorkerRecovery] = deque()
        self._last = 0  # the greatest number of a death that was reported
        self._reported = 0  # the number up to which all are dealt with, as reported
        self._has_news = False  # the dead left something since the last look
        self._patient_until = time.monotonic() + conf.lease / 2
        self._blind = False
        self._stray_recovery: JobRecovery | None = None
        self.next_strays_at = 0.0
        self._strays_pause = self._longest_strays_pause
        self._refused: set[UUID] = set()  # jobs that the log has named

    def report(self, death: ProcessDeath) -> None:
        """A worker has ended; from any thread."""
        self.recoveries.append(DeadWorkerRecovery(death))
        self._last = max(self._last, death.number)

    @property
    def is_done(self) -> bool:
        """True if every reported death was dealt with."""
        return not self.recoveries

    def settle(self, seconds: float) -> None:
        """Wait until its thread has dealt with every death, but only so long."""
        deadline = time.monotonic() + seconds
        while not self.is_done and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self.is_done:
            logger.error(
                "The database does not answer; unfinished jobs are taken over when "
                "their lease of %g s has lapsed",
                conf.lease,
            )

    def tick(self) -> float:
        """Deal with the deaths reported, with lapsed leases, and with strays."""
        try:
            self._recover()
            self._recover_strays()
            deadlines = self._read_deadlines()
            if self._give_up(deadlines):
                self._recover()
                deadlines = self._read_deadlines()
        except StoreUnavailable as error:
            self._blind = self._blind or error.is_outage
            raise
        waits = deadlines.quarantined is not None and deadlines.quarantined <= 0
        self._on_quarantined(self._deadlines.read_at if waits else 0.0)
        self._report_recovered()
        return self._pause(deadlines, waits=waits)

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def _recover(self) -> None:
        """Deal with the deaths, except those whose last try failed a moment ago."""
        now = time.monotonic()
        for recovery in list(self.recoveries):
            if recovery.next_at <= now:
                recovery.run(self._connection)
                self.counts.add(recovery.taken, recovery.timed_out)
                self.recoveries.remove(recovery)
                self._has_news = True
                self._name_refused(recovery.refused)
                self._expect_strays()
                if recovery.death.stopping:
                    self.released += recovery.taken

    def _report_recovered(self) -> None:
        """Report up to which death all are dealt with, and their jobs were seen."""
        left = [r.death.number for r in list(self.recoveries) if r.death.number]
        number = min(left) - 1 if left else self._last
        if number > self._reported:
            self._reported = number
            self._on_recovered(number)

    def _read_deadlines(self) -> NextDeadlines:
        """Read the deadlines again if the dead may have left jobs."""
        deadlines = self._deadlines.next_for(self, reread=self._has_news)
        if deadlines.was_set_back:
            logger.warning("The database's clock was set back; leases count from now")
            worker_rows.shorten(self._connection)
            deadlines = self._deadlines.next_for(self, reread=True)
        self._has_news = False
        return deadlines

    def _give_up(self, deadlines: NextDeadlines) -> bool:
        """Give up every worker whose lease has lapsed; returns whether any had."""
        if self._blind:
            self._blind = False
            self._patient_until = time.monotonic() + conf.lease / 2
        if deadlines.lapse is None or deadlines.lapse > 0:
            return False
        if self._patience(deadlines) > 0:
            return False
        lost = worker_rows.give_up(self._connection, deadlines.clock)
        for worker in lost:
            logger.warning("Worker %s is presumed dead", worker.name)
            self.report(death_of(worker, LAPSED))
        return bool(lost)

    def _patience(self, deadlines: NextDeadlines) -> float:
        """Seconds for which no worker is given up."""
        renewed_by = self._deadlines.clock_set_at + _all_renewed(deadlines)
        until = max(self._patient_until, renewed_by)
        return until - time.monotonic()

    def _pause(self, deadlines: NextDeadlines, *, waits: bool) -> float:
        """Seconds until there may be something to do; ``waits``: a job that must run
        alone does."""
        now = time.monotonic()
        pauses = [
            self._deadlines.seconds_until_read,
            *(r.next_at - now for r in list(self.recoveries)),
        ]
        if deadlines.lapse is not None:
            pauses.append(max(deadlines.lapse + 0.05, self._patience(deadlines), 0.2))
        if waits or deadlines.is_held_back:
            pauses.append(QUARANTINE_EVERY)
        elif deadlines.quarantined is not None:
            pauses.append(deadlines.quarantined)
        if self._strays_pause < self._longest_strays_pause:
            pauses.append(self.next_strays_at - now)
        return max(0.0, min(pauses))

    @property
    def _longest_strays_pause(self) -> float:
        return conf.lease * STRAYS_EVERY

    def _expect_strays(self) -> None:
        """The last statements of the dead may still run on the server: a claim that
        waits for a lock, the commit of an atomic job. So look again, and soon."""
        self._strays_pause = STRAYS_AFTER
        self.next_strays_at = time.monotonic() + self._strays_pause

    def _recover_strays(self) -> None:
        """Look for strays now and then, and no sooner after a try that failed."""
        now = time.monotonic()
        if now < self.next_strays_at:
            return
        self._strays_pause = min(2 * self._strays_pause, self._longest_strays_pause)
        self.next_strays_at = now + self._strays_pause
        if self._stray_recovery is None:
            strays = worker_rows.strays(self._connection)
            if not strays:
                return
            self._stray_recovery = JobRecovery(strays, crashed=True, reason=GONE)
        self._stray_recovery.run(self._connection)
        recovery, self._stray_recovery = self._stray_recovery, None
        self.counts.add(recovery.taken)
        self._name_refused(recovery.refused)
        if recovery.taken:
            summarize("(gone)", GONE, recovery.taken)

    def _name_refused(self, refused: Mapping[UUID, psycopg.Error]) -> None:
        """Log each job that the database refuses to move, once; each look for strays
        tries it again."""
        for id, error in refused.items():
            if id not in self._refused:
                logger.error(
                    "Job %s of a dead worker cannot be taken from it, and is tried "
                    "again every %g s: %s",
                    id,
                    self._longest_strays_pause,
                    in_a_line(error),
                )
        self._refused.update(refused)


def death_of(worker: LostWorker, reason: str) -> ProcessDeath:
    """Of one that nobody saw die. What runs while a host is asked to stop, and is
    killed before it has, did not bring it down."""
    if worker.was_draining:
        reason += WHILE_STOPPING
    return ProcessDeath(worker.id, worker.name, not worker.was_draining, reason)


def _all_renewed(deadlines: NextDeadlines) -> float:
    """Seconds in which every worker that is alive renews its lease."""
    return max(conf.lease * (IDLE_EXTENSION + 0.5), deadlines.longest_lease)
