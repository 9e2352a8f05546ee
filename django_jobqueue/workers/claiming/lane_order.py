"""The order in which lanes are asked: priorities, and turns of queues and job types."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeVar

from django_jobqueue.store.queue.lanes import START, Head, Mark
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming.known_lanes import KnownLane, by_priority

TURN: Final = 20  # jobs
MOST_SERVED: Final = 10_000  # lanes of which it is known when they were served


L = TypeVar("L", KnownLane, "DueLane")


class QueueTurns:
    """Turns of queues by their weights (stride scheduling).

    Each queue has a pass, which grows by 1 / weight with each job; the least one is
    next. A queue that had no jobs goes on from where the others are, so that it saves
    nothing up: where the last one that gave jobs stood when the lanes were sorted. No
    queue that could have given some instead is behind that.
    """

    def __init__(self, weights: Mapping[str, int]) -> None:
        self._weights = weights
        self._passes: dict[str, float] = {}
        self._sorted: dict[str, float] = {}  # the passes as the lanes were sorted by
        self._now = 0.0

    def begin(self, queues: Collection[str]) -> Mapping[str, float]:
        """The passes of these queues, by which they are sorted now; least first."""
        get, now = self._passes.get, self._now
        self._sorted = {queue: max(get(queue, now), now) for queue in queues}
        return self._sorted

    def served(self, queue: str, jobs: int) -> None:
        """It gave so many jobs."""
        begun = self._sorted.get(queue, self._now)
        self._now = max(self._now, begun)
        before = max(self._passes.get(queue, begun), begun)
        self._passes[queue] = before + jobs / self._weights.get(queue, 1)


class LaneOrder:
    """Sorts lanes: by the turns of their queues if these have weights; then by
    priority, greatest first, which grows with the time that jobs have waited if there
    is ageing; then the lane that was served longest ago, so that job types take turns.
    """

    def __init__(
        self, weights: Mapping[str, int] | None = None, ageing: float | None = None
    ) -> None:
        # Threads and async slots have other lanes, so each has turns of its own.
        self._turns = (
            {False: QueueTurns(weights), True: QueueTurns(weights)} if weights else None
        )
        self._ageing = ageing

    def sort(self, lanes: list[L], *, is_async: bool = False) -> None:
        """Put these lanes in their order."""
        turns, ageing = self._turns, self._ageing
        if turns is None and ageing is None:
            lanes.sort(key=by_priority)
            return
        now = datetime.now(UTC)
        passes: Mapping[str, float] = {}
        if turns is not None:
            passes = turns[is_async].begin({known.lane.queue for known in lanes})
        lanes.sort(
            key=lambda known: (
                passes.get(known.lane.queue, 0.0),
                -known.lane.priority - _levels(known, ageing, now),
                known.served,
            )
        )

    @property
    def most_at_once(self) -> int | None:
        """How many jobs a claim may take, so that turns are short; None: any number."""
        return None if self._turns is None else TURN

    def served(self, queue: str, jobs: int, *, is_async: bool = False) -> None:
        """This queue gave so many jobs."""
        if self._turns is not None:
            self._turns[is_async].served(queue, jobs)


def order_of(
    weights: Mapping[str, int] | None, ageing: float | None
) -> LaneOrder | None:
    """The order of these settings; None without them: then priorities decide."""
    return LaneOrder(weights, ageing) if weights or ageing is not None else None


class DueLane(NamedTuple):
    """A lane with jobs to run now; or with those of its jobs that must run alone."""

    lane: Lane
    first: Mark
    served: int
    is_quarantined: bool
    due: bool = True


class LaneTurns:
    """The order of lanes for those who scan them for each claim, in any thread.

    Jobs that must run alone have turns of their own: so neither they nor the others of
    their lane wait until there is nothing else. Lanes that were never served go by
    their first jobs.
    """

    def __init__(
        self, weights: Mapping[str, int] | None = None, ageing: float | None = None
    ) -> None:
        self._order = LaneOrder(weights, ageing)
        self.most_at_once = self._order.most_at_once
        self._lock = threading.Lock()
        self._served: dict[tuple[Lane, bool], int] = {}  # the last one is the latest
        self._count = 0

    def in_turn(
        self, due: Iterable[Head], quarantined: Iterable[Head]
    ) -> list[DueLane]:
        """These lanes in the order of a claim."""
        get = self._served.get
        lanes = [
            DueLane(head.lane, head.mark, get((head.lane, is_alone), 0), is_alone)
            for heads, is_alone in ((due, False), (quarantined, True))
            for head in heads
        ]
        lanes.sort(key=lambda one: one.first)
        with self._lock:
            self._order.sort(lanes)
        return lanes

    def served(self, one: DueLane, jobs: int) -> None:
        """It gave so many jobs."""
        key = one.lane, one.is_quarantined
        with self._lock:
            self._count += 1
            self._served.pop(key, None)
            self._served[key] = self._count
            if len(self._served) > MOST_SERVED:
                del self._served[next(iter(self._served))]
            self._order.served(one.lane.queue, jobs)


def _levels(known: KnownLane | DueLane, ageing: float | None, now: datetime) -> int:
    """How many priorities more urgent the lane is, since its first job has waited."""
    if ageing is None or not known.due or known.first == START:
        return 0
    return int(max(0.0, (now - known.first[0]).total_seconds()) // ageing)
