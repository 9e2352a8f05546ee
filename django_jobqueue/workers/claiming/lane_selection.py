"""Which lanes a worker asks for jobs, and how."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import takewhile

from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming.lanes import KnownLane, Lanes
from django_jobqueue.workers.claiming.policies import Policies
from django_jobqueue.workers.claiming.resting_types import RestingTypes
from django_jobqueue.workers.executors.base import Executor


class LaneSelection:
    """The lanes of the job types that this process can run, in strict priority order.

    Careful ones, whose claim counts as a start or against a limit, are asked one by
    one, each with a statement of its own; the others together.
    """

    def __init__(self, policies: Policies, queues: Sequence[str] | None) -> None:
        self.lanes = Lanes()
        self.limited_until: dict[str, float] = {}  # types that may be at their limit
        self.resting = RestingTypes()
        self._policies = policies
        self._queues = queues

    def runs(self, lane: Lane, executor: Executor) -> bool:
        """Whether jobs of this lane can be claimed, and run there."""
        if self._queues is not None and lane.queue not in self._queues:
            return False
        if lane.job_type in self.resting:
            return False
        return self._policies.runs(lane.job_type, is_async=executor.is_async)

    def is_exclusive(self, known: KnownLane) -> bool:
        """Whether this lane is asked by itself."""
        return self._policies.is_exclusive(known.lane.job_type)

    def is_at_its_limit(self, job_type: str) -> bool:
        """Whether there was no room for this type a moment ago."""
        return self.limited_until.get(job_type, 0.0) > time.monotonic()

    def may_be_asked(self, job_type: str) -> None:
        """It may be at its limit, or not."""
        if job_type in self.limited_until:
            self.limited_until[job_type] = 0.0

    def statements(self, executor: Executor) -> int:
        """How many it takes to ask all lanes for this executor."""
        lanes = [known for known in self.lanes if self.runs(known.lane, executor)]
        exclusive = [known.lane.job_type for known in lanes if self.is_exclusive(known)]
        asked = [name for name in exclusive if not self.is_at_its_limit(name)]
        return len(asked) + (len(exclusive) < len(lanes))

    def in_turn(self, executor: Executor, *, due: bool) -> list[KnownLane]:
        """The lanes to ask for this executor; ``due``: none if none is believed to be
        due, and careful ones only if they are."""
        lanes = self.lanes.in_turn(lambda lane: self.runs(lane, executor))
        if not due:
            return lanes
        if not any(known.due for known in lanes):
            return []
        return [known for known in lanes if known.due or not self.is_exclusive(known)]

    def batchable(self, lanes: Sequence[KnownLane]) -> list[KnownLane]:
        """The first lanes, up to one that must be asked by itself."""
        return list(takewhile(lambda known: not self.is_exclusive(known), lanes))

    def short_lanes(
        self, lanes: Sequence[KnownLane], executor: Executor
    ) -> list[KnownLane]:
        """The first lanes, up to one whose jobs are not short."""
        is_short = executor.runtimes.is_short
        return list(takewhile(lambda known: is_short(known.lane.job_type), lanes))
