"""Renews the leases of this host's workers, in one statement."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.hangs import is_silent
from django_jobqueue.host.maintenance.host_row import HostRow
from django_jobqueue.processes import identity
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.process_table import (
    DESIRES,
    IDLE_EXTENSION,
    ProcessEntry,
    ProcessTable,
)
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel

logger = logging.getLogger("django_jobqueue.maintenance")

CHECK_EVERY: Final = 1.0  # seconds between looks at the entries
AGAIN_AFTER: Final = 0.25  # the same while a worker's row is locked by somebody
WARN_EVERY: Final = 60.0  # seconds


class Renewer(Loop):
    """Renews the claims outside of the workers: a handler that holds the interpreter's
    lock does not look dead, and a dead worker is not kept alive.

    Leases are renewed after every third of their length. When no worker has had a job
    for as long as a lease, they are renewed for longer and less often, until a worker
    has a job or an operator asks for something. The row of the host is written with
    them.
    """

    name = "renewer"

    def __init__(
        self,
        process_table: ProcessTable,
        connection: OwnConnection,
        host_row: HostRow | None = None,
    ) -> None:
        super().__init__()
        self._process_table = process_table
        self._host_row = host_row
        self._connection = connection
        self._renewed: set[int] = set()
        # Of each worker, as it was looked at last: see ProcessEntry.
        self._calls_and_draining: dict[int, tuple[int, int]] = {}
        self._has_request = False
        self._is_extended = False
        self.next_at = 0.0  # lease_time()
        self._warned_at: dict[int, float] = {}  # by pid; lease_time()

    def request_arrived(self) -> None:
        """An operator asks this host for something: read at once what. From any
        thread."""
        self._has_request = True
        self.wake()

    def tick(self) -> float:
        """Renew the leases of all workers that the supervisor marks as running."""
        entries = {
            entry.worker: entry
            for entry in self._process_table
            if entry.worker and entry.renewable
        }
        began = lease_time()
        idle = self._is_idle(entries.values(), began)
        self._note_requests(entries)
        is_due = self._is_due(entries.keys(), idle, began)
        if is_due:
            self._renew(entries, idle, began)
        for entry in entries.values():
            self._read_cancellation(entry)
        until_next = self.next_at - began
        if self._host_row is not None:
            self._keep_host(self._host_row, is_due=is_due)
            until_next = min(until_next, self._host_row.pause)
        if not entries.keys() <= self._renewed:
            return min(AGAIN_AFTER, until_next)
        if self._process_table.may_idle(began, conf.lease):
            return until_next
        return min(CHECK_EVERY, until_next)

    def _keep_host(self, host_row: HostRow, *, is_due: bool) -> None:
        """Write the row of the host with the renewals, and when it has changed; read it
        at other times if nobody else would. Raises StoreUnavailable."""
        if is_due or host_row.has_news:
            longer = conf.lease * IDLE_EXTENSION if self._is_extended else 0.0
            host_row.keep(self._connection, conf.lease + longer)
        elif host_row.pause < math.inf:
            host_row.poll(self._connection)

    def _renew(
        self, entries: Mapping[int, ProcessEntry], idle: bool, began: float
    ) -> None:
        """Raises StoreUnavailable."""
        self._has_request, self.next_at = False, 0.0
        beats = [
            worker_rows.Beat(
                entry.worker,
                entry.running,
                identity.rss(entry.pid),
                bool(entry.draining),
            )
            for entry in entries.values()
        ]
        longer = conf.lease * IDLE_EXTENSION if idle else 0.0
        try:
            alive = worker_rows.renew(self._connection, beats, conf.lease + longer)
        except StoreUnavailable as error:
            error.retry_in = min(error.retry_in, conf.lease / 10)
            raise
        renewed = {id: asked for id, asked in alive.items() if asked is not None}
        self._renewed = set(renewed)
        self._is_extended = idle
        self.next_at = began + (longer if idle else conf.lease / 3)
        self._write_leases(entries, renewed, began, idle=idle)
        missing = [worker for worker in entries if worker not in alive]
        # It ended after we looked who is there.
        left = worker_rows.have_stopped(self._connection, missing) if missing else set()
        for worker, entry in entries.items():
            if worker in renewed:
                self._pass_on(entry, renewed[worker])
            elif worker in alive:
                self._warn_locked(entry)
            elif worker not in left:
                logger.error(
                    "Worker %s lost its lease: another host took it over", entry.pid
                )
                self._process_table.write(entry.number, lost=1)
                self._process_table.call_supervisor()

    def _write_leases(
        self,
        entries: Mapping[int, ProcessEntry],
        renewed: Collection[int],
        began: float,
        *,
        idle: bool,
    ) -> None:
        """Tell the supervisor from when the leases count. The leases that were not
        renewed come first, so that none ever seems longer than it is."""
        before = max(1, int(self._process_table.renewed_at * 1_000))
        for worker, entry in entries.items():
            if worker not in renewed and not entry.unrenewed:
                self._process_table.write(entry.number, unrenewed=before)
        self._process_table.renewed_at = began
        for entry in self._process_table:
            if entry.worker in renewed:
                self._process_table.write(entry.number, extended=idle, unrenewed=0)
            elif entry.worker not in entries:
                self._process_table.write(entry.number, extended=0)

    def _warn_locked(self, entry: ProcessEntry) -> None:
        now = lease_time()
        if now - self._warned_at.get(entry.pid, -math.inf) >= WARN_EVERY:
            self._warned_at[entry.pid] = now
            logger.warning(
                "Worker %s: its row in jobqueue_worker is locked by another "
                "transaction, so its lease cannot be renewed; the worker is ended "
                "before it lapses",
                entry.pid,
            )

    def _pass_on(self, entry: ProcessEntry, asked: worker_rows.Asked) -> None:
        """Pass on the requests of operators to a worker."""
        self._process_table.write(entry.number, stack_request=asked.stack_request)
        if asked.desired in DESIRES and asked.desired != DESIRES[entry.desired]:
            desire = DESIRES.index(asked.desired)
            self._process_table.write(entry.number, desired=desire)
            self._process_table.call_supervisor()

    def _read_cancellation(self, entry: ProcessEntry) -> None:
        """Find out whether a job was cancelled in a worker that cannot hear of it,
        because a handler holds the interpreter's lock. Raises StoreUnavailable."""
        if (
            not entry.held
            or entry.ignores_cancel
            or not is_silent(entry.watched / 1_000)
        ):
            return
        running = self._process_table.attempts(entry.number).running()
        if ids := [attempt.job for attempt in running]:
            try:
                ignores = cancel.requested_long_ago(self._connection, ids, conf.grace)
            except StoreUnavailable as error:
                error.retry_in = min(error.retry_in, conf.lease / 10)
                raise
            if ignores:
                self._process_table.write(entry.number, ignores_cancel=1)
                self._process_table.call_supervisor()

    def _note_requests(self, entries: Mapping[int, ProcessEntry]) -> None:
        """Renew at once if a worker heard of a request, or its draining changed: that
        reads the request and records the change."""
        state = {
            worker: (entry.calls, entry.draining) for worker, entry in entries.items()
        }
        if any(
            self._calls_and_draining.get(w, (0, 0)) != each for w, each in state.items()
        ):
            self._has_request = True
        self._calls_and_draining = state

    def _is_due(self, workers: Set[int], idle: bool, now: float) -> bool:
        """True if it is time, or a worker is new, has a request, or is busy again."""
        if self._has_request or (self._is_extended and not idle):
            return True
        return now >= self.next_at or not workers <= self._renewed

    def _is_idle(self, entries: Iterable[ProcessEntry], now: float) -> bool:
        """True if no worker has had anything to do for as long as a lease."""
        if any(entry.held or entry.draining for entry in entries):
            self._process_table.activity(now, conf.lease)
        return self._process_table.is_idle(now, conf.lease)

    def close(self) -> None:
        """Let the connection go; the host ends."""
        if self._host_row is not None:
            with contextlib.suppress(StoreUnavailable):
                self._host_row.close(self._connection)
        self._connection.close()
