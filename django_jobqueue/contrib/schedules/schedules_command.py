"""``jobqueue schedules``: the schedules, or their next firings."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from itertools import islice, repeat
from typing import Any, Final, NamedTuple

from django_jobqueue.contrib.schedules.schedule_states import (
    ScheduleNow,
    ScheduleState,
    period_of,
    rule_text,
    zone_of,
)
from django_jobqueue.contrib.schedules.schedule_states import read as read_all
from django_jobqueue.domain.schedules import schedules as declared
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand
from django_jobqueue.stats import current_state
from django_jobqueue.text import numbers, timezones
from django_jobqueue.text.redaction import mask_json
from django_jobqueue.verbs.columns import RIGHT, Column, Listing, only_json
from django_jobqueue.verbs.declarations import Argument, Takes


def _rule(one: ScheduleNow) -> str:
    return one.row.rule_in_force if one.rule is None else rule_text(one.rule)


def _code(one: ScheduleNow) -> dict[str, Any]:
    row = one.row
    data = mask_json(row.data, row.job_type.sensitive)
    return {"rule": row.rule, "time_zone": row.time_zone, "data": data}


def _last(one: ScheduleNow) -> dict[str, Any] | None:
    newest = one.status.newest
    if newest is None:
        return None
    names = ("fires_at", "outcome", "number", "by", "job_id")
    values = {name: getattr(newest, name) for name in names}
    return {**values, "job_status": newest.status}


def _next_at(one: ScheduleNow) -> str | None:
    return in_zone(one, one.next_at) if one.next_at else None


def _note(one: ScheduleNow) -> str:
    names = ", ".join(overridden(one)).replace("_", " ")
    return "; ".join(
        filter(None, (*notes(one), f"overridden: {names}" if names else ""))
    )


def overridden(one: ScheduleNow) -> list[str]:
    overrides = {
        "rule": one.row.rule_override,
        "time_zone": one.row.time_zone_override,
        "data": one.row.data_override,
    }
    return [name for name, value in overrides.items() if value is not None]


def next_firings(one: ScheduleNow, after: datetime) -> Iterator[datetime]:
    """The moments at which a schedule fires from now on; none if it does not fire."""
    if one.next_at is not None and one.rule is not None:
        yield one.next_at
        yield from period_of(one.row).firings(one.rule, max(one.next_at, after))


def in_zone(one: ScheduleNow, moment: datetime) -> str:
    local = moment.astimezone(zone_of(one.row))
    return f"{local:%Y-%m-%d %H:%M:%S %Z}"


def from_now(moment: datetime) -> str:
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
    """The remarks beside the state."""
    if one.state == ScheduleState.BROKEN:
        yield one.problem
    if one.state == ScheduleState.PAUSED:
        yield ": ".join(filter(None, (one.row.paused_by, one.row.paused_reason)))
    if one.fires and not one.is_served:
        yield "no living worker claims its jobs"
    if one.bad_end:
        yield f"its last job {one.bad_end}"


SCHEDULES: Final = Listing(
    (
        Column("name", "Schedule", value="row.name", breaks=True),
        Column("job_type", value="row.job_type_id"),
        Column("origin", value="row.origin", note="code or admin"),
        Column(
            "state",
            "State",
            value="state.value",
            note="active, paused, overdue, broken, ended or gone",
        ),
        Column("rule", "Rule", value=_rule, cut=True),
        Column("time_zone", "Time zone", value="row.time_zone_in_force"),
        Column(
            "data",
            value=lambda one: mask_json(
                one.row.data_in_force, one.row.job_type.sensitive
            ),
            note="secrets masked",
        ),
        Column(
            "code", value=_code, note="the rule, time_zone and data without overrides"
        ),
        Column("overridden", value=overridden, note="names"),
        Column("next_at"),
        Column("", "Next firing", value=_next_at),
        Column("", "Last firing", value=last_text),
        Column(
            "last",
            value=_last,
            note="{fires_at, outcome, number, by, job_id, job_status}",
        ),
        Column(
            "bad_end",
            value=lambda one: one.bad_end or None,
            note="failed or expired: the end of its last finished job",
        ),
        Column("is_served", note="a living worker claims its jobs"),
        *only_json("paused_by paused_reason paused_at gone_at", "row"),
        Column("", "Note", value=_note, cut=True),
    )
)
NEXT: Final = Listing(
    (
        Column("schedule", "Schedule", value="name", breaks=True),
        Column("", "Moment", value=lambda one: in_zone(one.of, one.at)),
        Column("fires_at", value="at"),
        Column("", "UTC", value=lambda one: f"{one.at:%Y-%m-%d %H:%M:%S}"),
        Column(
            "local",
            value=lambda one: one.at.astimezone(zone_of(one.of.row)),
        ),
        Column("time_zone", value="of.row.time_zone_in_force"),
        Column("", "From now", RIGHT, lambda one: from_now(one.at)),
    ),
    "No schedule fires.",
)


class Schedules(Subcommand):
    name = "schedules"
    summary = "List schedules, or the next firings."
    description = """\
List the schedules that the code declares or operators made: whether they fire,
by which rule, when next, and how their last firing ended. With --next, list the
next firings of all schedules together, in order.

  jobqueue schedules
  jobqueue schedules --next 10
  jobqueue schedules --format json

To show or change one schedule, use jobqueue schedule NAME."""
    json = f"""a list of {SCHEDULES.keys}. With --next it prints a list of
    {NEXT.keys}."""
    arguments = (
        Argument(
            "next", "List the next N firings of all schedules instead.", Takes.POSITIVE
        ),
    )

    def run(self, console: Console, options: Options) -> None:
        current = read()
        if options["next"] is not None:
            console.rows(NEXT, islice(_merged(current), options["next"]))
        else:
            none = f"No schedules.{_not_yet_planned()}"
            console.rows(SCHEDULES._replace(empty=none), current)


def _not_yet_planned() -> str:
    """Those of this code, as a sentence that follows: a host writes them."""
    if not declared.names:
        return ""
    names = ", ".join(sorted(declared.names)[:5])
    more = ", …" if len(declared.names) > 5 else ""
    return f" Those of the code begin when runworkers starts: {names}{more}."


def read() -> list[ScheduleNow]:
    present = current_state.read()
    return read_all(present.claimers(), present.time)


class NextFiring(NamedTuple):
    at: datetime
    name: str
    of: ScheduleNow


def _merged(current: list[ScheduleNow]) -> Iterator[NextFiring]:
    now = timezones.now()
    each = (
        map(NextFiring, next_firings(one, now), repeat(one.row.name), repeat(one))
        for one in current
    )
    return heapq.merge(*each, key=lambda firing: firing[:2])
