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
from typing import Final, NamedTuple

from django_jobqueue.processes.attempt_table import AttemptTable
from django_jobqueue.processes.idle import WakeupPipes
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.shared_value import SharedValue
from django_jobqueue.processes.worker_relay import WAKE, WorkerNews, WorkerRelay

DESIRES: Final = ("", "drain", "resume", "stop", "restart")
LIMITS: Final = ("", "MAX_JOBS", "MAX_AGE", "MAX_MEMORY")  # settings
ORDERS_SIZE: Final = 1 << 16  # bytes of what operators ask, and of a host's report
FENCE_AT: Final = 0.85  # of a lease without renewal
IDLE_EXTENSION: Final = (
    2  # leases by which the renewal of a worker that has no job is longer
)


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
    readiness: int  # worker: what it is to be woken for; see idle.py
    answered: int  # worker: jobs_heard when its last claim began that is done
    # maintenance: whether its last renewal was for longer, as it had nothing to do
    extended: int
    # maintenance: lease_time() of its last renewal, in milliseconds, if its row was
    # locked since, so that it was not renewed with the others; else 0
    unrenewed: int
    lost: int  # maintenance: somebody rescued its jobs, so its lease is not renewed
    desired: int  # maintenance: what an operator asks for, an index into DESIRES
    stack_request: int  # maintenance: the number of the last stack dump asked for, or 0
    unwanted: int  # maintenance: it holds a cancelled job, and does not hear of it

    def leased_at(self, renewed_at: float, lease: float) -> float:
        """lease_time() from which its lease counts, after the last renewal."""
        longer = lease * IDLE_EXTENSION if self.extended else 0.0
        last = self.unrenewed / 1_000 if self.unrenewed else renewed_at
        return max(last + longer, self.registered / 1_000)

    def is_overdue(self, renewed_at: float, now: float, lease: float) -> bool:
        """Whether its lease was not renewed for too long."""
        return now - self.leased_at(renewed_at, lease) > lease * FENCE_AT

    def is_cut_off(self, renewed_at: float, now: float, lease: float) -> bool:
        """Whether others may start its jobs any moment."""
        return bool(self.held) and self.is_overdue(renewed_at, now, lease)


WORD: Final = 8  # bytes
# The words of the head; see the properties.
(
    _RENEWED_AT,
    _MAINTENANCE_IS_READY,
    _CAN_LISTEN,
    _QUARANTINE_SEEN_AT,
    _RECOVERED,
    _LAST_ACTIVITY_AT,
    _STANDBY_UNTIL,
    _STANDBY_IS_HELD,
    _NOTHING_REMAINS,
    _LISTENER_HEARS,
    _JOBS_HEARD,
    _BEHIND_HEARD,
    _ALONE,
    _SUPERVISED_AT,
    _IS_STOPPING,
    _WANTS_NO_WORKER,
    _USED,
    _HEAD,  # how many there are
) = range(18)
_FIELDS: Final = {name: word for word, name in enumerate(ProcessEntry._fields[1:])}


