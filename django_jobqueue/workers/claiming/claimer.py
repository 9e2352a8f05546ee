"""Claims jobs for one worker: selects lanes, their order, and the number of jobs."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes.lane_progress import SharedLaneProgress
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import in_a_line, is_contended, is_refusal
from django_jobqueue.store.partial_batches import BRIEF, apply_in_parts
from django_jobqueue.store.queue import claim, release
from django_jobqueue.store.queue.claim_quarantined import claim_quarantined
from django_jobqueue.store.queue.lane_turn import Turn, fill, turn_of
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.workers.claiming.known_lanes import KnownLane
from django_jobqueue.workers.claiming.lane_scanner import TimeShare
from django_jobqueue.workers.claiming.lane_selection import LaneSelection
from django_jobqueue.workers.claiming.next_step import LIMIT_RETRY
from django_jobqueue.workers.claiming.policies import Policies
from django_jobqueue.workers.executors.base import Executor

logger = logging.getLogger("django_jobqueue.worker")

POSITION: Final = attrgetter("due", "id.int")  # in a lane
WALKS_SHARE: Final = 0.05  # of the worker's time
RECHECK_FIRST: Final = 0.5  # seconds after an answer was lost; then twice that
RECHECK_LONGEST: Final = 300.0


@dataclass(slots=True)
class ClaimCounts:
    """The claims since this process started."""

    with_jobs: int = 0  # statements
    without: int = 0
    jobs: int = 0
    seconds: float = 0.0

    def add(self, jobs: int, seconds: float) -> None:
        """One statement claimed so many jobs in this time."""
        if jobs:
            self.with_jobs += 1
        else:
            self.without += 1
        self.jobs += jobs
        self.seconds += seconds


class UnconfirmedClaims:
    """When to check for jobs that are claimed in this worker's name, but whose claim
    was never confirmed.

    Their claim may commit long after its answer was lost: it waits for a lock, or for a
    standby. So the first check is followed by others, at growing intervals, without
    limit.
    """

    def __init__(self) -> None:
        self._next_at = math.inf  # time.monotonic()
        self._wait = 0.0

    def arise(self) -> None:
        """An answer was lost."""
        self._wait, self._next_at = RECHECK_FIRST, 0.0

    def persists(self) -> None:
        """One of these jobs is locked by somebody: check again soon."""
        self._wait = RECHECK_FIRST
        self.postpone()

    def postpone(self) -> None:
        """Check again later."""
        self._next_at = time.monotonic() + self._wait
        self._wait = min(2 * self._wait, RECHECK_LONGEST)

    @property
    def seconds_until_due(self) -> float:
        """Seconds until the next check; infinite if every claim was confirmed."""
        return max(0.0, self._next_at - time.monotonic())


class Claimer:
    """Fills executors with claimed jobs, in strict priority order.

    Only lanes of job types that this process can run are asked. Ahead of free slots
    only short jobs are claimed. Those of exclusive lanes, whose claim counts as a start
    or against a limit, wait until a slot is free.
    """

    def __init__(
        self,
        worker: int,
        connection: OwnConnection,
        *,
        policies: Policies,
        queues: Sequence[str] | None,
        make: Callable[[ClaimedJob, float], Attempt],
        held: set[Attempt],
        activity: Callable[[], None] = lambda: None,
        ensure_leased: Callable[[], None] = lambda: None,
        lane_progress: SharedLaneProgress | None = None,
    ) -> None:
        self.lane_selection = LaneSelection(policies, queues, lane_progress)
        self.unconfirmed = UnconfirmedClaims()
        self.counts = ClaimCounts()
        self._worker = worker
        self._connection = connection
        self._policies = policies
        self._queues = queues
        self._make = make
        self._held = held  # all jobs that this process has
        self._activity = activity  # called when there are more
        self._ensure_leased = ensure_leased  # before each claim; LeaseOverdue ends it
        self._walks = TimeShare(WALKS_SHARE)  # past many keys without room

    @property
    def holds_any(self) -> bool:
        """True if this process has a job that is not finished."""
        return bool(self._held)

    def warm_up(self) -> None:
        """Have the statement planned (5 ms) before a job waits for it."""
        claim.claim(self._connection, self._worker, [], 0)

    def fill(self, executor: Executor, *, due: bool = False) -> tuple[int, bool]:
        """Claim for the free slots, then ahead of them; ``due``: nothing if no lane is
        believed to be due, and exclusive lanes only if they are.

        Returns the number of jobs, and whether there may be more than there was room
        for.
        """
        if not executor.wants_more:
            return 0, True
        executor.low = taken = 0
        ordered = self.lane_selection.in_turn(executor, due=due)
        first = self.lane_selection.batchable(ordered)
        if first and first == self.lane_selection.short_lanes(first, executor):
            taken, stop = self._prefetch(executor, first)
            if stop is not None:
                return taken, True
            ordered = ordered[len(first) :]
        # Without a free slot a probe, so that a more urgent lane is not overlooked.
        got, stop = self._fill_slots(executor, ordered, executor.free or 1)
        taken += got
        if stop is None:
            return taken, False
        others = self.lane_selection.batchable(ordered[ordered.index(stop) :])
        short = self.lane_selection.short_lanes(others, executor)
        if short:
            taken += self._prefetch(executor, short)[0]
        return taken, True

    def take_quarantined(self) -> Attempt | None:
        """Claim one job that must run in a process of its own."""
        names = self._policies.names
        with self._connection.patience(BRIEF):
            made = self._claim(
                lambda: claim_quarantined(
                    self._connection, self._worker, names, self._queues
                )
            )
        return made[0] if made else None

    def give_back(self, attempts: Iterable[Attempt]) -> None:
        """Release jobs that were claimed and not started; those that somebody has
        locked later. Raises StoreUnavailable."""
        given = list(attempts)
        self._held.difference_update(given)
        if not given:
            return
        jobs = [attempt.job for attempt in given]
        ids, fences = [job.id for job in jobs], [job.fence for job in jobs]
        try:
            back = release.release(self._connection, self._worker, ids, fences)
        except BaseException as error:
            self.unconfirmed.arise()
            if not is_contended(error):
                raise
        else:
            if back < len(given):
                self.unconfirmed.arise()

    def release_unconfirmed(self) -> None:
        """Release jobs that are claimed in this worker's name, but that it does not
        hold."""
        if self.unconfirmed.seconds_until_due > 0:
            return
        ours = [attempt.job.id for attempt in list(self._held)]
        try:
            back = release.recover(self._connection, self._worker, ours)
            left = release.count_lost(self._connection, self._worker, ours)
        except StoreUnavailable as error:
            if not is_contended(error):
                raise
            self.unconfirmed.persists()
            return
        if left:
            self.unconfirmed.persists()
        else:
            self.unconfirmed.postpone()
        if back:
            logger.info("%d jobs whose claim was never confirmed were released", back)

    def _fill_slots(
        self, executor: Executor, ordered: list[KnownLane], room: int
    ) -> tuple[int, KnownLane | None]:
        """Claim for free slots; returns how many, and the lane where room ran out."""
        taken = 0
        while ordered and room > 0:
            if self.lane_selection.is_exclusive(ordered[0]):
                part = ordered[:1]
                got, stop = self._take_exclusive(executor, part[0])
            else:
                part = self.lane_selection.batchable(ordered)
                got, stop = self._take_batch(executor, part, room)
            taken, room = taken + got, room - got
            if stop is not None:
                return taken, stop
            ordered = ordered[len(part) :]
        return taken, None

    def _prefetch(
        self, executor: Executor, short: list[KnownLane]
    ) -> tuple[int, KnownLane | None]:
        """Claim for free slots and ahead of them from these lanes, whose jobs are
        short; returns as for slots."""
        due = [known for known in short if known.due] or short
        prefetched = min(executor.prefetch(known.lane.job_type) for known in due)
        executor.low = prefetched // 2
        wanted = max(prefetched - executor.backlog, executor.free)
        if wanted <= 0:
            return 0, due[0]
        return self._take_batch(executor, short, wanted)

    def _take_batch(
        self, executor: Executor, part: list[KnownLane], room: int
    ) -> tuple[int, KnownLane | None]:
        most = self.lane_selection.most_at_once
        if most is not None:
            room = min(room, most)
        attempts = self._claim_lanes(claim.claim, part, room)
        return self._start(executor, part, attempts, full=len(attempts) >= room)

    def _take_exclusive(
        self, executor: Executor, known: KnownLane
    ) -> tuple[int, KnownLane | None]:
        """Claim from a lane whose jobs must find a free slot."""
        selection, free = self.lane_selection, executor.free
        if selection.is_at_its_limit(known.lane):
            return 0, None
        if not free:
            return 0, known if known.due else None  # nothing ahead of it, until it fits
        limits = self._policies.limits(known.lane.job_type)
        limited, is_keyed = selection.limited(known.lane), limits.keys is not None
        if known.due and (limits.is_limited or is_keyed):
            # Before the claim: what ends meanwhile ends this.
            selection.limited_until[limited] = time.monotonic() + LIMIT_RETRY
        turn = turn_of(known.lane, limits, known.keys, may_go_on=self._walks.begin())
        attempts: list[Attempt] = []
        try:
            fill(
                attempts,
                free,
                turn,
                lambda wanted: self._claim_lanes(turn.claim, [known], wanted),
            )
        except BaseException:
            self._start(executor, [known], attempts, full=False, in_order=False)
            raise
        if full := len(attempts) >= free:
            selection.limited_until.pop(limited, None)
            known.keys.was_full()
        elif attempts:
            selection.record_claimed(limited, is_limited=limits.are_counted)
        self._wait_for(known.lane, turn, full=full, got_none=not attempts)
        return self._start(
            executor, [known], attempts, full=full, in_order=not is_keyed
        )

    def _wait_for(self, lane: Lane, turn: Turn, *, full: bool, got_none: bool) -> None:
        """Ask again when more jobs of the lane may start."""
        selection = self.lane_selection
        if seconds := turn.seconds_of_type:
            selection.wait_for_start(lane.job_type, seconds, got_none=got_none)
        if not full and (seconds := turn.seconds_of_key):
            selection.wait_for_start(lane, seconds, got_none=got_none)
        if not full and (seconds := turn.seconds_of_retry):
            selection.wait_for_retry(lane, seconds)
        if turn.is_cut_off:
            selection.wait_for_retry(lane, self._walks.seconds_until_free)

    def _claim_lanes(
        self,
        statement: Callable[..., list[ClaimedJob]],
        part: list[KnownLane],
        room: int,
    ) -> list[Attempt]:
        """Claim from these lanes. A job type that somebody has locked, or whose claim
        the database refuses, rests, and the others are asked without it."""
        attempts: list[Attempt] = []

        def claim_part(part: Sequence[KnownLane]) -> None:
            wanted = room - len(attempts)
            lanes = self.lane_selection.lanes.starts(part)
            if wanted > 0:
                attempts.extend(
                    self._claim(
                        lambda: statement(self._connection, self._worker, lanes, wanted)
                    )
                )
                self.lane_selection.resting.discard(part)

        for left in apply_in_parts(self._connection, part, claim_part, brief=True):
            for job_type in {known.lane.job_type for known in left.items}:
                self.lane_selection.resting.add(job_type, in_a_line(left.error))
        return attempts

    def _claim(self, statement: Callable[[], list[ClaimedJob]]) -> list[Attempt]:
        """Claim, and hold what was claimed; whatever goes wrong on the way, there may
        be jobs of ours that are not here, unless the server refused the claim."""
        self._ensure_leased()
        claimed = time.monotonic()
        try:
            jobs = statement()
            self.counts.add(len(jobs), time.monotonic() - claimed)
            jobs.sort(key=POSITION)
            attempts = [self._make(job, claimed) for job in jobs]
            self._held.update(attempts)
        except BaseException as error:
            if not is_refusal(error):
                self.unconfirmed.arise()
            raise
        if attempts:
            self._activity()
        return attempts

    def _start(
        self,
        executor: Executor,
        part: list[KnownLane],
        attempts: list[Attempt],
        *,
        full: bool,
        in_order: bool = True,
    ) -> tuple[int, KnownLane | None]:
        """Hand claimed jobs to the executor; returns as for slots. ``full``: there may
        be more."""
        if len(part) > 1:  # in a lane they are in order already
            order = {known.lane: index for index, known in enumerate(part)}
            attempts.sort(key=lambda attempt: order[attempt.job.lane])
        jobs = [attempt.job for attempt in attempts]
        selection = self.lane_selection
        # What a rate holds back is there still.
        held_back = [k for k in part if k.due and selection.waits_for_rate(k.lane)]
        stop = selection.lanes.claimed(
            part, jobs, full=full, in_order=in_order, is_async=executor.is_async
        )
        for known in held_back if not attempts else ():
            known.due = True
        executor.claimed(attempts)  # last: then threads have the interpreter, for ms
        return len(jobs), stop
