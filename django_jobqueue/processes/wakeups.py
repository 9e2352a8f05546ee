"""What wakes an idle worker. How long it waits is decided in
``workers/claiming/next_step.py``.

A process that has nothing to do wakes nobody and is woken by three things::

    enqueue ── NOTIFY ──────────► listener ─┐
    a claim ── Activity ────────────────────┤► wakes the loops of this worker
    a fork ─── WakeupPipe ──────────────────┘  and the supervisor beside it

    dispatcher: claim nothing ─► waits longer and longer, ListeningFlag is set
                claim often   ─► polls, ListeningFlag is not set (next_step.py)

Of several hosts with idle workers one is told of a job, and another one that it was::

    enqueue ── j:queue ────────────────► a host, which wakes a worker
        │                                  └─ nobody has room: q:queue ─► all hosts
        └───── n:job, host, queue ─────► another one, which checks a moment later
                                         whether it still waits (``SecondChecks``)

The worker processes of a host share the listener of its maintenance process. Of them it
wakes one for a notification; whoever finds more than it has room for has it wake the
next (``WorkerRelay``)::

    NOTIFY ─► listener ─► jobs_heard + 1 ─► CHECKS somebody anyway? ── yes ─► answers
                 ▲                              └─ no ─► NewsPipe ─► one that has room
                 │                                                     │ claims
                 └──── MORE: it is full ◄──────────────────────────────┤
                       NO_ROOM: it was ◄───────────────────────────────┘

Who does not answer in time, because it is stopped, dead, or busy with the
interpreter's lock, is passed over. When nobody listens any more
(``listener_hears``), all are woken, and poll.

One rule holds for all of them, or a wake-up is lost: mark yourself idle *before* you
check again for work; publish work *before* you wake anybody.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from dataclasses import dataclass, field
from typing import Final

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.processes.wait_readable import wait_readable
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.partial_batches import BRIEF

LOCKED_WAIT: Final = 2.0  # seconds until a locked row is written to again

END: Final = b"\0"  # of a text; PostgreSQL has none that contains it
MOST_PIPES: Final = 100  # of workers; others listen on connections of their own


class WakeupPipe:
    """Wakes one process from any thread, and from any process forked after this was
    made. Programs started by these processes do not inherit it."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        for end in (self._reader, self.writer):
            os.set_blocking(end, False)

    def ring(self) -> None:
        """Wake the process that waits for it, now or later."""
        with contextlib.suppress(BlockingIOError):  # full: a wake-up is under way
            os.write(self.writer, b"r")

    def close(self) -> None:
        """Nobody waits for it any more."""
        os.close(self._reader)
        os.close(self.writer)

    def wait(self, seconds: float, *pipes: int) -> tuple[bool, list[int]]:
        """Wait until it rings, or one of these pipes can be read from.

        Returns whether it rang, and which pipes can be read. It is silent afterwards:
        whatever it rings for later is still to be looked at.
        """
        ready = wait_readable(self._reader, *pipes, within=seconds)
        rang = self._reader in ready
        if rang:
            os.read(self._reader, 1_024)
            ready.remove(self._reader)
        return rang, ready


class NewsPipe:
    """Wakes the one thread that waits for it, with short texts, from any thread, and
    from any process forked after this was made."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._poll = select.poll()  # made once: it is on the way of each job
        self._poll.register(self._reader, select.POLLIN)
        self._incomplete = b""

    def fileno(self) -> int:
        """The descriptor that can be read when there is a text."""
        return self._reader

    def send(self, text: str = "") -> bool:
        """Pass on a text; False if there is no room, as nobody has read for long."""
        try:
            os.write(self._writer, text.encode() + END)
        except BlockingIOError:
            return False
        return True

    def wait(self, seconds: float) -> list[str]:
        """The texts that have arrived, or that arrive within this time."""
        if not self._poll.poll(seconds * 1_000):
            return []
        try:
            read = os.read(self._reader, 65_536)
        except BlockingIOError:
            return []
        *texts, self._incomplete = (self._incomplete + read).split(END)
        return [text.decode() for text in texts]

    def close(self) -> None:
        """Nobody in this process uses it any more."""
        os.close(self._reader)
        os.close(self._writer)


@dataclass(frozen=True, slots=True)
class WakeupPipes:
    """One for each of the two processes that every host has, and one for its listener
    and for each worker process."""

    supervisor: WakeupPipe = field(default_factory=WakeupPipe)
    maintenance: WakeupPipe = field(default_factory=WakeupPipe)
    listener: NewsPipe = field(default_factory=NewsPipe)
    workers: list[NewsPipe] = field(default_factory=list)  # by entry number

    @classmethod
    def with_workers(cls, entries: int) -> WakeupPipes:
        """Make them, for this many entries of the process table."""
        return cls(workers=[NewsPipe() for _ in range(min(entries, MOST_PIPES))])

    def close_others(self, entry: int) -> None:
        """This process is the worker in that entry: it leaves the others alone."""
        for number, pipe in enumerate(self.workers):
            if number != entry:
                pipe.close()

    def close(self) -> None:
        """Nobody waits for them any more."""
        self.supervisor.close()
        self.maintenance.close()
        for pipe in (self.listener, *self.workers):
            pipe.close()


class ListeningFlag:
    """The column of the worker's row that makes enqueues send a notification."""

    def __init__(self, worker: int, connection: OwnConnection) -> None:
        self.is_set = False
        self.since = 0.0  # time.monotonic()
        self.again_at = 0.0  # likewise; until then somebody has locked the row
        self._worker = worker
        self._connection = connection

    def set(self, on: bool) -> bool:
        """Set the flag, or take it back; False if somebody has locked the row. Raises
        StoreUnavailable."""
        try:
            with self._connection.patience(BRIEF):
                worker_rows.set_listening(self._connection, self._worker, on)
        except StoreUnavailable as error:
            if not is_contended(error):
                raise
            self.again_at = time.monotonic() + LOCKED_WAIT
            return False
        self.is_set, self.since = on, time.monotonic()
        return True
