"""Claims of remote workers: the statements of any worker, one lane after the other."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from django.db import OperationalError, connections

from django_jobqueue.conf import conf
from django_jobqueue.contrib.http.long_polls import LongPoll
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.remote import remote_workers
from django_jobqueue.contrib.remote.lane_scans import LaneScans
from django_jobqueue.contrib.remote.remote_attempts import attempts_of
from django_jobqueue.contrib.remote.remote_workers import HeldJob, RemoteWorker
from django_jobqueue.contrib.remote.waiting_workers import WaitingWorkers
from django_jobqueue.processes.shared_listener import EVERYTHING, SharedListener
from django_jobqueue.store import session, worker_rows
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.notify import News
from django_jobqueue.store.queue import lanes, limits_in_force
from django_jobqueue.store.queue.claim_quarantined import (
    claim_quarantined,
    quarantined_lanes,
)
from django_jobqueue.store.queue.keyed_turn import KeyTurns
from django_jobqueue.store.queue.lane_turn import fill, turn_of
from django_jobqueue.store.queue.lanes import Head, LaneMark
from django_jobqueue.store.queue.limits_in_force import Limits, Overrides
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.store.session import PINNED
from django_jobqueue.workers.claiming.lane_order import LaneTurns

MayWork = Callable[[str | None, str | None], bool]  # of a job type and a queue

BUSY_LANE: Final = 0.5  # seconds that a claim waits for the lock of a job type
CHECK_UNHEARD: Final = 1.0  # seconds between checks of one that waits and hears nothing
CHECK_HEARD: Final = 5.0  # and while it hears notifications
MOST_LANES: Final = 1_000  # of which it is known where the circle of keys goes on
MOST_WALKS: Final = 10  # of a claim past keys without room; the next goes on there
NO_LIMITS: Final = Overrides(None, None, None, None)

_listener: SharedListener
_waiting: WaitingWorkers
_scans: LaneScans
_key_turns: dict[Lane, KeyTurns] = {}
_turns: LaneTurns | None


def _reset() -> None:
    """In the child of a fork, too: the threads that listen, or hold a lock, do not
    exist there."""
    global _listener, _waiting, _scans, _turns
    _scans, _turns = LaneScans(), None
    _listener = SharedListener("remote workers", News.JOBS, News.BEHIND)
    _waiting = WaitingWorkers()


_reset()
os.register_at_fork(after_in_child=_reset)


def lost() -> Problem:
    """The problem of a worker that there is not, or not any more, for this caller."""
    return Problem(
        "worker_lost",
        "You have no such worker, or its lease has lapsed. Register again; its jobs "
        "are given to others.",
    )


def lane_turns() -> LaneTurns:
    """The turns of lanes in all claims through this process: whichever worker serves
    one, it was served."""
    global _turns
    if _turns is None:
        _turns = LaneTurns(conf.queue_weights, conf.ageing)
    return _turns


def _keys_of(lane: Lane) -> KeyTurns:
    """Where the circle of its keys goes on: where the last claim through this process
    ended, whichever worker's."""
    if lane not in _key_turns and len(_key_turns) >= MOST_LANES:
        _key_turns.clear()
    return _key_turns.setdefault(lane, KeyTurns())


