"""Long work, done chunk by chunk by jobs of the queue: bulk operations, erasures of
personal data, searches in the background.

All of them are a row that says what is to be done and how far it is, and that one job
at a time works off. A **chunk** is one transaction: it locks the row, does the work of
a fifth of a second, and stores the new place, so that each thing is done once, whatever
dies meanwhile. After some seconds the job hands over to another one, so that no
deployment waits; the row names the job in charge, and the one before does nothing more.
Whoever finds that this job is gone resumes the work, which goes on at its place.

They differ for a reason:

- A bulk operation may be bounded by a rate and by the number that was confirmed, can be
  paused, and a replay can be undone, which is a bulk operation of its own.
- An erasure holds a value that must appear nowhere else: its errors are reported by
  their class alone, and whatever ends it clears the value. It goes through all tables
  again, and waits in between for running jobs.
- A search changes nothing, so its chunks are large; nobody drafts or resumes a failed
  one. It notes the ids of what matches, up to a number.

A move to another database is none of these: no transaction spans two databases, so what
it holds is a row of workers, and a command does it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Final, Generic
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.chunk_throttle import LARGEST, ChunkThrottle
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.failures import MESSAGE_LENGTH
from django_jobqueue.domain.ids import as_id, new_id
from django_jobqueue.domain.registry import OWN_PRIORITY
from django_jobqueue.domain.states import WorkState
from django_jobqueue.enqueueing.by_name import enqueue
from django_jobqueue.exceptions import Fail, InvalidArguments, JobControl, Retry
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.errors import is_passing, server_error
from django_jobqueue.store.work_rows import (
    ACTIVE,
    JOB_TYPE,
    OPEN,
    OVER,
    RESUMABLE,
    Chunk,
    W,
    WorkTable,
    is_queued,
    leaving_out_refused,
)
from django_jobqueue.text.sanitizing import clean

Id = UUID | str
DoChunk = Callable[..., Chunk | None]  # as ``ChunkedWork.chunk``

# Seconds of one job. Shorter than the grace of a stopping worker, so that a deployment
# waits for its end; another job goes on, there or elsewhere.
JOB_SECONDS: Final = 15.0
LONGEST_PAUSE: Final = 0.5  # seconds that keep a slot; for longer ones there is a job
WATCHED_PRIORITY: Final = 50  # of what somebody looks at and waits for
MOST_STEPS: Final = 10  # of priority that one caller's own work goes after the first


class TooManyActive(InvalidArguments):
    """So much of one caller goes on that no more may begin."""


class ChunkedWork(Generic[W]):
    """One sort of such work: its table, and what is its own."""

    table: WorkTable[W]
    noun: ClassVar[str]
    plural: ClassVar[str]
    argument: ClassVar[str]  # of the job, whose value is the id of the row
    largest: ClassVar[int] = LARGEST  # rows of a chunk
    most_active: ClassVar[int] = 10  # of one caller, that jobs work off
    is_watched: ClassVar[bool] = False  # also after it has started
    shows_errors: ClassVar[bool] = True
    leaves_out: ClassVar[bool] = False  # what the database refuses to change
    resumable: ClassVar[Sequence[str]] = RESUMABLE
    stoppable: ClassVar[Sequence[str]] = OPEN

    def chunk(
        self,
        db: DjangoDatabase,
        row: W,
        *,
        max_rows: int,
        most: int | None,
        **more: Any,
    ) -> Chunk | None:
        """Do the next chunk of a row that this transaction has locked, and store the
        new place; None if there is nothing to do.

        ``max_rows`` bounds the rows that are examined, ``most`` those that are changed.
        ``in_parts`` is true if it failed for a row, which it ``leaves_out``, then.
        """
        raise NotImplementedError

    def record(self, verb: str, row: W, by: str, count: int) -> None:
        """Record what was done with it in the audit, without what must not be known."""
        raise NotImplementedError

    def goes_on(self, row: W) -> bool:
        """True if a job should be working on it."""
        return row.state in ACTIVE

    def per_minute(self, row: W) -> int | None:
        """The rate that bounds the changes; None is unlimited."""
        return None

    def before(self, row: W, clock: Callable[[], float]) -> None:
        """Do what comes before the first chunk of a job."""

    def record_end(self, row: W) -> None:
        """Record that it came to its end, and what it really did."""

    @sync_only()
    def get(self, id: Id) -> W:
        """It, by its id, as it is now. Raises LookupError, InvalidArguments."""
        row = self.table.read(DjangoDatabase(), as_id(id))
        if row is None:
            raise LookupError(f"There is no {self.noun} {id}.")
        return row

    @sync_only()
    def pause(self, id: Id, *, by: str = "") -> bool:
        """Let it rest after the chunk at hand, until ``resume``."""
        return self._move(id, ACTIVE, WorkState.PAUSED, "pause", by)

    @sync_only()
    def resume(self, id: Id, *, by: str = "") -> bool:
        """Let another job go on where it is: after a pause or an error, or if its job
        is gone."""
        row = self.get(id)
        states = list(self.resumable)
        if self.is_abandoned(row):
            states += ACTIVE

        def move(db: DjangoDatabase, job: UUID | None) -> bool:
            return self.table.move(db, row.id, states, WorkState.QUEUED, job=job)

        resumed = self.assign(row.id, move)
        if resumed:
            self.record("resume", row, by, 1)
        return resumed

    @sync_only()
    def stop(self, id: Id, *, by: str = "") -> bool:
        """End it after the chunk at hand; what it did stays."""
        return self._move(id, self.stoppable, WorkState.STOPPED, "stop", by)

    @sync_only()
    def discard(self, id: Id) -> bool:
        """Delete a draft; what has started stays."""
        return self.table.discard(DjangoDatabase(), as_id(id))

    def check_room(self, by: str, id: UUID) -> None:
        """Raises TooManyActive if this caller, who is named, has begun so much that
        nobody has worked off yet; ``id`` is what would begin."""
        db = DjangoDatabase()
        if by and self.table.number_active(db, by, id) >= self.most_active:
            raise TooManyActive(
                f"At most {self.most_active} {self.plural} of one caller go on at "
                f"once, and {by} has as many. Wait until one ends, or stop one."
            )

    def _move(self, id: Id, states: Sequence[str], to: str, verb: str, by: str) -> bool:
        row = self.get(id)
        moved = self.table.move(DjangoDatabase(), row.id, states, to)
        if moved:
            self.record(verb, row, by, 1)
        return moved

    def is_abandoned(self, row: W) -> bool:
        """True if it should go on, but its job is gone: cancelled, for example. A
        command that works on it may still be alive, which cannot be known; it does no
        harm if a worker joins in."""
        if not self.goes_on(row):
            return False
        if row.job_id is None:
            return row.state in ACTIVE
        return not is_queued(DjangoDatabase(), row.job_id)

    def assign(
        self,
        id: UUID,
        store: Callable[[DjangoDatabase, UUID | None], str | bool | None],
        *,
        here: bool = False,
        **when: Any,
    ) -> bool:
        """Enqueue a job that works it off, if ``store`` makes that the job of the row;
        both are one transaction. With ``here`` the caller works it off, and there is no
        job."""
        db, job = DjangoDatabase(), None if here else new_id()

        def assign() -> bool:
            stored = store(db, job)
            if stored and job:
                is_watched = self.is_watched or stored == WorkState.DRAFT
                when.update(self._priority(db, id, is_watched=is_watched))
                enqueue(JOB_TYPE, {self.argument: str(id)}, id=job, **when)
            return bool(stored)

        return db.in_transaction(assign)

    def _priority(
        self, db: DjangoDatabase, id: UUID, *, is_watched: bool
    ) -> dict[str, int]:
        """Of its next job: lower for each that the same caller began earlier, so that
        nobody waits for all that somebody else began."""
        by = self.get(id).created_by
        steps = self.table.number_active(db, by, id, earlier=True)
        if not steps and not is_watched:
            return {}  # as the job type says, or an override of it
        most = WATCHED_PRIORITY if is_watched else OWN_PRIORITY
        return {"priority": most - min(steps, MOST_STEPS)}

    def hand_over(self, id: UUID, *, job: UUID | None, after: float = 0.0) -> bool:
        """Let another job go on with it, in so many seconds; False if ``job`` does not
        work it off."""

        def store(db: DjangoDatabase, to: UUID | None) -> str | None:
            return self.table.hand_over(db, id, job=job, to=to)

        return self.assign(id, store, run_after=timedelta(seconds=after))

    def do_chunk(
        self,
        id: UUID,
        *,
        max_rows: int,
        most: int | None = None,
        job: UUID | None = None,
        chunk: DoChunk | None = None,
    ) -> Chunk | None:
        """Do one chunk, in a transaction of its own; None if it does not go on, or
        another job than this one works it off."""
        db = DjangoDatabase()

        def do(**more: Any) -> Chunk | None:
            row = self.table.lock(db, id)
            if row is None or not self.goes_on(row):
                return None
            if job is not None and row.job_id != job:
                return None
            return (chunk or self.chunk)(db, row, max_rows=max_rows, most=most, **more)

        if chunk is not None or not self.leaves_out:
            return db.in_transaction(do)
        name = f"{self.noun} {id}"
        return leaving_out_refused(db, do, name, shows_errors=self.shows_errors)

    def run_for(
        self,
        id: UUID,
        seconds: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        chunk: DoChunk | None = None,
    ) -> int:
        """Do chunks here for about so long, and none that would take longer; returns
        how many rows or jobs were changed."""
        now = began = clock()
        end, changed = now + seconds, 0
        throttle = self._throttle(self.get(id), now)
        while now + 2 * (now - began) < end:  # the next one is up to twice as large
            done = self.do_chunk(
                id, max_rows=throttle.size, most=throttle.most, chunk=chunk
            )
            if done is None:
                break
            changed += done.changed
            began, now = now, clock()
            pause = throttle.did(changed=done.changed, seconds=now - began, now=now)
            if done.over:
                self._end(id)
            if done.over or max(pause, done.pause) > seconds:
                break
        return changed

    def work_here(
        self,
        id: UUID,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[Chunk]:
        """Do chunk after chunk here, and yield each: until the end, until somebody
        pauses or stops it, or until it has to wait, which a worker does from then on.
        """
        throttle = self._throttle(self.get(id), clock())
        while True:
            began = clock()
            done = self.do_chunk(id, max_rows=throttle.size, most=throttle.most)
            if done is None:
                return
            now = clock()
            if done.over:
                self._end(id)
            elif done.pause:
                self.hand_over(id, job=self.get(id).job_id, after=done.pause)
            yield done
            if done.over or done.pause:
                return
            sleep(throttle.did(changed=done.changed, seconds=now - began, now=now))

    def run_job(
        self,
        context: Context,
        id: UUID,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Do as much as one job does: until the end, or until another one goes on.

        Raises Fail when it cannot go on, and Retry for an error that passes: the next
        attempt continues at the same place.
        """
        cause: Exception | None = None
        try:
            self._run_job(context, id, clock, sleep)
            return
        except JobControl:  # cancelled, or the worker stops
            raise
        except Exception as error:
            text = self._error_text(error)
            refusal, most = server_error(error), context.max_attempts
            passes = refusal is not None and is_passing(refusal)
            passes = passes and (most is None or context.attempt < most)
            if self.shows_errors:
                cause = error
        if passes:
            raise Retry(text) from cause
        self.fail(id, text)
        raise Fail(text) from cause

    def _run_job(
        self,
        context: Context,
        id: UUID,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        row = self.table.read(DjangoDatabase(), id)
        # A draft that was discarded; or another job works it off, since it was started.
        if row is None or row.job_id != context.id:
            return
        self.before(row, clock)
        throttle = self._throttle(row, clock())
        end = clock() + JOB_SECONDS
        while True:
            context.check_cancelled()
            began = clock()
            done = self.do_chunk(
                id, max_rows=throttle.size, most=throttle.most, job=context.id
            )
            if done is None:
                return
            if done.over:
                self._end(id)
                return
            now = clock()
            pause = throttle.did(changed=done.changed, seconds=now - began, now=now)
            pause = max(pause, done.pause)
            if pause > LONGEST_PAUSE or now + pause > end:
                self.hand_over(id, job=context.id, after=pause)
                return
            sleep(pause)

    def fail(self, id: UUID, error: str) -> bool:
        """Store that it cannot go on, until somebody resumes it; a draft stays one."""
        db = DjangoDatabase()
        return self.table.move(db, id, ACTIVE, WorkState.FAILED, error=error)

    def _end(self, id: UUID) -> None:
        row = self.table.read(DjangoDatabase(), id)
        if row is not None and row.state in OVER:  # no draft, which somebody discards
            self.record_end(row)

    def _throttle(self, row: W, now: float) -> ChunkThrottle:
        rate = None if row.state == WorkState.DRAFT else self.per_minute(row)
        return ChunkThrottle(rate, now, largest=self.largest)

    def _error_text(self, error: Exception) -> str:
        """By its class alone where its text may name a value: what a job raises is kept
        for long."""
        name = type(error).__name__
        if self.shows_errors:
            return clean(f"{name}: {error}", MESSAGE_LENGTH)
        code = getattr(error.__cause__, "sqlstate", None) or ""
        return f"{name} {code}".strip()
