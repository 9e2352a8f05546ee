"""The process table: a page of memory that the processes of one runworkers share.

Each field of an entry is written by one process only: a worker writes its row, the
supervisor says which entries are to be renewed, maintenance says when it renewed.
Reading needs no lock, since each field is one word of the machine, written as a whole.
``struct.pack_into()`` would not do: it writes zeros before the value.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

from django_jobqueue.processes.attempt_table import AttemptTable
from django_jobqueue.processes.lane_progress import SharedLaneProgress
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.shared_value import SharedValue
from django_jobqueue.processes.wakeups import WakeupPipes
from django_jobqueue.processes.worker_relay import WAKE, WorkerNews, WorkerRelay

DESIRES: Final = ("", "drain", "resume", "stop", "restart")
LIMITS: Final = ("", "MAX_JOBS", "MAX_AGE", "MAX_MEMORY")  # settings
ORDERS_SIZE: Final = 1 << 16  # bytes of what operators ask, and of a host's report
FENCE_AT: Final = 0.85  # of a lease without renewal
CLAIMS_UNTIL: Final = 0.75  # the same: what is claimed later may be fenced at once
IDLE_AFTER: Final = 1.0  # leases without a job, after which a worker is idle
IDLE_EXTENSION: Final = 2  # leases by which the renewal of an idle one is longer


class LeaseOverdue(Exception):
    """A worker may claim nothing until its lease is renewed."""


class ProcessEntry(NamedTuple):
    """One worker process of this host, as the others see it, and who writes what."""

    number: int
    pid: int  # supervisor: the process in this entry; 0 is none
    renewable: int  # supervisor: whether it runs, so that its lease is to be renewed
    paused: int  # supervisor: an operator drained it, and has not resumed it
    worker: int  # worker: its id in the database; 0 is not yet
    registered: int  # worker: lease_time() before that, in milliseconds
    running: int  # worker: jobs in its slots
    held: int  # worker: all its jobs, also those that wait or are being finished
    claimed: int  # worker: whether it has had a job
    watched: int  # worker: its watchdog's last look, time.monotonic() in milliseconds
    draining: int  # worker: claims nothing more
    orderly: int  # worker: it ends because it was told to, not because it died
    calls: int  # worker: how often it heard that an operator asks for something
    condemned: int  # worker: a handler hangs; it will end, and wants a successor
    exceeded: int  # worker: the limit that it has reached, an index into LIMITS
    readiness: int  # worker: what it is to be woken for; see wakeups.py
    answered: int  # worker: jobs_heard when its last claim began that is done
    # maintenance: whether its last renewal was for longer, as it had nothing to do
    extended: int
    # maintenance: lease_time() of its last renewal, in milliseconds, if its row was
    # locked since, so that it was not renewed with the others; else 0
    unrenewed: int
    lost: int  # maintenance: somebody rescued its jobs, so its lease is not renewed
    desired: int  # maintenance: what an operator asks for, an index into DESIRES
    stack_request: int  # maintenance: the number of the last stack dump asked for, or 0
    # maintenance: it holds a cancelled job, and does not hear of it
    ignores_cancel: int

    def leased_at(self, renewed_at: float, lease: float) -> float:
        """lease_time() from which its lease counts, after the last renewal."""
        longer = lease * IDLE_EXTENSION if self.extended else 0.0
        last = self.unrenewed / 1_000 if self.unrenewed else renewed_at
        return max(last + longer, self.registered / 1_000)

    def is_overdue(
        self, renewed_at: float, now: float, lease: float, share: float = FENCE_AT
    ) -> bool:
        """True if its lease was not renewed for too long, or for this share of it."""
        return now - self.leased_at(renewed_at, lease) > lease * share

    def is_cut_off(self, renewed_at: float, now: float, lease: float) -> bool:
        """True if others may start its jobs any moment."""
        return bool(self.held) and self.is_overdue(renewed_at, now, lease)


WORD: Final = 8  # bytes
T = TypeVar("T", bound=float)  # bool, int or float


class TableField(Generic[T]):
    """A word at the head of the table, as an attribute of it."""

    def __init__(self, type_: type[T]) -> None:
        self._type: type[T] = type_
        self._number = 0

    def __set_name__(self, owner: type[ProcessTable], name: str) -> None:
        self._number = owner.head_size
        owner.head_size += 1

    def __get__(self, table: ProcessTable, owner: type[ProcessTable]) -> T:
        return self._type(self._words(table)[self._number])

    def __set__(self, table: ProcessTable, value: T) -> None:
        self._words(table)[self._number] = value

    def _words(self, table: ProcessTable) -> memoryview[Any]:
        return table._moments if self._type is float else table._numbers


_FIELDS: Final = {name: word for word, name in enumerate(ProcessEntry._fields[1:])}


class ProcessTable:
    """Entries for worker processes, in memory that forked processes share, and for each
    a table of ``attempts`` rows. Entries that were never used cost nothing.

    Maintenance writes the ``orders`` of operators to this host, and the supervisor its
    ``report``. Without wakeup pipes nobody can be woken, so nobody may
    rest for long.
    """

    head_size = 0  # words, of those that follow
    _used = TableField(int)
    """How many entries were ever used."""

    renewed_at = TableField(float)
    """lease_time() of the last renewal of the leases."""

    maintenance_is_ready = TableField(bool)
    """True once maintenance has done what must come before the first claim."""

    is_asleep = TableField(bool)
    """True while maintenance waits until operators let hosts work in this database."""

    can_listen = TableField(bool)
    """True if LISTEN works here."""

    quarantine_seen_at = TableField(float)
    """time.monotonic() of maintenance's last look, if there was a job that must run
    alone, and may; 0 if there was none."""

    recovered = TableField(int)
    """The number of the last death that maintenance has dealt with."""

    last_activity_at = TableField(float)
    """lease_time() when somebody here last had something to do, or was asked
    for something. Any process writes it."""

    # Standby. Only maintenance writes it, after the supervisor has begun with it.

    standby_until = TableField(float)
    """lease_time() up to which workers may run here unless the standby lease is
    renewed; infinite if this host does not stand by."""

    standby_is_held = TableField(bool)
    """True if this host holds the standby lease, or does not stand by."""

    nothing_remains = TableField(bool)
    """True if maintenance found no job that could ever run here; only where a host
    asks for it."""

    # News. The listener in the maintenance process writes it, and the supervisor while
    # that process is dead or stopped.

    listener_hears = TableField(bool)
    """True if it hears notifications, and wakes workers."""

    jobs_heard = TableField(int)
    """A number that grows with each notification of jobs."""

    behind_heard = TableField(int)
    """The same of jobs that a claim may have passed already."""

    alone = TableField(bool)
    """True if there may be jobs of which only this host was notified."""

    # What the supervisor says of itself.

    supervised_at = TableField(float)
    """time.monotonic() of the supervisor's last round."""

    is_stopping = TableField(bool)
    """True once the host is to stop."""

    wants_no_worker = TableField(bool)
    """True while operators have parked or drained the host: no worker starts here
    until they resume it."""

    def __init__(
        self, entries: int, wakeups: WakeupPipes | None = None, *, attempts: int = 0
    ) -> None:
        self.size = entries
        self._attempts = AttemptTable.several(entries, attempts)
        self._wakeups = wakeups
        memory = memoryview(mmap.mmap(-1, WORD * self._first(entries)))
        self._numbers = memory.cast("q")
        self._moments = memory.cast("d")  # the same memory
        self.lane_progress = SharedLaneProgress()
        self.orders = SharedValue(ORDERS_SIZE)
        self.report = SharedValue(ORDERS_SIZE)
        self.last_activity_at = lease_time()
        self.jobs_heard = 1  # more than any worker has answered
        self.standby_until = math.inf
        self.standby_is_held = True

    def __iter__(self) -> Iterator[ProcessEntry]:
        for number in range(self._used):
            entry = self.entry(number)
            if entry.pid:
                yield entry

    def entry(self, number: int) -> ProcessEntry:
        """The values of this entry."""
        first = self._first(number)
        words = self._numbers[first : first + len(_FIELDS)]
        return ProcessEntry._make((number, *words))

    def column(self, field: str) -> list[int]:
        """The values of this field in all entries that were used, in their order."""
        first, end = self._first(0), self._first(self._used)
        return self._numbers[first + _FIELDS[field] : end : len(_FIELDS)].tolist()

    def free(self) -> int | None:
        """The number of an entry that nobody has."""
        for number in range(self.size):
            if not self.entry(number).pid:
                return number
        return None

    def attempts(self, number: int) -> AttemptTable:
        """The attempts that run in this entry. They outlive the worker, so that others
        see what ran when it died."""
        return self._attempts[number]

    def clear(self, number: int) -> None:
        """Nobody has this entry."""
        self.write(number, **dict.fromkeys(_FIELDS, 0))

    def write(self, number: int, **values: int) -> None:
        """Write fields of an entry."""
        if "pid" in values and number >= self._used:
            self._used = number + 1
        first = self._first(number)
        for name, value in values.items():
            self._numbers[first + _FIELDS[name]] = value

    def may_work(self, now: float) -> bool:
        """True if workers may run here: no other host may do the same work."""
        return self.standby_is_held and now < self.standby_until

    # Rest.

    def is_idle(self, now: float, lease: float) -> bool:
        """True if no process has had work for as long as a lease. Without
        notifications no process would notice new work, so it is False."""
        return self.can_listen and now - self.last_activity_at > lease * IDLE_AFTER

    def may_idle(self, now: float, lease: float) -> bool:
        """True if it is idle, and its loops are woken when that ends."""
        return self._wakeups is not None and self.is_idle(now, lease)

    def activity(self, now: float, lease: float) -> None:
        """Somebody has something to do. Who may rest is woken: it was idle for a lease
        then, so for more than half of one now."""
        before, self.last_activity_at = self.last_activity_at, now
        if self._wakeups is not None and now - before > lease * IDLE_AFTER / 2:
            self._wakeups.supervisor.ring()
            self._wakeups.maintenance.ring()

    def news_of(self, number: int) -> WorkerNews | None:
        """The host listener's news for the worker in this entry; None if it has to
        listen itself."""
        if self._wakeups is None or number >= len(self._wakeups.workers):
            return None
        return WorkerNews(self, number, self._wakeups)

    def keep_pipe(self, number: int) -> None:
        """This process is the worker in this entry; it needs no other one's pipe."""
        if self._wakeups is not None:
            self._wakeups.close_others(number)

    def relay(self) -> WorkerRelay | None:
        """The listener's way to the workers; None if they listen themselves."""
        if self._wakeups is None or not self._wakeups.workers:
            return None
        return WorkerRelay(self, self._wakeups)

    def listener_is_gone(self) -> None:
        """Nobody hears notifications for the workers: wake all, so that they poll."""
        self.listener_hears = False
        if (relay := self.relay()) is not None:
            relay.pass_to_all(WAKE)

    def ensure_leased(self, number: int, lease: float) -> None:
        """Raise LeaseOverdue, and have maintenance renew the lease, unless the worker
        in this entry may claim. After an outage it may be the first to reach the
        database; the supervisor would kill it for what it claims then."""
        entry, now = self.entry(number), lease_time()
        if entry.lost or entry.is_overdue(self.renewed_at, now, lease, CLAIMS_UNTIL):
            self.call_maintenance()
            raise LeaseOverdue

    def call_supervisor(self) -> None:
        """Have it look at what maintenance wrote."""
        if self._wakeups is not None:
            self._wakeups.supervisor.ring()

    def call_maintenance(self) -> None:
        """Have it look at what the supervisor wrote."""
        if self._wakeups is not None:
            self._wakeups.maintenance.ring()

    def _first(self, number: int) -> int:
        """The first word of an entry."""
        return self.head_size + number * len(_FIELDS)
