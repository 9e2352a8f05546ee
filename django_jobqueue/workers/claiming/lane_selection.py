"""Selects the lanes to claim from, their order, and the job types that rest after an
error."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.per_key import limit_name_of
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes.lane_progress import SharedLaneProgress
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming.known_lanes import MANY, KnownLane, Lanes
from django_jobqueue.workers.claiming.lane_order import order_of
from django_jobqueue.workers.claiming.next_starts import NextStarts
from django_jobqueue.workers.claiming.policies import Policies
from django_jobqueue.workers.executors.base import Executor

logger = logging.getLogger("django_jobqueue.worker")

FIRST_WAIT: Final = 1.0  # seconds; doubled with each further failure
LONGEST_WAIT: Final = 8.0


class RestingTypes:
    """Tried again, more and more seldom, until a claim of one succeeds."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}  # time.monotonic()
        self._waits: dict[str, float] = {}  # the last one, in seconds

    def __contains__(self, job_type: object) -> bool:
        until = self._until.get(job_type) if self._until else None  # type: ignore[call-overload]
        return until is not None and until > time.monotonic()

    def add(self, job_type: str, why: str) -> None:
        """Nothing could be claimed of it, perhaps again."""
        before = self._waits.get(job_type)
        if before is None:
            logger.warning(
                "No jobs of %s can be claimed for now, will retry: %s", job_type, why
            )
        wait = FIRST_WAIT if before is None else min(2 * before, LONGEST_WAIT)
        self._waits[job_type] = wait
        self._until[job_type] = time.monotonic() + wait

    def discard(self, lanes: Iterable[KnownLane]) -> None:
        """Claims from these lanes succeeded."""
        if self._waits:
            for job_type in {known.lane.job_type for known in lanes}:
                if self._waits.pop(job_type, None) is not None:
                    del self._until[job_type]
                    logger.info("Jobs of %s can be claimed again", job_type)

    def end_waits(self) -> None:
        """Each may be tried now: perhaps what stood in the way is gone."""
        self._until = dict.fromkeys(self._until, 0.0)

    @property
    def seconds(self) -> float:
        """Until the first may be tried again; infinite if none rests."""
        if not self._until:
            return math.inf
        now = time.monotonic()
        return min((u - now for u in self._until.values() if u > now), default=math.inf)


