"""A clock, and a model of the database: rows, locks, snapshots and notifications.

Everybody acts in one thread. Workers are greenlets, so that their own code stops at
each statement and others go on; the others are generators that yield how long their
next step takes. How long a step takes is drawn by a seed, and so is the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from heapq import heappop, heappush
from random import Random
from typing import Any, Final
from uuid import UUID

import greenlet

from django_jobqueue.store.queue.lanes import FRESH, START, Head, LaneMark, Mark
from django_jobqueue.store.queue.limits_in_force import KeyLimit, Limits
from django_jobqueue.store.rows import ClaimedJob, Lane

WALK: Final = 3  # keys that a claim looks at
FAR: Final = 1_000.0  # seconds
GAP: Final = 0.05  # seconds between starts of the rated type
IDS: Final = [UUID(int=number) for number in range(1_000)]

LIMITS: Final[dict[str, Limits]] = {
    "plain": Limits(),
    "urgent": Limits(),
    "limited": Limits(is_limited=True),
    "rated": Limits(has_rate=True),
    "keyed": Limits(keys=KeyLimit("keyed", 1)),
    "ordered": Limits(keys=KeyLimit("ordered", 1, strict=True)),
}
LANES: Final = {name: Lane("default", 5 * (name == "urgent"), name) for name in LIMITS}


class Wrong(AssertionError):
    """A history that must not happen."""


class Row:
    """A job in its table."""

    status = "queued"
    is_committed = False
    is_locked = False
    will_end = True
    fence = 0
    worker = 0
    waits_since: float | None = None  # beside a free slot

    def __init__(self, id: int, job_type: str, due: float, key: str) -> None:
        self.id, self.lane, self.key = IDS[id], LANES[job_type], f"{job_type} {key}"
        self.put_at(due)

    def put_at(self, due: float) -> None:
        """When it is due."""
        self.due = due
        self.position: Mark = (datetime.fromtimestamp(due, UTC), self.id)


class Lock:
    """A row, or an advisory lock, that one transaction has at a time."""

    is_held = False

    def try_it(self) -> bool:
        if self.is_held:
            return False
        self.is_held = True
        return True


class World:
    """All that is there, and what happens next."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.draw = self.random.random
        self.now = 1_000.0  # seconds: of all clocks
        self.rows: list[Row] = []
        self.ended: list[Row] = []
        self.paused: set[str] = set()  # job types
        self.limit = 1  # of the limited type
        self.listening: dict[
            int, str
        ] = {}  # workers whose rows say so, and their hosts
        self.rate_at = 0.0  # the next start
        self.locks: dict[str, Lock] = {}
        self.hosts: list[Any] = []
        self.bound = 0.0  # seconds that a slot may be free beside a job that may run
        self.has_nets = True
        self.known: list[Lane] = []  # to workers that have had such jobs
        self.busy = 0  # of those who change something, how many go on
        self._hub = greenlet.getcurrent()
        self._next: list[tuple[float, float, Callable[[], object]]] = []
        self._claims: set[tuple[UUID, int]] = set()

    # Time.

    def monotonic(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], object]) -> None:
        """Have this called so many seconds from now."""
        heappush(self._next, (self.now + seconds, self.draw(), call))

    def delay(self) -> float:
        """How long a step takes: mostly no time at all, so that orders vary."""
        drawn = self.draw()
        if drawn < 0.7:
            return drawn * 0.002
        if drawn < 0.99 or not self.has_nets:
            return drawn * 0.01
        return 0.3 * self.draw()

    def spawn(self, steps: Iterator[float], *, changes: bool = True) -> None:
        """Let this go on; it yields the seconds that a step takes."""
        self.busy += changes

        def step() -> None:
            seconds = next(steps, None)
            if seconds is None:
                self.busy -= changes
            else:
                self.later(seconds, step)

        self.later(self.delay(), step)

    def pause(self, seconds: float | None = None) -> None:
        """The worker that calls this stops for so long."""
        current = greenlet.getcurrent()
        self.later(self.delay() if seconds is None else seconds, current.switch)
        self._hub.switch()

    def stop(self) -> None:
        """The worker that calls this stops until somebody switches to it."""
        self._hub.switch()

    def run(self) -> None:
        """Until all jobs have ended, or something is wrong."""
        queue = self._next
        while queue:
            at, _, call = heappop(queue)
            if at > self.now:
                self.now = at
                if self.now - self._checked_at > self.bound:
                    self.check()
            call()
            if not self.busy and all(row.due > self.now + FAR / 2 for row in self.rows):
                return
        raise Wrong("nothing happens any more")

    # What must hold.

    _checked_at = 0.0

    def check(self) -> None:
        """No slot is free for long beside a job that may run; called at each change."""
        self._checked_at = now = self.now
        slots = any(host.has_free_slot for host in self.hosts)
        for row in self.rows:
            if not (slots and self.may_run(row)):
                row.waits_since = None
            elif row.waits_since is None:
                row.waits_since = now
            elif now - row.waits_since > self.bound:
                waited = now - row.waits_since
                raise Wrong(f"a slot was free for {waited:.1f} s beside {row.key}")

    def may_run(self, row: Row) -> bool:
        """Whether a claim could take it."""
        if row.status != "queued" or not row.is_committed or row.is_locked:
            return False
        job_type = row.lane.job_type
        if row.due > self.now or job_type in self.paused:
            return False
        if job_type == "limited":
            return self.running("limited") < self.limit
        if job_type == "rated":
            return self.rate_at <= self.now
        if LIMITS[job_type].keys is not None:
            if any(r.key == row.key and (r.status == "running") for r in self.rows):
                return False
            return job_type != "ordered" or row is self.first_of(row.key)
        return True

    def running(self, job_type: str) -> int:
        return sum(
            row.status == "running" and row.lane.job_type == job_type
            for row in self.rows
        )

    def first_of(self, key: str) -> Row | None:
        """The job of this key that goes before the others: one that was started."""
        waiting = [r for r in self.rows if r.key == key and self._waits(r)]
        return min(waiting, key=lambda r: (r.fence == 0, r.position), default=None)

    def _waits(self, row: Row) -> bool:
        return row.status == "queued" and row.is_committed

    # Transactions.

    def lock(self, name: str) -> Lock:
        return self.locks.setdefault(name, Lock())

    def _wait_for(self, name: str) -> Lock:
        lock = self.lock(name)
        while not lock.try_it():
            self.pause(0.001)
        return lock

    def tell(self, payloads: Sequence[tuple[str | None, str]]) -> None:
        """Send these at a commit, each to one host or to all."""
        for name, payload in payloads:
            for host in self.hosts:
                if name is None or host.name == name:
                    host.notify(payload)

    def idle_hosts(self) -> list[str] | None:
        """Hosts with an idle worker, in any order; None if there are none."""
        hosts = sorted(set(self.listening.values()))
        self.random.shuffle(hosts)
        return hosts or None

    @staticmethod
    def told(hosts: Sequence[str], row: Row) -> list[tuple[str | None, str]]:
        """jobqueue_notify_hosts."""
        if not hosts:
            return [(None, "q:default")]
        payloads: list[tuple[str | None, str]] = [(hosts[0], "j:default")]
        if len(hosts) > 1:
            payloads.append((hosts[1], f"n:{row.id} {hosts[0]} default"))
        return payloads

    def commit(self, rows: Sequence[Row]) -> None:
        for row in rows:
            row.is_committed = True
        self.check()

    def rescue(self, workers: Sequence[int]) -> None:
        """Their leases have lapsed: others may run their jobs."""
        sent = False
        for row in self.rows:
            if row.status == "running" and row.worker in workers:
                row.status, row.worker, sent = "queued", 0, True
                row.is_locked = False
        for worker in workers:
            self.listening.pop(worker, None)
        self.tell([(None, "b:default")] * sent)
        self.check()

    def run_time(self) -> float:
        """Of a job, in seconds."""
        return self.draw() * self.random.choice([0.002, 0.02, 0.2])

    def insert(self, id: int, job_type: str, key: str, due_in: float) -> Row:
        row = Row(id, job_type, self.now + due_in, key)
        self.rows.append(row)
        return row

    # The statements of a worker, in the places of those in store/.

    def _fresh(self, row: Row, start: LaneMark) -> bool:
        """FROM_MARK."""
        (mark_time, mark_id), (back_time, back_id) = start.mark, start.back
        fresh = datetime.fromtimestamp(self.now - FRESH, UTC)
        since = max(back_time, min(mark_time, fresh))
        return row.position >= (since, mark_id if mark_time <= fresh else back_id)

    def _open(self, lane: Lane) -> list[Row]:
        """Jobs of this lane that are due and free, in order."""
        found = [
            row
            for row in self.rows
            if row.lane == lane
            and row.is_committed
            and not row.is_locked
            and row.status == "queued"
            and row.due <= self.now
        ]
        return sorted(found, key=_position) if lane.job_type not in self.paused else []

    def _take(self, worker: int, rows: Sequence[Row]) -> list[ClaimedJob]:
        """UPDATE … RETURNING, the commit and the answer."""
        for row in rows:
            row.is_locked = True
        if rows:
            self.pause()
        claimed = []
        for row in rows:
            if row.status != "queued" or (row.id, row.fence) in self._claims:
                raise Wrong(f"{row.key} runs twice under one fence")
            self._claims.add((row.id, row.fence))
            row.is_locked, row.status, row.worker = False, "running", worker
            row.fence += 1
            claimed.append(_claimed(row))
        if claimed:
            self._keep_limits(rows)
            self.check()
        return claimed

    def _keep_limits(self, rows: Sequence[Row]) -> None:
        job_type = rows[0].lane.job_type
        if job_type == "limited" and self.running(job_type) > self.most_limited:
            raise Wrong("more jobs run than the limit of their type")
        if LIMITS[job_type].keys is not None:
            keys = Counter(row.key for row in self.rows if row.status == "running")
            if any(keys[row.key] > 1 for row in rows):
                raise Wrong("more jobs run than the limit of their key")

    @property
    def most_limited(self) -> int:
        return 2  # of which an operator permits one at times, and running jobs go on

    def claim(
        self, db: Any, worker: int, lanes: Sequence[LaneMark], wanted: int
    ) -> list[ClaimedJob]:
        self.pause()
        taken: list[Row] = []
        for start in lanes:
            if LIMITS[start.lane.job_type] == Limits():
                taken += [r for r in self._open(start.lane) if self._fresh(r, start)]
        return self._take(worker, taken[:wanted])

    def claim_limited(
        self,
        db: Any,
        worker: int,
        lanes: Sequence[LaneMark],
        wanted: int,
        *,
        keeps_rates: bool = True,
    ) -> list[ClaimedJob]:
        self.pause()
        lock = self._wait_for("type")
        room = max(0, min(wanted, self.limit - self.running("limited")))
        (start,) = lanes
        found = [row for row in self._open(start.lane) if self._fresh(row, start)]
        claimed = self._take(worker, found[:room])
        lock.is_held = False
        self.pause()
        return claimed

    def claim_rated(
        self, db: Any, worker: int, lanes: Sequence[LaneMark], wanted: int
    ) -> tuple[list[ClaimedJob], float]:
        self.pause()
        lock = self._wait_for("rate")
        (start,) = lanes
        found = [row for row in self._open(start.lane) if self._fresh(row, start)]
        taken = found[: 1 if self.rate_at <= self.now else 0]
        if taken:
            if self.now < self.rate_at:
                raise Wrong("jobs start faster than their rate")
            self.rate_at = self.now + GAP
        left = self.rate_at - self.now if len(taken) < len(found) else 0.0
        claimed = self._take(worker, taken)
        lock.is_held = False
        return claimed, max(0.0, left)

    def _circle(self, lane: Lane, first: str) -> list[str]:
        """All keys with jobs, whenever they are due."""
        keys = {row.key for row in self.rows if row.lane == lane and self._waits(row)}
        return sorted(keys, key=lambda key: (key < first, key))

    def _oldest(self, lane: Lane) -> list[Row]:
        return self._open(lane)

    def claim_keyed(
        self, db: Any, worker: int, keyed: Any, wanted: int
    ) -> list[ClaimedJob]:
        self.pause()
        lock = self._wait_for(keyed.limit_name)
        found = self._open(keyed.lane)
        keys = self._circle(keyed.lane, keyed.first)
        if keyed.oldest:
            oldest = {row.key for row in found[:WALK]}
            keys = [key for key in keys if key in oldest]
        running = {row.key for row in self.rows if row.status == "running"}
        taken: list[Row] = []
        for key in keys[:WALK]:
            row = next((row for row in found if row.key == key), None)
            if row is not None and keyed.strict:
                row = self.first_of(key)
            if row in found and key not in running and len(taken) < wanted:
                taken.append(row)
        claimed = self._take(worker, taken)
        lock.is_held = False
        return claimed

    def stopped(self, db: Any, keyed: Any) -> tuple[str | None, bool]:
        self.pause()
        keys = self._circle(keyed.lane, keyed.first)
        if len(keys) < WALK:
            return None, True
        return keys[WALK - 1], len(self._open(keyed.lane)) < WALK

    def next_retry(self, db: Any, limit_name: str) -> float | None:
        self.pause()
        later = [
            row.due - self.now
            for row in self.rows
            if row.fence and row.lane.job_type == limit_name and row.due > self.now
        ]
        return min(later, default=None)

    @staticmethod
    def adopt(db: Any, lane: Lane, since: Mark) -> tuple[int, Mark | None]:
        return 0, None  # each has its key

    def _head(self, lane: Lane, start: LaneMark | None) -> Head | None:
        """_KNOWN, or _NEW."""
        rows = [
            row
            for row in self.rows
            if row.lane == lane
            and self._waits(row)
            and (start is None or self._fresh(row, start))
        ]
        if not rows:
            return None
        first = min(rows, key=_position)
        if first.due <= self.now:
            return Head(lane, first.due - self.now, first.position)
        return Head(lane, first.due - self.now, self.empty)

    @property
    def empty(self) -> Mark:
        return datetime.fromtimestamp(self.now, UTC), START[1]

    def _known(self, starts: Sequence[LaneMark]) -> list[Head]:
        heads = []
        for start in starts:
            head = self._head(start.lane, start)
            heads.append(head or Head(start.lane, None, self.empty))
        return heads

    def probe(self, db: Any, starts: Sequence[LaneMark]) -> list[Head]:
        self.pause(0.001 * self.draw())
        return self._answer(self._known(starts))

    def scan(self, db: Any, starts: Sequence[LaneMark], within: Any) -> list[Head]:
        self.pause(0.001 * self.draw())
        known = {start.lane for start in starts}
        new = [self._head(lane, None) for lane in LANES.values() if lane not in known]
        return self._answer(self._known(starts) + [head for head in new if head])

    def full_scan(self, db: Any, within: Any) -> tuple[list[Head], Mark]:
        self.pause(0.001 * self.draw())
        heads = [self._head(lane, None) for lane in LANES.values()]
        empty = self.empty
        return self._answer([head for head in heads if head]), empty

    def _answer(self, heads: list[Head]) -> list[Head]:
        self.pause(0.001 * self.draw())
        return heads

    def set_listening(self, db: Any, worker: int, on: bool) -> None:
        self.pause()
        host = next(host for host in self.hosts if worker in host.ids)
        if on:
            self.listening[worker] = host.name
        else:
            self.listening.pop(worker, None)
        self.pause()

    def release(
        self, db: Any, worker: int, ids: Sequence[UUID], fences: Sequence[int]
    ) -> int:
        self.pause()
        given, back = set(zip(ids, fences, strict=True)), 0
        for row in self.rows:
            if (row.id, row.fence) in given and row.worker == worker:
                row.status, row.worker, back = "queued", 0, back + 1
        self.tell([(None, "b:default")] * bool(back))
        self.pause()
        return back


def _position(row: Row) -> Mark:
    return row.position


def _claimed(row: Row) -> ClaimedJob:
    return ClaimedJob(
        row.id,
        row.lane.job_type,
        row.lane.queue,
        row.lane.priority,
        "{}",
        row.fence,
        None,
        0,
        row.fence,
        row.due,
        row.due,
        0.0,
        None,
        limit_key=row.key if LIMITS[row.lane.job_type].keys is not None else None,
    )
