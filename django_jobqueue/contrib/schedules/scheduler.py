"""Fires schedules on time. Every host does; the database lets one of them make each
firing."""

from __future__ import annotations

import logging
import math
import time
import zlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.contrib.schedules import due_schedules, firing_rows
from django_jobqueue.contrib.schedules.due_firings import (
    LATE_AFTER,
    FiringOutcome,
    due_firings,
)
from django_jobqueue.contrib.schedules.due_schedules import BATCH, DueSchedule
from django_jobqueue.contrib.schedules.firing_rows import NewFiring
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedule_rules import parse
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.domain.unique_keys import ScheduleKey, key_of_text
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.enqueueing.stored_options import from_stored
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.processes.loop import Loop
from django_jobqueue.store.connection import Database, OwnConnection
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.partial_batches import BRIEF
from django_jobqueue.store.queue.new_job import NewJob

logger = logging.getLogger("django_jobqueue.maintenance")

AGAIN_AFTER: Final = 60.0  # seconds until the next try of a schedule that failed
# The same of one whose row others hold: another host that fires it, or an open
# transaction. The first wait; twice that after each further try, up to the last one.
LOCKED_FIRST: Final = 0.001
LOCKED_LAST: Final = 1.0
NAMED: Final = 5  # schedules in a line of the log


def loop(connection: OwnConnection, deadlines: DeadlineWatch) -> Scheduler | None:
    """The scheduler of a host, unless this one fires none."""
    return Scheduler(connection, deadlines) if conf.schedules else None


class Wait(NamedTuple):
    """How long a schedule is left alone that did not go on."""

    until: float  # time.monotonic()
    seconds: float


class Scheduler(Loop):
    """Sleeps until the next schedule is due.

    A schedule that cannot be fired, because its row was edited in SQL or is locked,
    does not hold up the others. When the clock was set back, and at the start of a
    host, schedules are planned again whose next moment is not the next one of their
    rule: by a clock that was a day ahead for seconds they would fire nothing for a day.
    """

    name = "scheduler"

    def __init__(self, connection: OwnConnection, deadlines: DeadlineWatch) -> None:
        super().__init__()
        self._connection = connection
        self._deadlines = deadlines
        self._waits: dict[str, Wait] = {}
        self._repaired_at = -math.inf  # the clock was set back then

    def tick(self) -> float:
        """Fire or plan a batch of the schedules that are due."""
        seconds = self._deadlines.next_for(self).of_rooms["firing"]
        if (set_back_at := self._deadlines.clock_set_back_at) > self._repaired_at:
            if self._plan_again():
                seconds = 0.0
            self._repaired_at = set_back_at
        if seconds is None or seconds > 0:
            until_read = self._deadlines.seconds_until_read
            return until_read if seconds is None else min(seconds, until_read)
        now = time.monotonic()
        held = {name: wait for name, wait in self._waits.items() if wait.until > now}
        due = due_schedules.due(self._connection, schedules.names, held)
        waits, now = self._fire(due), time.monotonic()
        self._waits = held | {name: Wait(now + s, s) for name, s in waits.items()}
        return 0.0 if len(due) == BATCH else self._pause()

    def _plan_again(self) -> bool:
        wrong = list(filter(_is_too_late, due_schedules.waiting(self._connection)))
        if wrong:
            names = ", ".join(repr(one.name) for one in wrong[:NAMED])
            logger.warning(
                "%d schedules wait for a moment that is not the next one of their "
                "rule: the database's clock was ahead. They are planned again: %s",
                len(wrong),
                names,
            )
            due_schedules.unplan(self._connection, wrong)
        return bool(wrong)

    def _pause(self) -> float:
        """Seconds until the next of those that can be fired, as far as is known, or
        until the next try of another one."""
        if not self._waits:
            return 0.0  # the deadlines say it
        next_try = min(wait.until for wait in self._waits.values()) - time.monotonic()
        others = due_schedules.next_firing(
            self._connection, schedules.names, self._waits
        )
        return max(0.0, next_try if others is None else min(next_try, others))

    def _fire(self, due: list[DueSchedule]) -> dict[str, float]:
        """Fire these together; if that fails, one by one. Returns for how many seconds
        those are to wait that did not go on."""
        try:
            moved = fire(self._connection, due).schedules
        except Exception as error:
            if isinstance(error, StoreUnavailable) and not is_contended(error):
                raise
            if len(due) == 1 and is_contended(error):
                return {due[0].name: self._wait(due[0].name)}
            if len(due) == 1:
                logger.error("The schedule %r cannot fire: %s", due[0].name, error)
                return {due[0].name: AGAIN_AFTER}
            waits: dict[str, float] = {}
            with self._connection.patience(BRIEF):
                for one in due:
                    waits |= self._fire([one])
            return waits
        return {one.name: self._wait(one.name) for one in due if one.name not in moved}

    def _wait(self, name: str) -> float:
        """Seconds until the next try of one that is locked."""
        before = self._waits.get(name)
        return LOCKED_FIRST if before is None else min(LOCKED_LAST, 2 * before.seconds)