class Claims:
    """The claim of one request of a remote worker."""

    def __init__(
        self, db: DjangoDatabase, worker: RemoteWorker, owner: str, may_work: MayWork
    ) -> None:
        self.due_in: float | None = None  # seconds until the next job is due, if known
        self._db = db
        self._worker = worker
        self._owner = owner
        self._may_work = may_work
        self._queues = None if worker.queues is None else frozenset(worker.queues)
        self._within = lanes.of_queues(worker.queues)

    @property
    def asked(self) -> str:
        """The operators' request to the worker, as of the last look."""
        return self._worker.asked

    def take(self, limit: int) -> list[HeldJob]:
        """Claim up to so many jobs that may be started. Raises Problem."""
        if self._worker.is_to_stop:
            return []
        types = remote_workers.remote_types(self._db, self._worker.job_types)
        heads = _scans.heads(self._db, self._within)
        heads = [head for head in heads if self._serves(head, types)]
        later = [head.due_in for head in heads if head.due_in and not head.is_due]
        self.due_in = min(later, default=None)
        due = [head for head in heads if head.is_due]
        alone = quarantined_lanes(self._db, sorted(types), self._worker.queues)
        alone = [head for head in alone if self._serves(head, types)]
        limits = limits_in_force.overrides(
            self._db, {head.lane.job_type for head in due}
        )
        turns = lane_turns()
        jobs: list[ClaimedJob] = []
        for one in turns.in_turn(due, alone):
            if (room := limit - len(jobs)) <= 0:
                break
            if one.is_quarantined:
                holds_any = bool(jobs) or self._worker.running > 0
                if holds_any and not self._is_next_idle(one.lane):
                    continue
                claimed = [] if holds_any else self._quarantined(one.lane)
            else:
                of_type = Limits.in_force(limits.get(one.lane.job_type, NO_LIMITS))
                room = min(room, turns.most_at_once or room)
                claimed = self._claim(self._of_lane(one.lane, of_type), room)
                if not claimed and of_type.keys is None:  # the turn of keys goes on
                    _scans.had_none(self._within, one.lane)
            if claimed:
                turns.served(one, len(claimed))
                jobs += claimed
            if one.is_quarantined and (claimed or holds_any):
                break  # nothing beside it, nor before it
        return self._startable(jobs)

    def wait(self, limit: int, seconds: float, poll: LongPoll) -> list[HeldJob]:
        """The same, and wait for a job so long, or until the ``poll`` is over. The
        lease is renewed meanwhile. Raises Problem."""
        woken, deadline = poll.woken, time.monotonic() + seconds
        id, group, alias = self._worker.id, self._group(), self._db.alias

        def wake() -> None:
            if _waiting.is_first(group, woken):
                woken.set()

        with _listener.listening(EVERYTHING, wake), _waiting.waiting(group, woken):
            is_listening = False
            while True:
                woken.clear()
                with _waiting.asking(alias):
                    if not is_listening:
                        worker_rows.set_listening(self._db, id, True)
                        is_listening = True
                    is_over = True  # after an error, too
                    try:
                        self._renew()
                        jobs = self.take(limit)
                        left = deadline - time.monotonic()
                        is_over = bool(jobs) or left <= 0 or self._worker.is_to_stop
                        is_over = is_over or poll.is_over
                    finally:
                        if is_over:
                            worker_rows.set_listening(self._db, id, False)
                if jobs:
                    _waiting.got_jobs(group, woken)
                if is_over:
                    return jobs
                woken.wait(min(left, self._pause(group, woken)))

    def _group(self) -> Hashable:
        """Requests that would claim the same jobs."""
        worker = self._worker
        queues = None if worker.queues is None else tuple(sorted(worker.queues))
        is_idle = worker.running == 0  # only then it gets one that must run alone
        return self._owner, tuple(sorted(worker.job_types)), queues, is_idle

    def _pause(self, group: Hashable, woken: threading.Event) -> float:
        """Seconds until it looks again if it is not woken: to renew its lease, and if
        it looks for its group, for jobs that nobody told it of."""
        renewal = self._worker.lease / 3
        if not _waiting.is_first(group, woken):
            return renewal
        longest = CHECK_HEARD if _listener.hears else CHECK_UNHEARD
        due_in = CHECK_HEARD if self.due_in is None else self.due_in
        return min(longest, due_in, renewal)

    def _renew(self) -> None:
        worker = remote_workers.renew(self._db, self._worker.id, self._owner)
        if worker is None:
            raise lost()
        self._worker = worker

    def _serves(self, head: Head, types: dict[str, str]) -> bool:
        lane, queues = head.lane, self._queues
        return (
            head.due_in is not None
            and lane.job_type in types
            and (queues is None or lane.queue in queues)
            and self._may_work(lane.job_type, lane.queue)
        )

    def _of_lane(self, lane: Lane, limits: Limits) -> Callable[[int], list[ClaimedJob]]:
        """The claim of this lane, within the limits of its type."""
        db, id, marks = self._db, self._worker.id, [LaneMark(lane)]
        keys = _keys_of(lane)
        further = iter(range(MOST_WALKS))
        turn = turn_of(
            lane, limits, keys, may_go_on=lambda: next(further, None) is not None
        )

        def claim_some(room: int) -> list[ClaimedJob]:
            jobs: list[ClaimedJob] = []
            fill(jobs, room, turn, lambda left: turn.claim(db, id, marks, left))
            if len(jobs) >= room:
                keys.was_full()
            return jobs

        return claim_some

    def _is_next_idle(self, lane: Lane) -> bool:
        """True if this worker, which has jobs, gets no more until it can do one of this
        lane that must run alone."""
        return remote_workers.next_idle(self._db, lane) == self._worker.id

    def _quarantined(self, lane: Lane) -> list[ClaimedJob]:
        """A job that must run alone, for a worker that holds nothing: or it would wait
        forever for a process that does not know its type."""
        db, id = self._db, self._worker.id

        def claim_one(room: int) -> list[ClaimedJob]:
            if room < self._worker.slots:  # it holds a job by now
                return []
            return claim_quarantined(db, id, [lane.job_type], [lane.queue])

        return self._claim(claim_one, self._worker.slots)

    def _claim(
        self, claim_some: Callable[[int], list[ClaimedJob]], limit: int
    ) -> list[ClaimedJob]:
        """Claim in one transaction, with the plans of all claims, within the slots. A
        lane that somebody has locked gives nothing this time."""

        def work() -> list[ClaimedJob]:
            wrapper: Any = connections[self._db.alias]
            session.pin(wrapper.connection, PINNED, BUSY_LANE)
            room = remote_workers.lock_slots(self._db, self._worker)
            if room is None:
                raise lost()
            room = min(room, limit)
            return claim_some(room) if room > 0 else []

        try:
            return self._db.in_transaction(work)
        except OperationalError as error:
            if not is_contended(error):
                raise
            return []

    def _startable(self, jobs: Sequence[ClaimedJob]) -> list[HeldJob]:
        """Those of the claimed jobs that have an attempt left; the others are over."""
        if not jobs:
            return []
        ids = [job.id for job in jobs]
        held = remote_workers.held(self._db, self._worker.id, ids)
        order = {id: place for place, id in enumerate(ids)}
        held.sort(key=lambda one: order[one.job.id])
        return attempts_of(self._db, self._worker).end_unstartable(held)
