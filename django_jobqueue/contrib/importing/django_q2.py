"""Reads the schedules of Django-Q2."""

from __future__ import annotations

import ast
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings

from django_jobqueue.contrib.importing.foreign_schedule import (
    ForeignSchedule,
    NotImportable,
    name_of,
)
from django_jobqueue.contrib.importing.foreign_tables import moment_of
from django_jobqueue.domain.schedule_rules import (
    ScheduleRule,
    cron,
    default_time_zone,
    every,
    next_firings,
)

MONTHS_BETWEEN: Final = {"M": 1, "BM": 2, "Q": 3, "Y": 12}
MOST_REPEATS: Final = 10_000
INSTANT: Final = timedelta(seconds=1)
# What a schedule may say of its tasks, beside what they are called with.
LEFT: Final = {
    "timeout": "write @job(timeout=…)",
    "group": "write using(tags=[…])",
    "hook": "write on_complete=…",
}


def read(rows: list[dict[str, Any]], now: datetime) -> list[ForeignSchedule]:
    """The schedules of these rows."""
    return [_schedule(row, now) for row in rows]


def _schedule(row: dict[str, Any], now: datetime) -> ForeignSchedule:
    one = ForeignSchedule(
        id=row["id"],
        name=name_of(row["name"] or row["func"]),
        task=row["func"],
        time_zone=_cluster("time_zone") or default_time_zone(),
        once=row["schedule_type"] == "O",
        enabled=row["repeats"] != 0,
    )
    try:
        next_run = moment_of(row["next_run"])
        if next_run is None:
            raise NotImportable("It has no next run.")
        if one.once:
            one.run_at = next_run
        else:
            first = next_run.replace(microsecond=0)  # as rules have whole seconds
            one.rule = rule_of(row, first, one.time_zone)
            _add_period(one, row["repeats"], first, now)
        _add_call(one, row)
        if row["repeats"] == 0:
            raise NotImportable("It has no more repeats: it is over, or turned off.")
    except NotImportable as error:
        one.refusal = str(error)
    return one


def rule_of(row: dict[str, Any], next_run: datetime, time_zone: str) -> ScheduleRule:
    """The rule that fires when Django-Q2 would. Its days, weeks and months keep the
    time on the wall clock; minutes and hours count. Raises NotImportable."""
    sort = row["schedule_type"]
    try:
        if sort == "I":
            return every(minutes=row["minutes"] or 1, since=next_run)
        if sort == "H":
            return every(hours=1, since=next_run)
        if sort == "C":
            return cron(_croniter_expression(row["cron"] or ""), tz=time_zone)
        if sort == "BW":
            return _fortnightly(next_run, time_zone)
        return cron(_calendar_expression(sort, next_run, time_zone), tz=time_zone)
    except ValueError as error:
        raise NotImportable(f"Its rule cannot be read: {error}.") from None


def _calendar_expression(sort: str, next_run: datetime, time_zone: str) -> str:
    local = next_run.astimezone(ZoneInfo(time_zone))
    clock = f"{local.minute} {local.hour}"
    if local.second:
        clock = f"{local.second} {clock}"
    if sort == "D":
        return f"{clock} * * *"
    if sort == "W":
        return f"{clock} * * {local.isoweekday() % 7}"
    step = MONTHS_BETWEEN.get(sort)
    if step is None:
        raise NotImportable(f"Its type {sort!r} is unknown.")
    if local.day > 28:
        raise NotImportable(
            f"It began on day {local.day}, which Django-Q2 moves to an earlier day in a"
            " short month, for good. Write a rule with the day that you mean; L is the "
            "last one."
        )
    months = sorted((local.month - 1 + add) % 12 + 1 for add in range(0, 12, step))
    every_month = "*" if step == 1 else ",".join(map(str, months))
    return f"{clock} {local.day} {every_month} *"


def _fortnightly(next_run: datetime, time_zone: str) -> ScheduleRule:
    zone = ZoneInfo(time_zone)
    moments = [next_run + timedelta(days=days) for days in range(0, 2 * 366, 14)]
    if len({moment.astimezone(zone).utcoffset() for moment in moments}) > 1:
        raise NotImportable(
            "It fires every second week at the same local time; every(days=14) would "
            f"move by an hour when {time_zone} changes its clocks."
        )
    return every(days=14, since=next_run)


def _croniter_expression(text: str) -> str:
    """Django-Q2 reads it with croniter, where a sixth field is seconds."""
    fields = text.split()
    if len(fields) == 6:
        fields = [fields[5], *fields[:5]]
    if len(fields) >= 5:
        day, weekday = fields[-3], fields[-1]
        stepped = [each for each in (day, weekday) if each.startswith("*/")]
        if stepped and "*" not in (day, weekday):
            raise NotImportable(
                "It fires where either the day of month or the day of week matches; "
                f"with {stepped[0]}, a rule here fires where both do."
            )
    return " ".join(fields)


def _cluster(name: str) -> str:
    """A setting of Django-Q2; empty if it is not set."""
    return (getattr(settings, "Q_CLUSTER", None) or {}).get(name) or ""


def _add_period(
    one: ForeignSchedule, repeats: int, next_run: datetime, now: datetime
) -> None:
    assert one.rule is not None
    first = one.rule.next_after(now)
    if first is not None and first < next_run:
        one.starts = next_run
    if repeats > 0:
        if repeats > MOST_REPEATS:
            raise NotImportable(
                f"It repeats {repeats:,} times more; say when it ends instead."
            )
        one.ends = next_firings(one.rule, next_run - INSTANT, repeats)[-1]


def _add_call(one: ForeignSchedule, row: dict[str, Any]) -> None:
    """The arguments, and what it says of its tasks."""
    args = _literal(row["args"], "args") if row["args"] else ()
    one.args = list(args) if isinstance(args, tuple) else [args]
    one.kwargs = keywords_of(row["kwargs"] or "")
    own = one.kwargs.pop("q_options", {})
    cluster = row.get("cluster") or (own.pop("cluster", "") if own else "")
    if cluster and cluster != _cluster("name"):
        one.options["queue"] = cluster
    if row["hook"]:
        one.notes.append(f"Its hook {row['hook']} is left: {LEFT['hook']}.")
    if parameter := row.get("intended_date_kwarg"):
        one.notes.append(
            f"Its intended_date_kwarg {parameter!r} is left: the handler reads "
            "current_job().fires_at."
        )
    for name in own:
        hint = LEFT.get(name, "see the guide")
        one.notes.append(f"{name} of its q_options is left: {hint}.")


def keywords_of(text: str) -> dict[str, Any]:
    """The keyword arguments of a row: ``{'a': 1}`` or ``a=1``. Raises
    NotImportable."""
    if not text.strip():
        return {}
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = _call_keywords(text)
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise NotImportable("Its kwargs are no keyword arguments.")
    return value


def _call_keywords(text: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError):
        call = None
    if not isinstance(call, ast.Call) or call.args:
        raise NotImportable("Its kwargs cannot be read.")
    return {str(each.arg): _literal(each.value, "kwargs") for each in call.keywords}


def _literal(value: str | ast.expr, name: str) -> Any:
    """The value of a literal; nothing is ever evaluated. Raises NotImportable."""
    try:
        return ast.literal_eval(value)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise NotImportable(f"Its {name} are not only literals.") from None
