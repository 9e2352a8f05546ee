"""Claims jobs for free slots."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store import claim, job_types, lanes, release, workers
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.worker.attempt import Attempt
from django_jobqueue.worker.executors.base import Executor
from django_jobqueue.worker.lanes import Known, Lanes, marks
from django_jobqueue.worker.loop import FOREVER, Loop
from django_jobqueue.worker.policies import Policies

logger = logging.getLogger(__name__)

# Rests after looks that found nothing: the first ones are short, because a job may have
# been committed just before this worker said that it listens.
QUIET_RESTS: Final = (0.05, 0.05, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
LOOK_EVERY: Final = 1.0  # seconds, while busy
SHARE_OF_SWEEPS: Final = 20  # a sweep that takes long is made this much rarer
BUSY_AFTER: Final = 1.0  # seconds of full claims after which no notification is wanted
STALE: Final = 0.5  # seconds that a job may wait in the buffer before it is given back
NUDGE: Final = 0.02  # seconds between looks whether the buffer moves
POSITION: Final = attrgetter("run_after", "id")  # in a lane
LIMIT_RETRY: Final = 1.0  # seconds until a type at its limit is asked for again
RELOAD_EVERY: Final = 30.0  # seconds between looks at overrides, besides notifications
POLL_UNHEARD: Final = 1.0  # seconds; the longest rest without LISTEN


class Dispatcher(Loop):
    """Keeps the executors' slots busy: claims in batches, in strict priority order.

    Only lanes of job types that this process can run are asked for. A job that waits in
    the buffer of an executor is claimed already; that happens only ahead of slots that
    do short jobs.
    """

    name = "dispatcher"

    def __init__(
        self,
        worker: int,
        connection: OwnConnection,
        *,
        policies: Policies,
        queues: Sequence[str] | None,
        make: Callable[[ClaimedJob, float], Attempt],
        held: dict[UUID, Attempt],
        heard: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__()
        self.executors: list[Executor] = []
        self.lanes = Lanes()
        self.is_idle = False  # the last look found nothing that could be claimed now
        self._worker = worker
        self._connection = connection
        self._policies = policies
        self._queues = queues
        self._make = make
        self._held = held  # all jobs that this process has
        self._heard = heard  # whether notifications arrive
        self._open = True
        self._hungry = True  # there may be more to claim
        self._news = True
        self._sweep = True
        self._reload = True
        self._in_doubt = False  # the answer of a claim was lost
        self._is_new = True
        self._listening = False
        self._quiet = 0
        self._due_in: float | None = None
        self._next_look = 0.0
        self._next_reload = 0.0
        self._full_since: float | None = None
        self._limited_until: dict[str, float] = {}

    # What others tell it, from any thread.

    def jobs_arrived(self, *, behind: bool = False) -> None:
        """There are new jobs; ``behind``: perhaps where a claim has passed already."""
        self._news = True
        if behind:
            self._sweep = True
        self.wake()

    def policies_changed(self) -> None:
        """Operators overrode, paused or resumed something."""
        self._reload = True
        self.jobs_arrived(behind=True)

    def slot_free(self) -> None:
        """An executor could do with more."""
        if self._hungry:
            self.wake()

    def ended(self, attempts: Sequence[Attempt]) -> None:
        """These are finished: types at their limit may have room, retries may be due."""
        limited = self._limited_until
        if limited:
            for attempt in attempts:
                if limited.pop(attempt.job.job_type, None) is not None:
                    self._hungry = True
                    self.wake()

    def close_doors(self) -> None:
        """Claim nothing more."""
        self._open = False
        self.wake()

    def open_doors(self) -> None:
        """Claim again."""
        self._open = True
        self.jobs_arrived(behind=True)

    # The work.

    def tick(self) -> float:
        """Claim what there are slots for."""
        self._set_straight()
        if not self._open:
            self._say_listening(False)
            return FOREVER
        if self._reload or time.monotonic() >= self._next_reload:
            self._load_policies()
        if self._is_new:
            # The first claim would plan the statement (5 ms) while a job waits for it.
            self._is_new = False
            claim.claim(self._connection, self._worker, [], 0)
        taken = 0
        if self._hungry or self._news:
            self._news = False
            taken = self._claim()
        if not taken and self._has_room() or time.monotonic() >= self._next_look:
            if self._look():
                taken += self._claim()
        return self._rest(taken)

    def close(self) -> None:
        """Give back what was not started; let the connection go."""
        try:
            self._set_straight()
        except StoreUnavailable:
            logger.warning("What was claimed and not started could not be given back")
        self._connection.close()

    def _set_straight(self) -> None:
        """Give back what this process has no use for."""
        if self._in_doubt:
            lost = release.recover(self._connection, self._worker, list(self._held))
            self._in_doubt = False
            if lost:
                logger.info("%d jobs of a claim without an answer were given back", lost)
        now = time.monotonic()
        for executor in self.executors:
            if not self._open or executor.oldest_wait(now) > STALE:
                self._give_back(executor.take_back())
            executor.nudge()

    def _give_back(self, attempts: list[Attempt]) -> None:
        if attempts:
            jobs = [attempt.job for attempt in attempts]
            ids, fences = [job.id for job in jobs], [job.fence for job in jobs]
            self._in_doubt = True  # if this fails, they are found by their absence
            for id in ids:
                self._held.pop(id, None)
            release.release(self._connection, self._worker, ids, fences)
            self._in_doubt = False

    def _load_policies(self) -> None:
        self._reload = False
        self._policies.update(job_types.overrides(self._connection))
        self._limited_until.clear()
        self._next_reload = time.monotonic() + RELOAD_EVERY

    def _has_room(self) -> bool:
        return any(executor.free for executor in self.executors)

    def _claim(self) -> int:
        """Claim for each executor; return how many jobs there were."""
        began, sweep = time.monotonic(), self._sweep
        self._sweep = False
        taken, filled = 0, False
        for executor in self.executors:
            ordered = self.lanes.in_turn(
                lambda lane, e=executor: self._wants(lane, e)  # type: ignore[misc]
            )
            got, full = self._claim_for(executor, ordered, sweep=sweep)
            taken += got
            filled = filled or full
        self._hungry = filled
        self._full_since = (self._full_since or began) if filled else None
        return taken

    def _wants(self, lane: Lane, executor: Executor) -> bool:
        if self._queues is not None and lane.queue not in self._queues:
            return False
        return self._policies.runs(lane.job_type, is_async=executor.is_async)

    def _claim_for(
        self, executor: Executor, ordered: list[Known], *, sweep: bool
    ) -> tuple[int, bool]:
        """Claim for the free slots, then ahead of them. Returns the number of jobs, and
        whether there may be more."""
        taken, stop = 0, None
        room = executor.free
        if not room:
            if not executor.low or executor.buffered > executor.low:
                return 0, True
            room = 1  # a probe, so that a more urgent lane is not overlooked
        while ordered and room > 0:
            careful = self._policies.is_careful(ordered[0].lane.job_type)
            part = self._alike(ordered, careful)
            if careful:
                got, stop = self._claim_careful(executor, part, sweep)
            else:
                got, stop = self._claim_open(executor, part, room, sweep)
            taken, room = taken + got, room - got
            if stop is not None:
                break
            ordered = ordered[len(part) :]
        executor.low = 0
        if stop is None:
            return taken, False
        if not self._policies.is_careful(stop.lane.job_type):
            taken += self._claim_ahead(executor, ordered, stop, sweep)
        return taken, True

    def _alike(self, ordered: list[Known], careful: bool) -> list[Known]:
        """The first lanes that one statement can serve: a careful one goes alone."""
        if careful:
            return ordered[:1]
        part: list[Known] = []
        for known in ordered:
            if self._policies.is_careful(known.lane.job_type):
                break
            part.append(known)
        return part

    def _claim_open(
        self, executor: Executor, part: list[Known], room: int, sweep: bool
    ) -> tuple[int, Known | None]:
        jobs = self._ask(
            lambda: claim.claim(
                self._connection, self._worker, marks(part, sweep=sweep), room
            )
        )
        return self._took(executor, part, jobs, full=len(jobs) >= room, sweep=sweep)

    def _claim_careful(
        self, executor: Executor, part: list[Known], sweep: bool
    ) -> tuple[int, Known | None]:
        """Claim from one lane whose jobs must find a free slot."""
        known, free = part[0], executor.free
        job_type = known.lane.job_type
        if self._limited_until.get(job_type, 0.0) > time.monotonic():
            return 0, None
        if not free:
            return 0, known if known.due else None  # nothing ahead of it, until it fits
        lane = marks(part, sweep=sweep)
        limited = self._policies.is_limited(job_type)
        verb = claim.claim_limited if limited else claim.claim
        jobs = self._ask(lambda: verb(self._connection, self._worker, lane, free))
        if limited and len(jobs) < free:
            self._limited_until[job_type] = time.monotonic() + LIMIT_RETRY
        return self._took(executor, part, jobs, full=len(jobs) >= free, sweep=sweep)

    def _claim_ahead(
        self, executor: Executor, ordered: list[Known], stop: Known, sweep: bool
    ) -> int:
        """Claim more from where the claim stopped, as long as the jobs are short."""
        pace = executor.pace
        ahead = pace.ahead(stop.lane.job_type, executor.slots)
        executor.low = ahead // 2
        wanted = ahead - executor.buffered
        if wanted <= 0:
            return 0
        part: list[Known] = []
        for known in ordered[ordered.index(stop) :]:
            job_type = known.lane.job_type
            if self._policies.is_careful(job_type) or not pace.is_short(job_type):
                break
            part.append(known)
        return self._claim_open(executor, part, wanted, sweep)[0]

    def _ask(self, verb: Callable[[], list[ClaimedJob]]) -> list[ClaimedJob]:
        """Claim; if the answer is lost, remember that there may be jobs of ours."""
        try:
            return verb()
        except StoreUnavailable:
            self._in_doubt = True
            raise

    def _took(
        self,
        executor: Executor,
        part: list[Known],
        jobs: list[ClaimedJob],
        *,
        full: bool,
        sweep: bool,
    ) -> tuple[int, Known | None]:
        now = time.monotonic()
        jobs.sort(key=POSITION)
        if len(part) > 1:
            order = {known.lane: index for index, known in enumerate(part)}
            jobs.sort(key=lambda job: order[job.lane])
        attempts = [self._make(job, now) for job in jobs]
        self._held.update((attempt.job.id, attempt) for attempt in attempts)
        executor.put(attempts)
        return len(jobs), self.lanes.claimed(part, jobs, full=full, swept=sweep)

    def _look(self) -> bool:
        """Look which lanes have jobs now; True if there is something to claim."""
        began = time.monotonic()
        look = lanes.look(self._connection, list(self.lanes))
        self.lanes.add(look.new)
        now_due = [lane for lane, seconds in look.due_in.items() if seconds <= 0]
        self.lanes.due([*now_due, *look.new])
        later = [seconds for seconds in look.due_in.values() if seconds > 0]
        self._due_in = min(later, default=None)
        took = time.monotonic() - began
        self._next_look = time.monotonic() + max(LOOK_EVERY, took * SHARE_OF_SWEEPS)
        self._sweep = True
        return any(self._runnable(lane) for lane in [*now_due, *look.new])

    def _runnable(self, lane: Lane) -> bool:
        return any(self._wants(lane, executor) for executor in self.executors)

    def _rest(self, taken: int) -> float:
        if self._hungry:
            self._quiet, self.is_idle = 0, False
            self._say_busy()
            if any(executor.buffered for executor in self.executors):
                return NUDGE
            return FOREVER if not self._has_room() else self._until_look()
        if taken:
            self._quiet = 0
        self.is_idle = not taken
        if self.is_idle and self._heard() and not self._listening:
            self._say_listening(True)
            return 0.0  # look once more: nobody notified us until now
        longest = conf.poll_interval
        if not self._heard():
            longest = min(longest, POLL_UNHEARD)
        rest = longest
        if self._quiet < len(QUIET_RESTS):
            rest = min(rest, QUIET_RESTS[self._quiet])
        self._quiet += 1
        if self._due_in is not None:
            rest = min(rest, max(0.001, self._due_in))
        if self._limited_until:
            rest = min(rest, LIMIT_RETRY)
        return rest

    def _until_look(self) -> float:
        return max(0.0, self._next_look - time.monotonic())

    def _say_busy(self) -> None:
        since = self._full_since
        if since is not None and time.monotonic() - since > BUSY_AFTER:
            self._say_listening(False)

    def _say_listening(self, listening: bool) -> None:
        if listening != self._listening:
            workers.set_listening(self._connection, self._worker, listening)
            self._listening = listening
