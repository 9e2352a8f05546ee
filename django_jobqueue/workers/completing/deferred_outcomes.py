"""Defers outcomes that the database refuses, or that wait for a lock, so that they
delay no other."""

from __future__ import annotations

import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import psycopg

from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.store.errors import in_a_line, is_contended
from django_jobqueue.store.queue.finish import Finished

logger = logging.getLogger("django_jobqueue.worker")

FIRST_WAIT: Final = 1.0  # seconds; doubled with each further try
LONGEST_WAIT: Final = 60.0
LONGEST_WAIT_LOCKED: Final = 4.0  # the same for those that wait for a lock
MOST_OF_TYPE: Final = 100  # outcomes; no more jobs of the type are claimed until then
LOG_EVERY: Final = 60.0  # seconds
ARCHIVE_KEY: Final = "jobqueue_archivedjob_pkey"

Item = tuple[Attempt, Finished]


@dataclass(slots=True)
class _Waiting:
    item: Item
    due_at: float  # time.monotonic()
    wait: float  # seconds after the next try
    is_locked: bool  # else the database refused it


class DeferredOutcomes:
    """Outcomes to try again, at growing intervals, until the database takes them.

    ``hold_back`` is called with the job types of which too many wait, whenever they
    change: else a type whose outcomes are always refused would pile up.
    """

    def __init__(self, hold_back: Callable[[frozenset[str]], None]) -> None:
        self._hold_back = hold_back
        self._held_back: frozenset[str] = frozenset()
        self.waiting: dict[Attempt, _Waiting] = {}  # mostly empty
        self._logged_at: dict[str, float] = {}  # by job type; time.monotonic()

    @property
    def items(self) -> list[Item]:
        """All of them."""
        return [waiting.item for waiting in self.waiting.values()]

    @property
    def has_locked(self) -> bool:
        """True if one of them waits for a lock that others hold."""
        return any(waiting.is_locked for waiting in self.waiting.values())

    @property
    def seconds_until_due(self) -> float:
        """Seconds until the next one is to be tried again; there must be one."""
        due = min(waiting.due_at for waiting in self.waiting.values())
        return max(0.0, due - time.monotonic())

    def due(self) -> list[Item]:
        """The outcomes to try again now."""
        now = time.monotonic()
        return [w.item for w in self.waiting.values() if w.due_at <= now]

    def add(self, items: Iterable[Item], why: BaseException) -> None:
        """Defer these, perhaps again."""
        now, is_locked = time.monotonic(), is_contended(why)
        for item in items:
            attempt = item[0]
            held = self.waiting.get(attempt)
            wait = FIRST_WAIT if held is None else held.wait
            longer = min(2 * wait, LONGEST_WAIT_LOCKED if is_locked else LONGEST_WAIT)
            self.waiting[attempt] = _Waiting(item, now + wait, longer, is_locked)
            self._log(attempt.job.job_type, why, now)
        self._count()

    def discard(self, items: Iterable[Item]) -> None:
        """Forget these: they are written."""
        for attempt, _ in items:
            self.waiting.pop(attempt, None)
        self._count()

    def _count(self) -> None:
        counts = Counter(attempt.job.job_type for attempt in self.waiting)
        for job_type in self._logged_at.keys() - counts.keys():
            del self._logged_at[job_type]
            logger.info("The database accepts outcomes of %s again", job_type)
        many = frozenset(name for name, n in counts.items() if n >= MOST_OF_TYPE)
        if many != self._held_back:
            self._held_back = many
            self._hold_back(many)

    def _log(self, job_type: str, why: BaseException, now: float) -> None:
        if now - self._logged_at.get(job_type, -math.inf) >= LOG_EVERY:
            self._logged_at[job_type] = now
            waiting = sum(a.job.job_type == job_type for a in self.waiting)
            logger.error(
                "The database refuses outcomes of %s (%d waiting), will retry: %s: %s",
                job_type,
                waiting,
                type(why).__name__,
                in_a_line(why),
            )


def contended_for(item: Item) -> tuple[str, str]:
    """The locks that an outcome may wait for, by which outcomes are grouped: a follower
    of the job type, the row of the failure group."""
    mark = item[1].outcome.mark
    return item[0].job.job_type, "" if mark is None else str(mark.value)


def without_content(finished: Finished, error: psycopg.Error) -> Finished | None:
    """The same outcome without content that the database cannot store; None if the
    content is not the reason."""
    if getattr(error.diag, "constraint_name", None) == ARCHIVE_KEY:
        # The id was used again, by plain SQL. The archive stays as it is.
        gone = Outcome(verb=Verb.CANCEL, reason="its id is archived already")
        return replace(finished, outcome=gone)
    if not (error.sqlstate or "").startswith(("22", "54")):  # data, limits of a program
        return None
    text = in_a_line(error)
    outcome = finished.outcome
    if outcome.verb is Verb.SUCCEED:
        note = json.dumps({"not_kept": f"the database refused the result: {text}"})
        return replace(finished, outcome=replace(outcome, result=note))
    note = f"the database refused the details of this: {text}"
    failure = outcome.failure and outcome.failure._replace(
        message=note, traceback="", frames=[]
    )
    plain = replace(outcome, reason=note[:500], failure=failure)
    return replace(finished, outcome=plain, log_tail="")
