"""One listener for all worker processes of a host: whom it wakes, and what they say to
it. The diagram is in wakeups.py."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from django_jobqueue.processes.wakeups import WakeupPipes

if TYPE_CHECKING:
    from django_jobqueue.processes.process_table import ProcessTable

# What a dispatcher is ready for, so that the listener knows whom to wake: async jobs,
# sync jobs, and whether it is about to check for some without being woken.
ASYNC_ROOM, SYNC_ROOM, CHECKS = 1, 2, 4
ROOM: Final = SYNC_ROOM | ASYNC_ROOM
# What is said through a NewsPipe, beside notifications: check for jobs; and to the
# listener, with the number of an entry and what there is no room for: I am full, and
# there may be more; I was.
WAKE, MORE, NO_ROOM = "!", "+", "-"
REACTS_WITHIN: Final = 0.03  # seconds from a wake-up to the beginning of a round
CLAIMS_WITHIN: Final = 0.5  # seconds until the claim of a worker that woke up is done


MOST_TURNS: Final = 4  # in which idle workers poll; then several do at once


class WorkerNews:
    """The listener of the host, as the dispatcher of a worker process sees it."""

    def __init__(self, table: ProcessTable, entry: int, pipes: WakeupPipes) -> None:
        self.received = 0  # notifications, and calls to claim
        self._table = table
        self._entry = entry
        self._pipe = pipes.workers[entry]
        self._listener = pipes.listener

    @property
    def hears(self) -> bool:
        """True if notifications arrive."""
        return self._table.listener_hears

    @property
    def jobs_heard(self) -> int:
        """A number that grows with each notification of jobs."""
        return self._table.jobs_heard

    @property
    def behind_heard(self) -> int:
        """The same of jobs that a claim may have passed already."""
        return self._table.behind_heard

    def wait(self, seconds: float) -> list[str]:
        """The texts that arrive within this time; WAKE, or notifications."""
        texts = self._pipe.wait(seconds)
        self.received += len(texts) - texts.count("")  # without our own rings
        return texts

    def ring(self) -> None:
        """End the wait, from another thread."""
        self._pipe.send()

    def set_readiness(self, readiness: int) -> None:
        """Say whether to wake this worker for jobs."""
        self._table.write(self._entry, readiness=readiness)

    def answer(self, heard: int) -> None:
        """A claim that began when this number of notifications was heard is done."""
        self._table.write(self._entry, answered=heard)

    def seconds_until_turn(self, interval: float) -> float:
        """Seconds until this worker is to poll, if it is idle until then; it just did.
        The idle workers of a host take turns, so that one polls in each interval."""
        states = self._table.column("readiness")
        others = (number for number, state in enumerate(states) if state)
        idle = sorted({self._entry, *others})
        turns = min(len(idle), MOST_TURNS)
        turn = idle.index(self._entry) % turns
        left = (turn * interval - time.monotonic()) % (turns * interval)
        return left if left > interval / 20 else left + turns * interval

    def pass_on(self, text: str, room: int) -> None:
        """Have another one woken that has this room, or another host that does not know
        of the jobs: ``MORE`` or ``NO_ROOM``."""
        states = self._table.column("readiness")  # this worker's says that it looks
        if self._table.alone or any(s & room and not s & CHECKS for s in states):
            self._listener.send(f"{text}{self._entry}:{room}")


class WorkerRelay:
    """Wakes one idle worker for a notification of jobs, and the next whenever one has
    no room for what it finds, or does not answer. If nobody has room for jobs of which
    only this host was told, others are to be told."""

    def __init__(self, table: ProcessTable, pipes: WakeupPipes) -> None:
        self.pipe = pipes.listener  # what the workers say
        self.untold: set[str] = set()  # queues with jobs for other hosts
        self._alone_in: set[str] = set()  # queues with jobs that others may not know
        self._table = table
        self._pipes = pipes.workers  # by entry number; other workers listen themselves
        self._asked: set[int] = set()  # entries, for the last notification
        self._awaited: set[int] = set()  # of these; one answer is enough
        self._awaited_since = 0  # jobs_heard
        self._due_at = math.inf  # time.monotonic() until which one must answer
        self._may_extend = False  # that time, for one that woke up and claims
        self._silent: dict[int, int] = {}  # entries, with what they answered last
        table.alone = False

    @property
    def seconds_until_due(self) -> float:
        """Until ``proceed()`` is to be called; infinite if nobody is waited for."""
        return max(0.0, self._due_at - time.monotonic())

    @property
    def workers(self) -> list[int]:
        """The ids of the workers that it wakes."""
        return [*self._table.column("worker")[: len(self._pipes)]]

    def job_arrived(self, queue: str) -> None:
        """There is a job in this queue, of which only this host was told."""
        self._alone_in.add(queue)
        self._table.alone = True
        self.jobs_arrived()

    def jobs_arrived(self, *, behind: bool = False) -> None:
        """There are jobs; ``behind``: perhaps where a claim has passed already."""
        if behind:
            self._table.behind_heard += 1
        self._table.jobs_heard += 1  # first: who goes idle now looks again
        # Who was asked may have looked before; who has not begun sees these, too.
        self._asked = self._not_begun()
        if checking := self._with_room(CHECKS):
            if self._due_at == math.inf:
                self._await(checking)
        elif not self._asked:
            self._wake_next(ROOM)

    def hear(self, texts: Iterable[str]) -> None:
        """Listen to workers that are full."""
        for text in texts:
            if text.startswith(MORE):
                self._table.jobs_heard += 1
                self._asked = self._not_begun()
            if text.startswith((MORE, NO_ROOM)):
                entry, _, room = text[1:].partition(":")
                self._asked.add(int(entry))
                self._wake_next(int(room))

    def proceed(self) -> None:
        """Wake another worker if nobody has answered in time."""
        if time.monotonic() < self._due_at:
            return
        answered = self._table.column("answered")
        checking = self._with_room(CHECKS)
        if any(answered[number] >= self._awaited_since for number in self._awaited):
            if max(answered) >= self._table.jobs_heard:
                self._due_at = math.inf
                self.hear(self.pipe.wait(0))  # who is full says so before it answers
                if self._due_at == math.inf:
                    self._settle()
            elif checking:
                self._await(checking)
            else:
                self._asked = set()
                self._wake_next(ROOM)
        elif self._may_extend and checking & self._awaited:
            self._may_extend = False
            self._due_at = time.monotonic() + CLAIMS_WITHIN
        else:
            self._silent |= {number: answered[number] for number in self._awaited}
            self._wake_next(ROOM)

    def pass_to_all(self, text: str) -> None:
        """Pass this on to every worker."""
        for pid, pipe in zip(self._table.column("pid"), self._pipes, strict=False):
            if pid:
                pipe.send(text)

    def pass_to(self, worker: str, text: str) -> None:
        """Pass this on to the worker with this id."""
        for number, id in enumerate(self._table.column("worker")[: len(self._pipes)]):
            if str(id) == worker:
                self._pipes[number].send(text)

    def _wake_next(self, room: int) -> None:
        """Wake one with some of this room that was not asked yet: rather one that is
        idle, and of these the one that looked last, whose memory is warm."""
        answered = self._table.column("answered")
        readiness = self._table.column("readiness")
        candidates = self._with_room(room) - self._asked
        if not candidates:
            self._due_at = math.inf  # who is busy looks again when it has room
            self.untold |= self._alone_in
            self._settle()
            return
        number = max(candidates, key=lambda n: (readiness[n], answered[n], -n))
        self._await({number}, may_extend=True)
        self._pipes[number].send(WAKE)

    def _settle(self) -> None:
        """Nobody has more for other hosts."""
        if self._alone_in:
            self._alone_in.clear()
            self._table.alone = False

    def _await(self, entries: set[int], *, may_extend: bool = False) -> None:
        self._asked |= entries
        self._awaited = entries
        self._awaited_since = self._table.jobs_heard
        self._due_at = time.monotonic() + REACTS_WITHIN
        self._may_extend = may_extend

    def _not_begun(self) -> set[int]:
        """The worker that was woken, if it has not begun to look."""
        if self._due_at == math.inf or len(self._awaited) != 1:
            return set()
        (number,) = self._awaited
        has_answered = self._table.column("answered")[number] >= self._awaited_since
        if has_answered:
            return set()
        return self._awaited & self._with_room(ROOM)

    def _with_room(self, room: int) -> set[int]:
        """The entries that wait and have some of this room, or those that look anyway
        (``CHECKS``), but for those that were found silent, and have not answered
        since."""
        states = self._table.column("readiness")[: len(self._pipes)]
        numbers = {
            number
            for number, state in enumerate(states)
            if state & room and (room == CHECKS or not state & CHECKS)
        }
        if self._silent:
            answered = self._table.column("answered")
            self._silent = {
                number: last
                for number, last in self._silent.items()
                if answered[number] == last
            }
            numbers.difference_update(self._silent)
        return numbers
