"""``jobqueue schedules``: the schedules, or their next firings."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from itertools import islice, repeat
from typing import Any, Final

from django.core.management.base import CommandParser

from django_jobqueue.domain.schedules import schedules as declared
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.subcommand import Subcommand, positive
from django_jobqueue.management.jobqueue.subcommand_verbs import add_format
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.stats import current_state, schedules
from django_jobqueue.stats.schedules import (
    ScheduleNow,
    ScheduleState,
    period_of,
    rule_text,
)
from django_jobqueue.text import numbers, timezones
from django_jobqueue.text.redaction import mask_json

COLUMNS: Final = (
    Column("Schedule", breaks=True),
    Column("State"),
    Column("Rule", cut=True),
    Column("Time zone"),
    Column("Next firing"),
    Column("Last firing"),
    Column("Note", cut=True),
)
NEXT: Final = (
    Column("Schedule", breaks=True),
    Column("Moment"),
    Column("UTC"),
    Column("From now", right=True),
)


class Schedules(Subcommand):
    """Lists schedules."""

    name = "schedules"
    summary = "List schedules, or what fires next."
    description = """\
List the schedules that the code declares or operators made: whether they fire,
by which rule, when next, and how their last firing ended. With --next, list the
next firings of all schedules together, in their order.

  jobqueue schedules
  jobqueue schedules --next 10
  jobqueue schedules --format json

One schedule is shown and changed by jobqueue schedule NAME."""
    epilog = """\
--format json prints a list of {name, job_type, origin (code or admin), state
(active, paused, overdue, broken, ended or gone), rule, time_zone, data (secrets
masked), code (the rule, time_zone and data without overrides), overridden
(names), next_at, last ({fires_at, outcome, number, by, job_id, job_status}),
bad_end (failed or expired: the end of its last finished job), is_served (a
living worker claims its jobs), paused_by, paused_reason, paused_at, gone_at}.
With --next it prints a list of {schedule, fires_at, local, time_zone}."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add how many firings to list, and --format."""
        parser.add_argument(
            "--next",
            metavar="N",
            type=positive,
            help="List the next N firings of all schedules instead.",
        )
        add_format(parser)

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """List them."""
        current = read()
        if options["next"] is not None:
            _show_next(console, options, current)
        elif options["format"] == "json":
            console.print(as_json([as_object(one) for one in current]))
        elif current:
            console.table(COLUMNS, [Row(_cells(one)) for one in current])
        else:
            console.print(f"No schedules.{_not_yet_planned()}")


def _not_yet_planned() -> str:
    """Those of this code, as a sentence that follows: a host writes them."""
    if not declared.names:
        return ""
    names = ", ".join(sorted(declared.names)[:5])
    more = ", …" if len(declared.names) > 5 else ""
    return f" Those of the code begin when runworkers starts: {names}{more}."


def read() -> list[ScheduleNow]:
    """All schedules, by name."""
    present = current_state.read()
    return schedules.read(present.claimers(), present.time)


def as_object(one: ScheduleNow) -> dict[str, Any]:
    """A schedule for programs; the keys are stable."""
    row, newest = one.row, one.status.newest
    sensitive = row.job_type.sensitive
    return {
        "name": row.name,
        "job_type": row.job_type_id,
        "origin": row.origin,
        "state": one.state.value,
        "rule": _rule(one),
        "time_zone": row.time_zone_in_force,
        "data": mask_json(row.data_in_force, sensitive),
        "code": {
            "rule": row.rule,
            "time_zone": row.time_zone,
            "data": mask_json(row.data, sensitive),
        },
        "overridden": overridden(one),
        "next_at": one.next_at,
        "last": None
        if newest is None
        else {
            "fires_at": newest.fires_at,
            "outcome": newest.outcome,
            "number": newest.number,
            "by": newest.by,
            "job_id": newest.job_id,
            "job_status": newest.status,
        },
        "bad_end": one.bad_end or None,
        "is_served": one.is_served,
        "paused_by": row.paused_by,
        "paused_reason": row.paused_reason,
        "paused_at": row.paused_at,
        "gone_at": row.gone_at,
    }


