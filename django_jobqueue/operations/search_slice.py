"""One job's share of a search: it examines jobs for some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

import psycopg
from django.db import Error as DatabaseError

from django_jobqueue.domain.context import Context
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.states import SearchState
from django_jobqueue.domain.throttle import Throttle
from django_jobqueue.exceptions import Fail, JobControl, Retry
from django_jobqueue.operations.bulk import COUNTING_PRIORITY
from django_jobqueue.operations.bulk_slice import SLICE
from django_jobqueue.operations.job_searches import enqueue_job, step
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.errors import is_passing
from django_jobqueue.store.searching import search_rows

# Rows of a chunk, which are only read. What is kept of them fits into work_mem.
LARGEST: Final = 50_000
PASSING: Final = 5.0  # seconds until another attempt


class SearchSlice:
    """As much of a search as one job does."""

    def __init__(
        self,
        context: Context,
        search: UUID,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._context = context
        self._id = search
        self._clock = clock
        self._sleep = sleep

    def work(self) -> None:
        """Chunk after chunk, until the end, or until another job goes on.

        An error is told by its class alone: the database may name the value in it, and
        what a job raises is kept for long. Raises Fail or Retry.
        """
        try:
            self._work()
        except JobControl:  # cancelled, or the worker stops
            raise
        except Exception as error:
            code = getattr(error.__cause__, "sqlstate", None) or ""
            text = f"{type(error).__name__} {code}".strip()
            problem: JobControl = Fail(text)
            if self._passes(error):
                problem = Retry(after=PASSING, reason=text)
        else:
            return
        if isinstance(problem, Fail):
            search_rows.end(DjangoDatabase(), self._id, SearchState.FAILED, text)
        raise problem

    def _work(self) -> None:
        end = self._clock() + SLICE
        throttle = Throttle(None, self._clock(), largest=LARGEST)
        while True:
            self._context.check_cancelled()
            began = self._clock()
            done = step(self._id, max_rows=throttle.size, job=self._context.id)
            if done is None or done.over:
                return
            now = self._clock()
            pause = throttle.did(changed=0, seconds=now - began, now=now)
            if now + pause > end:
                self._hand_over()
                return
            self._sleep(pause)

    def _hand_over(self) -> None:
        db, job = DjangoDatabase(), new_id()

        def hand() -> None:
            if search_rows.hand_over(db, self._id, job=self._context.id, to=job):
                enqueue_job(self._id, job, priority=COUNTING_PRIORITY)

        db.in_transaction(hand)

    def _passes(self, error: Exception) -> bool:
        """Whether the next attempt may succeed, and there is one."""
        cause = error.__cause__
        if not isinstance(error, DatabaseError) or not isinstance(cause, psycopg.Error):
            return False
        most = self._context.max_attempts
        return is_passing(cause) and (most is None or self._context.attempt < most)
