"""Fires schedules on time. Every host does; the database lets one of them make each
firing."""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.due_firings import (
    LATE_AFTER,
    FiringOutcome,
    due_firings,
)
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedule_rules import parse
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.domain.unique_keys import key_of_text
from django_jobqueue.enqueueing.options import Options, from_stored
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.processes.loop import Loop
from django_jobqueue.store.connection import Database, OwnConnection
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.schedules import fire as fire_store
from django_jobqueue.store.schedules.fire import BATCH, DueSchedule, NewFiring

logger = logging.getLogger("django_jobqueue.maintenance")

AGAIN_AFTER: Final = 60.0  # seconds until the next try of a schedule that failed
# Seconds until the next look while a schedule is due that failed, and while others
# hold the rows of all that are due.
FAILED_PAUSE: Final = 1.0
LOCKED_PAUSE: Final = 0.001


class Scheduler(Loop):
    """Sleeps until the next schedule is due.

    A schedule that cannot be fired, because its row was edited in SQL, does not hold up
    the others.
    """

    name = "scheduler"

    def __init__(self, connection: OwnConnection, deadlines: DeadlineWatch) -> None:
        super().__init__()
        self._connection = connection
        self._deadlines = deadlines
        self._failed: dict[str, float] = {}  # when to try again; time.monotonic()

    def tick(self) -> float:
        """Fire or plan a batch of the schedules that are due."""
        seconds = self._deadlines.next_for(self).firing
        if seconds is None or seconds > 0:
            until_read = self._deadlines.seconds_until_read
            return until_read if seconds is None else min(seconds, until_read)
        now = time.monotonic()
        self._failed = {name: at for name, at in self._failed.items() if at > now}
        due = fire_store.due(self._connection, schedules.names, self._failed)
        self._fire(due)
        if len(due) == BATCH:
            return 0.0
        if self._failed:
            return FAILED_PAUSE
        return 0.0 if due else LOCKED_PAUSE

    def _fire(self, due: list[DueSchedule]) -> None:
        """Fire these together; if that fails, one by one."""
        try:
            fire(self._connection, due)
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(due) == 1:
                self._give_up(due[0], error)
                return
            for one in due:
                self._fire([one])

    def _give_up(self, one: DueSchedule, error: Exception) -> None:
        """For a while, and say why."""
        self._failed[one.name] = time.monotonic() + AGAIN_AFTER
        logger.error("The schedule %r cannot fire: %s", one.name, error)


def fire(db: Database, due: Iterable[DueSchedule]) -> list[UUID]:
    """Fire, or plan, these schedules; returns the jobs that were made.

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
    if planned:
        fire_store.plan(db, planned)
    made = fire_store.fire(db, fired) if fired else []
    return [id for _, id in made if id is not None]


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
    return replace(
        new,
        run_after=moment + _jitter(schedule, moment),
        enqueued_by=new.enqueued_by or f"schedule {schedule.name}",
        metadata=options.metadata_as_json(about),
        unique_key=_unique_key(schedule.job_type, options),
    )


def _unique_key(job_type: str, options: Options) -> UUID | None:
    if options.unique_key is None:
        return None
    return key_of_text(job_type, options.unique_key)


def _overlap_key(schedule: DueSchedule) -> UUID | None:
    if not schedule.skips_overlap:
        return None
    return key_of_text(schedule.job_type, f"schedule {schedule.name}")


def _jitter(schedule: DueSchedule, moment: datetime) -> timedelta:
    """Spread evenly, and the same whoever fires."""
    if not schedule.jitter:
        return timedelta(0)
    hashed = zlib.crc32(f"{schedule.name} {moment.isoformat()}".encode())
    return schedule.jitter * (hashed / 2**32)
