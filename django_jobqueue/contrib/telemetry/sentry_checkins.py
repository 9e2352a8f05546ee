"""Check-ins of schedules with Sentry Crons: one for each firing, from the enqueue to
the end of its job."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from sentry_sdk.crons import capture_checkin

from django_jobqueue.domain.schedule_rules import Every, parse
from django_jobqueue.observers import Enqueue, Firing

CHECKIN: Final = "sentry-checkin"  # the key in a job's trace: its id, and the monitor
UNITS: Final = {
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
}


def remembered(enqueue: Enqueue) -> dict[str, str]:
    """The memory of a firing's job. Followers inherit it, so the id says whose it
    is."""
    firing = enqueue.firing
    if firing is None or _schedule_of(firing) is None:
        return {}
    return {CHECKIN: f"{enqueue.ids[0].hex} {firing.schedule}"}


def begin(enqueue: Enqueue) -> None:
    """A schedule has enqueued its job."""
    firing = enqueue.firing
    if firing is None or (schedule := _schedule_of(firing)) is None:
        return
    capture_checkin(
        monitor_slug=firing.schedule,
        check_in_id=enqueue.ids[0].hex,
        status="in_progress",
        monitor_config={"schedule": schedule, "timezone": firing.time_zone},
    )


def end(trace: Mapping[str, str], id: UUID, *, ok: bool) -> None:
    """A job has ended; if a schedule has enqueued it, so has the check-in."""
    checkin, _, schedule = trace.get(CHECKIN, "").partition(" ")
    if checkin == id.hex:
        status = "ok" if ok else "error"
        capture_checkin(monitor_slug=schedule, check_in_id=checkin, status=status)


def _schedule_of(firing: Firing) -> dict[str, Any] | None:
    """The rule in Sentry's words; None if it has none for it, such as seconds."""
    rule = parse(firing.rule, firing.time_zone)
    if isinstance(rule, Every):
        for unit, length in UNITS.items():
            if not rule.interval % length:
                value = rule.interval // length
                return {"type": "interval", "value": value, "unit": unit}
        return None
    expression = rule.expression
    if len(expression.split()) != 5 or set("L#") & set(expression):
        return None
    return {"type": "crontab", "value": expression}