def _is_too_late(one: DueSchedule) -> bool:
    """Whether its rule has a moment from now on that comes before the one it has."""
    try:
        next_at = one.period.next_after(parse(one.rule, one.time_zone), one.now)
    except ValueError:  # it was edited in SQL; the scheduler says so
        return False
    return next_at is not None and one.next_at is not None and next_at < one.next_at


class Fired(NamedTuple):
    """The result of a round."""

    schedules: set[str]  # that were fired or planned
    jobs: list[UUID]


def fire(db: Database, due: Iterable[DueSchedule]) -> Fired:
    """Fire, or plan, these schedules.

    Raises ValueError for a rule that cannot be read, InvalidArguments and TypeError for
    options that no job can have.
    """
    planned, fired = [], []
    for one in due:
        rule = parse(one.rule, one.time_zone)
        if one.next_at is None:
            planned.append((one, one.period.next_after(rule, one.now)))
            continue
        decided = due_firings(rule, one.period, one.missed, one.next_at, one.now)
        firings = [firing_of(one, moment) for moment in decided.fire]
        if decided.missed:
            firings.append(
                NewFiring(
                    fires_at=decided.missed[0],
                    outcome=FiringOutcome.MISSED,
                    number=len(decided.missed),
                )
            )
        fired.append((one, decided.next_at, firings))
    moved = due_schedules.plan(db, planned) if planned else set()
    made = firing_rows.fire(db, fired) if fired else []
    jobs = [id for _, id in made if id is not None]
    return Fired(moved | {name for name, _ in made}, jobs)


def firing_of(schedule: DueSchedule, moment: datetime) -> NewFiring:
    """The firing of a schedule at this moment, with its job. Raises InvalidArguments,
    TypeError."""
    late = schedule.now - moment > LATE_AFTER
    return NewFiring(
        fires_at=moment,
        outcome=FiringOutcome.LATE if late else FiringOutcome.FIRED,
        id=new_id(),
        new=new_job(schedule, moment),
        data=to_json(schedule.data, limit=conf.max_data_bytes),
        overlap_key=_overlap_key(schedule),
    )


def new_job(schedule: DueSchedule, moment: datetime) -> NewJob:
    """The job of a firing."""
    options = Options().but(from_stored(schedule.options))
    new = options.new_job(schedule.job_type, registry.get(schedule.job_type))
    about = {"schedule": schedule.name, "fires_at": moment.isoformat()}
    new = new.but(
        enqueued_by=options.enqueued_by or f"schedule {schedule.name}",
        metadata=options.metadata_as_json(about),
    )
    return replace(
        new,
        run_after=moment + _jitter(schedule, moment),
        unique_key=_unique_key(schedule.job_type, options),
    )


def _unique_key(job_type: str, options: Options) -> UUID | None:
    if options.unique_key is None:
        return None
    return key_of_text(job_type, options.unique_key)


def _overlap_key(schedule: DueSchedule) -> UUID | None:
    if not schedule.skips_overlap:
        return None
    return key_of_text(schedule.job_type, ScheduleKey(schedule.name))


def _jitter(schedule: DueSchedule, moment: datetime) -> timedelta:
    """Spread evenly, and the same whoever fires."""
    if not schedule.jitter:
        return timedelta(0)
    hashed = zlib.crc32(f"{schedule.name} {moment.isoformat()}".encode())
    return schedule.jitter * (hashed / 2**32)