class ProcessTable:
    """Entries for worker processes, in memory that forked processes share, and for each
    a table of ``attempts`` rows. Entries that were never used cost nothing.

    Maintenance writes the ``orders`` of operators to this host, and the supervisor its
    ``report``. Without wakeup pipes nobody can be woken, so nobody may
    rest for long.
    """

    def __init__(
        self, entries: int, wakeups: WakeupPipes | None = None, *, attempts: int = 0
    ) -> None:
        self.size = entries
        self._attempts = AttemptTable.several(entries, attempts)
        self._wakeups = wakeups
        memory = memoryview(mmap.mmap(-1, WORD * (_HEAD + entries * len(_FIELDS))))
        self._numbers = memory.cast("q")
        self._moments = memory.cast("d")  # the same memory
        self.orders = SharedValue(ORDERS_SIZE)
        self.report = SharedValue(ORDERS_SIZE)
        self.last_activity_at = lease_time()
        self.jobs_heard = 1  # more than any worker has answered
        self.standby_until = math.inf
        self.standby_is_held = True

    def __iter__(self) -> Iterator[ProcessEntry]:
        for number in range(self._numbers[_USED]):
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
        end = self._first(self._numbers[_USED])
        return self._numbers[_HEAD + _FIELDS[field] : end : len(_FIELDS)].tolist()

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
        if "pid" in values and number >= self._numbers[_USED]:
            self._numbers[_USED] = number + 1
        first = self._first(number)
        for name, value in values.items():
            self._numbers[first + _FIELDS[name]] = value

    @property
    def renewed_at(self) -> float:
        """lease_time() of the last renewal of the leases."""
        return self._moments[_RENEWED_AT]

    @renewed_at.setter
    def renewed_at(self, moment: float) -> None:
        self._moments[_RENEWED_AT] = moment

    @property
    def maintenance_is_ready(self) -> bool:
        """Whether maintenance has done what must come before the first claim."""
        return bool(self._numbers[_MAINTENANCE_IS_READY])

    @maintenance_is_ready.setter
    def maintenance_is_ready(self, ready: bool) -> None:
        self._numbers[_MAINTENANCE_IS_READY] = ready

    @property
    def can_listen(self) -> bool:
        """Whether LISTEN works here."""
        return bool(self._numbers[_CAN_LISTEN])

    @can_listen.setter
    def can_listen(self, works: bool) -> None:
        self._numbers[_CAN_LISTEN] = works

    @property
    def quarantine_seen_at(self) -> float:
        """time.monotonic() of maintenance's last look, if there was a job that must run
        alone, and may; 0 if there was none."""
        return self._moments[_QUARANTINE_SEEN_AT]

    @quarantine_seen_at.setter
    def quarantine_seen_at(self, moment: float) -> None:
        self._moments[_QUARANTINE_SEEN_AT] = moment

    @property
    def recovered(self) -> int:
        """The number of the last death that maintenance has dealt with."""
        return self._numbers[_RECOVERED]

    @recovered.setter
    def recovered(self, number: int) -> None:
        self._numbers[_RECOVERED] = number

    @property
    def last_activity_at(self) -> float:
        """lease_time() when somebody here last had something to do, or was asked
        for something. Any process writes it."""
        return self._moments[_LAST_ACTIVITY_AT]

    @last_activity_at.setter
    def last_activity_at(self, moment: float) -> None:
        self._moments[_LAST_ACTIVITY_AT] = moment

    # Standby. Only maintenance writes it, after the supervisor has begun with it.

    @property
    def standby_until(self) -> float:
        """lease_time() up to which workers may run here unless the standby lease is
        renewed; infinite if this host does not stand by."""
        return self._moments[_STANDBY_UNTIL]

    @standby_until.setter
    def standby_until(self, moment: float) -> None:
        self._moments[_STANDBY_UNTIL] = moment

    @property
    def standby_is_held(self) -> bool:
        """Whether this host holds the standby lease, or does not stand by."""
        return bool(self._numbers[_STANDBY_IS_HELD])

    @standby_is_held.setter
    def standby_is_held(self, is_held: bool) -> None:
        self._numbers[_STANDBY_IS_HELD] = is_held

    @property
    def nothing_remains(self) -> bool:
        """Whether maintenance found no job that could run here, ever; only where a host
        asks for it."""
        return bool(self._numbers[_NOTHING_REMAINS])

    @nothing_remains.setter
    def nothing_remains(self, is_so: bool) -> None:
        self._numbers[_NOTHING_REMAINS] = is_so

    # News. The listener in the maintenance process writes it, and the supervisor while
    # that process is dead or stopped.

    @property
    def listener_hears(self) -> bool:
        """Whether it hears notifications, and wakes workers."""
        return bool(self._numbers[_LISTENER_HEARS])

    @listener_hears.setter
    def listener_hears(self, hears: bool) -> None:
        self._numbers[_LISTENER_HEARS] = hears

    @property
    def jobs_heard(self) -> int:
        """A number that grows with each notification of jobs."""
        return self._numbers[_JOBS_HEARD]

    @jobs_heard.setter
    def jobs_heard(self, number: int) -> None:
        self._numbers[_JOBS_HEARD] = number

    @property
    def behind_heard(self) -> int:
        """The same of jobs that a claim may have passed already."""
        return self._numbers[_BEHIND_HEARD]

    @behind_heard.setter
    def behind_heard(self, number: int) -> None:
        self._numbers[_BEHIND_HEARD] = number

    @property
    def alone(self) -> bool:
        """Whether there may be jobs of which only this host was told."""
        return bool(self._numbers[_ALONE])

    @alone.setter
    def alone(self, alone: bool) -> None:
        self._numbers[_ALONE] = alone

    # What the supervisor says of itself.

    @property
    def supervised_at(self) -> float:
        """time.monotonic() of the supervisor's last round."""
        return self._moments[_SUPERVISED_AT]

    @supervised_at.setter
    def supervised_at(self, moment: float) -> None:
        self._moments[_SUPERVISED_AT] = moment

    @property
    def is_stopping(self) -> bool:
        """Whether the host was told to stop."""
        return bool(self._numbers[_IS_STOPPING])

    @is_stopping.setter
    def is_stopping(self, is_so: bool) -> None:
        self._numbers[_IS_STOPPING] = is_so

    @property
    def wants_no_worker(self) -> bool:
        """Whether operators have parked or drained the host: no worker starts here
        until they say so."""
        return bool(self._numbers[_WANTS_NO_WORKER])

    @wants_no_worker.setter
    def wants_no_worker(self, is_so: bool) -> None:
        self._numbers[_WANTS_NO_WORKER] = is_so

    def may_work(self, now: float) -> bool:
        """Whether workers may run here: no other host is to do the same work."""
        return self.standby_is_held and now < self.standby_until

    # Rest.

    def is_idle(self, now: float, lease: float) -> bool:
        """Whether no process has had work for as long as a lease. Without notifications
        nobody would hear of new work, so it is False."""
        return self.can_listen and now - self.last_activity_at > lease

    def may_idle(self, now: float, lease: float) -> bool:
        """Whether it is idle, and its loops are woken when it no longer is."""
        return self._wakeups is not None and self.is_idle(now, lease)

    def activity(self, now: float, lease: float) -> None:
        """Somebody has something to do. Who may rest is woken: it was idle for a lease
        then, so for more than half of one now."""
        before, self.last_activity_at = self.last_activity_at, now
        if self._wakeups is not None and now - before > lease / 2:
            self._wakeups.supervisor.ring()
            self._wakeups.maintenance.ring()

    def news_of(self, number: int) -> WorkerNews | None:
        """What the worker in this entry hears of the host's listener; None if it has to
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

    def call_supervisor(self) -> None:
        """Have it look at what maintenance wrote."""
        if self._wakeups is not None:
            self._wakeups.supervisor.ring()

    def call_maintenance(self) -> None:
        """Have it look at what the supervisor wrote."""
        if self._wakeups is not None:
            self._wakeups.maintenance.ring()

    @staticmethod
    def _first(number: int) -> int:
        """The first word of an entry."""
        return _HEAD + number * len(_FIELDS)
