"""One job's share of a bulk operation: it counts jobs, or changes them, for some
seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

import psycopg
from django.db import Error as DatabaseError

from django_jobqueue.domain.context import Context
from django_jobqueue.domain.failures import MESSAGE_LENGTH
from django_jobqueue.domain.states import BulkState
from django_jobqueue.domain.throttle import Throttle
from django_jobqueue.exceptions import Fail, JobControl
from django_jobqueue.operations import bulk, bulk_counting, bulk_steps
from django_jobqueue.store.bulk.chunk import Chunk
from django_jobqueue.store.errors import is_passing
from django_jobqueue.text.sanitizing import clean

# Seconds of one job. Shorter than the grace of a stopping worker, so that a deployment
# waits for its end; another job goes on, there or elsewhere.
SLICE: Final = 15.0
LONGEST_PAUSE: Final = 0.5  # seconds that keep a slot; for longer ones there is a job
LONGEST_COUNT: Final = 5.0  # seconds, of what was started before it was counted


class Slice:
    """As much of an operation as one job does."""

    def __init__(
        self,
        context: Context,
        operation: UUID,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._context = context
        self._id = operation
        self._clock = clock
        self._sleep = sleep

    def work(self) -> None:
        """Chunk after chunk, until the end, or until another job goes on.

        Raises Fail when the operation cannot go on, and what the database raises for
        troubles that pass: the next attempt continues at the cursor.
        """
        try:
            self._work()
        except JobControl:  # cancelled, or the worker stops
            raise
        except Exception as error:
            if self._passes(error):
                raise
            message = clean(f"{type(error).__name__}: {error}", MESSAGE_LENGTH)
            bulk_steps.fail(self._id, message)
            raise Fail(message) from error

    def _work(self) -> None:
        operation = bulk.get(self._id)
        if operation.state == BulkState.DRAFT:
            self._loop(Throttle(None, self._clock()), self._count)
            return
        if operation.total is None and operation.cursor is None:
            bulk_counting.count_for(self._id, LONGEST_COUNT, clock=self._clock)
        over = self._loop(Throttle(operation.per_minute, self._clock()), self._change)
        if over:
            bulk_steps.ended(self._id)

    def _loop(
        self, throttle: Throttle, step: Callable[[Throttle], Chunk | None]
    ) -> bool:
        """Step after step; whether the last of them was the operation's last."""
        end = self._clock() + SLICE
        while True:
            self._context.check_cancelled()
            began = self._clock()
            done = step(throttle)
            if done is None or done.over:
                return done is not None
            now = self._clock()
            pause = throttle.did(changed=done.changed, seconds=now - began, now=now)
            if pause > LONGEST_PAUSE or now + pause > end:
                bulk_steps.hand_over(self._id, job=self._context.id, after=pause)
                return False
            self._sleep(pause)

    def _count(self, throttle: Throttle) -> Chunk | None:
        return bulk_counting.step(
            self._id, max_rows=throttle.size, job=self._context.id
        )

    def _change(self, throttle: Throttle) -> Chunk | None:
        return bulk_steps.step(
            self._id, max_rows=throttle.size, most=throttle.most, job=self._context.id
        )

    def _passes(self, error: Exception) -> bool:
        """Whether the next attempt may succeed, and there is one."""
        cause = error.__cause__
        if not isinstance(error, DatabaseError) or not isinstance(cause, psycopg.Error):
            return False
        most = self._context.max_attempts
        return is_passing(cause) and (most is None or self._context.attempt < most)