class LaneSelection:
    """The lanes of the job types that this process can run, in the order of their turns
    and priorities.

    A lane is exclusive if a claim counts as a start (at most once), or against a limit
    or a rate of its job type. Each exclusive lane is asked with a statement of its own;
    the others are batchable, and asked together.
    """

    def __init__(
        self,
        policies: Policies,
        queues: Sequence[str] | None,
        lane_progress: SharedLaneProgress | None = None,
    ) -> None:
        order = order_of(conf.queue_weights, conf.ageing)
        self.lanes = Lanes(order, lane_progress)
        # Jobs of a claim; None: any number.
        self.most_at_once = None if order is None else order.most_at_once
        # Job types, and lanes of types with a limit by key, that may be at their limit.
        self.limited_until: dict[str | Lane, float] = {}
        # A claim within a limit took some jobs; no scan has said whether all.
        self.may_have_left_jobs = False
        self.next_starts = NextStarts()
        self.resting = RestingTypes()
        self._policies = policies
        self.queues = queues  # None is every one

    def runs(self, lane: Lane, executor: Executor) -> bool:
        """True if jobs of this lane can be claimed, and run there."""
        if self.queues is not None and lane.queue not in self.queues:
            return False
        if lane.job_type in self.resting:
            return False
        return self._policies.runs(lane.job_type, is_async=executor.is_async)

    def is_exclusive(self, known: KnownLane) -> bool:
        """True if this lane is asked by itself."""
        return self._policies.is_exclusive(known.lane.job_type)

    def limited(self, lane: Lane) -> str | Lane:
        """The holder of this lane's limit: its job type, or the lane alone,
        since another one may have other keys."""
        keyed = self._policies.limits(lane.job_type).keys is not None
        return lane if keyed else lane.job_type

    def is_at_its_limit(self, lane: Lane) -> bool:
        """True if there was no room for jobs of this lane a moment ago, or none may
        start yet."""
        if self.next_starts.is_waiting(lane):
            return True
        if not self.limited_until:
            return False
        return self.limited_until.get(self.limited(lane), 0.0) > time.monotonic()

    def may_be_asked(self, limited: str | Lane) -> None:
        """It may be at its limit, or not."""
        if limited in self.limited_until:
            self.limited_until[limited] = 0.0

    def forget_limits_of_no_jobs(self) -> None:
        """After a scan: a claim that got nothing, where there was nothing, says nothing
        of a limit. The next job is not to wait for it."""
        if self.limited_until:
            due = {self.limited(known.lane) for known in self.lanes if known.due}
            for limited in list(self.limited_until):
                if limited not in due:
                    self.limited_until.pop(limited, None)

    def record_claimed(self, limited: str | Lane, *, is_limited: bool) -> None:
        """A claim got some jobs, perhaps all that there were; if not, an end says when
        to ask. Where nothing was known of them, a scan says whether there are more."""
        if is_limited and limited not in self.limited_until:
            self.may_have_left_jobs = True
        self.may_be_asked(limited)

    def wait_for_start(
        self, rated: str | Lane, seconds: float, *, got_none: bool
    ) -> None:
        """Its rate permits the next start so many seconds from now."""
        self.next_starts.wait(rated, seconds, got_none=got_none)
        self.may_be_asked(rated)

    def wait_for_retry(self, lane: Lane, seconds: float) -> None:
        """A job is due so many seconds from now that goes before others of its key."""
        self.next_starts.wait_for_retry(lane, seconds)
        self.may_be_asked(lane)

    def starts_are_permitted(self) -> bool:
        """True if lanes that waited for a rate may be asked now; each of them is
        believed to have jobs."""
        if not self.next_starts.at:
            return False
        permitted = self.next_starts.pop_due()
        if permitted:
            for known in list(self.lanes):
                if known.lane in permitted or known.lane.job_type in permitted:
                    known.due = True
        return bool(permitted)

    @property
    def next_start_in(self) -> float:
        """Seconds until a rate permits a start; infinite if nothing waits for one."""
        return self.next_starts.seconds if self.next_starts.at else math.inf

    @property
    def waits_for_start(self) -> bool:
        """True if there are jobs that wait for nothing but a rate."""
        return bool(self.next_starts.at) and any(
            known.due and self.waits_for_rate(known.lane) for known in self.lanes
        )

    def waits_for_rate(self, lane: Lane) -> bool:
        """True if a rate lets no job of this lane start yet."""
        return bool(self.next_starts.at) and self.next_starts.is_waiting_for_rate(lane)

    @property
    def others_could_claim(self) -> bool:
        """True if a lane that is believed to have jobs waits for no rate: others could
        claim some."""
        return not self.next_starts.at or any(
            known.due and not self.next_starts.is_waiting(known.lane)
            for known in self.lanes
        )

    def policies_changed(self) -> None:
        """Whatever waits may be asked now. What was at its limit still counts as
        limited: this round may have claimed already, and the next one must be soon."""
        for limited in list(self.limited_until):
            self.may_be_asked(limited)
        if self.next_starts.at:
            self.next_starts.ask_all()
        self.resting.end_waits()

    def jobs_arrived(self) -> None:
        """Lanes that are at their limit may have jobs of other keys."""
        for limited in list(self.limited_until):
            if isinstance(limited, Lane):
                self.limited_until[limited] = 0.0
        for known in list(self.lanes) if self.next_starts.at else ():
            self.next_starts.ask(known.lane)

    def finished(self, attempts: Iterable[Attempt]) -> bool:
        """These made room; True if something was at its limit that has room now."""
        before = len(self.limited_until)
        for attempt in attempts:
            self.limited_until.pop(attempt.job.job_type, None)
            if attempt.job.limit_key is not None:
                self._key_is_free(attempt.job.limit_key)
        return len(self.limited_until) < before

    def _key_is_free(self, key: str) -> None:
        """The next claims of the limit's lanes begin at this key."""
        name = limit_name_of(key)
        for known in list(self.lanes):  # another thread learns of lanes
            keys = self._policies.limits(known.lane.job_type).keys
            if keys is not None and keys.name == name:
                known.keys.first, known.keys.taken = key, 0
                self.limited_until.pop(known.lane, None)
                self.next_starts.ask(known.lane)

    def takes_several_statements(self, executors: Sequence[Executor]) -> bool:
        """True if one statement cannot ask all lanes for these executors."""
        if len(self.lanes) < 2:
            return False
        if self.lanes.are_many:
            return bool(executors)
        return sum(map(self._statements, executors)) > 1

    def _statements(self, executor: Executor) -> int:
        lanes = [known for known in self.lanes if self.runs(known.lane, executor)]
        exclusive = [known.lane for known in lanes if self.is_exclusive(known)]
        asked = [lane for lane in exclusive if not self.is_at_its_limit(lane)]
        return len(asked) + (len(exclusive) < len(lanes))

    def in_turn(self, executor: Executor, *, due: bool) -> list[KnownLane]:
        """The lanes to ask for this executor; ``due``: none if none is believed to be
        due, and exclusive ones, or any of many, only if they are."""
        lanes = self.lanes.in_turn(
            lambda lane: self.runs(lane, executor),
            due=due and self.lanes.are_many,
            is_async=executor.is_async,
        )
        if not due:
            return lanes
        if not any(known.due for known in lanes):
            return []
        return [known for known in lanes if known.due or not self.is_exclusive(known)]

    def batchable(self, lanes: Sequence[KnownLane]) -> list[KnownLane]:
        """The first lanes, up to one that must be asked by itself, or to as many as one
        statement asks."""
        batch = takewhile(lambda known: not self.is_exclusive(known), lanes)
        return list(islice(batch, MANY))

    def short_lanes(
        self, lanes: Sequence[KnownLane], executor: Executor
    ) -> list[KnownLane]:
        """The first lanes, up to one whose jobs are not short."""
        is_short = executor.runtimes.is_short
        return list(takewhile(lambda known: is_short(known.lane.job_type), lanes))
