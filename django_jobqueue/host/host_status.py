"""How a host is, as its process table shows it: for systemd, probes and metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from django_jobqueue.conf import conf
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessTable

ASLEEP: Final = "asleep until jobqueue wake"


@dataclass(frozen=True)
class HostStatus:
    """The state that a host reports."""

    # A worker is registered, and its lease is renewed; or there is to be none, since
    # the host stands by, or operators have parked or drained it.
    is_ready: bool
    is_stopping: bool
    workers: int
    jobs: int  # that they hold
    is_asleep: bool = False  # in a copy of a database, until operators wake it
    is_restarting: bool = False  # it stops, and the program starts again
    # Until the first lease lapses; None if there is none.
    lease_seconds: float | None = field(default=None, compare=False)

    @classmethod
    def of(cls, table: ProcessTable) -> Self:
        """That of the host with this process table."""
        now, renewed_at, lease = lease_time(), table.renewed_at, conf.lease
        registered = [entry for entry in table if entry.worker]
        is_at_work = any(
            not (entry.lost or entry.is_overdue(renewed_at, now, lease))
            for entry in registered
        )
        is_to_wait = table.wants_no_worker or not table.may_work(now)
        lapses = [entry.leased_at(renewed_at, lease) + lease for entry in registered]
        return cls(
            is_ready=table.maintenance_is_ready
            and not table.is_asleep
            and (is_at_work or is_to_wait),
            is_stopping=table.is_stopping,
            is_asleep=table.is_asleep,
            workers=len(registered),
            jobs=sum(entry.held for entry in registered),
            lease_seconds=max(0.0, min(lapses) - now) if lapses else None,
        )

    @property
    def is_ending(self) -> bool:
        """True if its process is about to end."""
        return self.is_stopping and not self.is_restarting

    def __str__(self) -> str:
        state = "running" if self.is_ready else "not ready"
        if self.is_asleep:
            state = ASLEEP
        if self.is_stopping:
            state = "restarting" if self.is_restarting else "stopping"
        return f"{state}: {self.workers} worker processes, {self.jobs} jobs"
