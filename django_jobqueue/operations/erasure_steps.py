"""The steps of erasures: one job's share of them, and those of a command."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import UUID

import psycopg
from django.db import Error as DatabaseError

from django_jobqueue.domain.context import Context
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.states import BulkState
from django_jobqueue.domain.throttle import Throttle
from django_jobqueue.exceptions import Fail, JobControl, Retry
from django_jobqueue.operations.bulk_slice import LONGEST_PAUSE, SLICE
from django_jobqueue.operations.erasure_chunks import step, work_for
from django_jobqueue.operations.personal_data import enqueue_job, get, record_end
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.erasing import erasure_rows
from django_jobqueue.store.erasing.erase_chunk import Done
from django_jobqueue.store.errors import is_passing

PASSING: float = 5.0  # seconds until another attempt


class ErasureSlice:
    """As much of an erasure as one job does."""

    def __init__(
        self,
        context: Context,
        erasure: UUID,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._context = context
        self._id = erasure
        self._clock = clock
        self._sleep = sleep

    def work(self) -> None:
        """Chunk after chunk, until the end, or until another job goes on.

        An error is told by its class alone: the database may name the value in it, and
        what a job raises is kept. Raises Fail or Retry.
        """
        try:
            self._work()
        except JobControl:  # cancelled, or the worker stops
            raise
        except Exception as error:
            cause = error.__cause__
            code = getattr(cause, "sqlstate", None) or ""
            text = f"{type(error).__name__} {code}".strip()
            problem: JobControl = Fail(text)
            if self._passes(error):
                problem = Retry(after=PASSING, reason=text)
        else:
            return
        if isinstance(problem, Fail):
            erasure_rows.fail(DjangoDatabase(), self._id, text)
        raise problem

    def _work(self) -> None:
        end = self._clock() + SLICE
        throttle = Throttle(None, self._clock())
        while True:
            self._context.check_cancelled()
            began = self._clock()
            done = step(self._id, max_rows=throttle.size, job=self._context.id)
            if done is None or done.over:
                if done is not None:
                    ended(self._id)
                return
            now = self._clock()
            pause = throttle.did(changed=0, seconds=now - began, now=now)
            pause = max(pause, done.pause)
            if pause > LONGEST_PAUSE or now + pause > end:
                hand_over(self._id, job=self._context.id, after=pause)
                return
            self._sleep(pause)

    def _passes(self, error: Exception) -> bool:
        """Whether the next attempt may succeed, and there is one."""
        cause = error.__cause__
        if not isinstance(error, DatabaseError) or not isinstance(cause, psycopg.Error):
            return False
        most = self._context.max_attempts
        return is_passing(cause) and (most is None or self._context.attempt < most)


def work_here(
    id: UUID,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Done]:
    """Do chunk after chunk here, and yield each, until the end; or until running jobs
    have to be waited for, which a worker does from then on."""
    throttle = Throttle(None, clock())
    while True:
        began = clock()
        done = step(id, max_rows=throttle.size)
        if done is None:
            return
        now = clock()
        if done.over:
            ended(id)
        if done.pause:
            hand_over(id, job=get(id).job_id, after=done.pause)
        yield done
        if done.over or done.pause:
            return
        sleep(throttle.did(changed=0, seconds=now - began, now=now))


def run_here(id: UUID, seconds: float) -> None:
    """Do chunks for about so long, where no worker does."""
    work_for(id, seconds)
    erasure = get(id)
    if erasure.state == BulkState.DONE:
        ended(id)


def ended(id: UUID) -> None:
    """Record that an erasure came to its end; of a draft nothing."""
    erasure = get(id)
    if erasure.state == BulkState.DONE:
        record_end(erasure, erasure.created_by)


def hand_over(id: UUID, *, job: UUID | None, after: float) -> bool:
    """Let a new job go on with it, in so many seconds; False if ``job`` does not work
    it off."""
    db, successor = DjangoDatabase(), new_id()

    def hand() -> bool:
        handed = erasure_rows.hand_over(db, id, job=job, to=successor)
        if handed:
            enqueue_job(id, successor, run_after=timedelta(seconds=after))
        return handed

    return db.in_transaction(hand)