def overridden(one: ScheduleNow) -> list[str]:
    """What operators override."""
    overrides = {
        "rule": one.row.rule_override,
        "time_zone": one.row.time_zone_override,
        "data": one.row.data_override,
    }
    return [name for name, value in overrides.items() if value is not None]


def next_firings(one: ScheduleNow, after: datetime) -> Iterator[datetime]:
    """The moments at which a schedule fires from now on; none if it does not fire."""
    moment = one.next_at
    if moment is None or one.rule is None:
        return
    period = period_of(one.row)
    while moment is not None:
        yield moment
        moment = period.next_after(one.rule, max(moment, after))


def in_zone(one: ScheduleNow, moment: datetime) -> str:
    """A moment on the clock of the schedule's zone."""
    local = moment.astimezone(schedules.zone_of(one.row))
    return f"{local:%Y-%m-%d %H:%M:%S %Z}"


def from_now(moment: datetime) -> str:
    """How far a moment is away."""
    seconds = (moment - timezones.now()).total_seconds()
    return f"in {numbers.span(seconds)}" if seconds > 0 else "now"


def last_text(one: ScheduleNow) -> str:
    """The newest firing: how long ago, its outcome, and the status of its job."""
    newest = one.status.newest
    if newest is None:
        return ""
    seconds = (timezones.now() - newest.fires_at).total_seconds()
    parts = [f"{numbers.span(seconds)} ago", newest.outcome]
    if newest.job_id is not None:
        parts.append(f"job {newest.status or 'pruned'}")
    return ", ".join(parts)


def notes(one: ScheduleNow) -> Iterator[str]:
    """What is worth a word beside the state."""
    if one.state == ScheduleState.BROKEN:
        yield one.problem
    if one.state == ScheduleState.PAUSED:
        yield ": ".join(filter(None, (one.row.paused_by, one.row.paused_reason)))
    if one.fires and not one.is_served:
        yield "no living worker claims its jobs"
    if one.bad_end:
        yield f"its last job {one.bad_end}"


def _rule(one: ScheduleNow) -> str:
    return one.row.rule_in_force if one.rule is None else rule_text(one.rule)


def _overrides(one: ScheduleNow) -> str:
    names = ", ".join(overridden(one)).replace("_", " ")
    return f"overridden: {names}" if names else ""


def _cells(one: ScheduleNow) -> list[str]:
    return [
        one.row.name,
        one.state.value,
        _rule(one),
        one.row.time_zone_in_force,
        in_zone(one, one.next_at) if one.next_at else "-",
        last_text(one) or "-",
        "; ".join(filter(None, (*notes(one), _overrides(one)))) or "-",
    ]


def _show_next(
    console: Console, options: dict[str, Any], current: list[ScheduleNow]
) -> None:
    """The next firings of all, in their order."""
    now = timezones.now()
    each = (
        zip(next_firings(one, now), repeat(one.row.name), repeat(one), strict=False)
        for one in current
    )
    merged = heapq.merge(*each, key=lambda firing: firing[:2])
    firings = list(islice(merged, options["next"]))
    if options["format"] == "json":
        console.print(
            as_json(
                [
                    {
                        "schedule": name,
                        "fires_at": moment,
                        "local": moment.astimezone(schedules.zone_of(one.row)),
                        "time_zone": one.row.time_zone_in_force,
                    }
                    for moment, name, one in firings
                ]
            )
        )
    elif firings:
        rows = [
            [name, in_zone(one, at), f"{at:%Y-%m-%d %H:%M:%S}", from_now(at)]
            for at, name, one in firings
        ]
        console.table(NEXT, [Row(row) for row in rows])
    else:
        console.print("No schedule fires.")
