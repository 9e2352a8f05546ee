"""Reads the schedules of django-celery-beat."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings

from django_jobqueue.contrib.importing.celery_crontab import FIELDS, cron_of
from django_jobqueue.contrib.importing.foreign_schedule import (
    ForeignSchedule,
    NotImportable,
    name_of,
)
from django_jobqueue.contrib.importing.foreign_tables import moment_of
from django_jobqueue.domain.option_checks import OURS
from django_jobqueue.domain.schedule_rules import default_time_zone, every

CLEANUP: Final = "celery.backend_cleanup"
LONG: Final = timedelta(hours=1)


def read(rows: list[dict[str, Any]], now: datetime) -> list[ForeignSchedule]:
    """The schedules of these rows."""
    return [_schedule(each, now) for each in rows]


def _schedule(record: dict[str, Any], now: datetime) -> ForeignSchedule:
    row = record["row"]
    one = ForeignSchedule(
        id=row["id"],
        name=name_of(row["name"]),
        task=row["task"],
        enabled=row["enabled"],
        once=bool(row.get("one_off")),
        starts=moment_of(row.get("start_time")),
        ends=moment_of(row.get("expires")),
        time_zone=default_time_zone(),
    )
    try:
        _add_rule(one, record, now)
        one.args = _json(row["args"] or "[]", list, "args")
        one.kwargs = _json(row["kwargs"] or "{}", dict, "kwargs")
        _add_options(one, row)
        if one.task == CLEANUP:
            raise NotImportable("Old jobs are pruned by the setting RETENTION.")
        if one.once and one.rule and (row.get("total_run_count") or 0) > 0:
            raise NotImportable("It is to run once, and has run.")
    except NotImportable as error:
        one.refusal = str(error)
    return one


def _add_rule(one: ForeignSchedule, record: dict[str, Any], now: datetime) -> None:
    if solar := record["solar"]:
        raise NotImportable(
            f"It follows the sun ({solar['event']}), for which there is no rule."
        )
    if clocked := record["clocked"]:
        one.run_at, one.once = moment_of(clocked["clocked_time"]), True
    elif crontab := record["crontab"]:
        one.time_zone = _time_zone(crontab)
        fields = {name: str(crontab[name]) for name in FIELDS}
        one.rule = cron_of(fields, one.time_zone)
    elif interval := record["interval"]:
        last = moment_of(record["row"].get("last_run_at"))
        length = timedelta(**{interval["period"]: interval["every"]})
        # A beat counts from the last run: what runs daily keeps its time of day.
        since = (last or one.starts) if length >= LONG else None
        try:
            one.rule = every(seconds=length.total_seconds(), since=since)
        except ValueError as error:
            raise NotImportable(f"{str(error).capitalize()}.") from None
    else:
        raise NotImportable("It has no schedule.")


def _time_zone(crontab: dict[str, Any]) -> str:
    if getattr(settings, "DJANGO_CELERY_BEAT_TZ_AWARE", True):
        return str(crontab.get("timezone") or "UTC")
    return str(getattr(settings, "CELERY_TIMEZONE", None) or "UTC")


def _json(text: str, sort: type, name: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, sort):
        raise NotImportable(f"Its {name} are no JSON {sort.__name__}.")
    return value


def _add_options(one: ForeignSchedule, row: dict[str, Any]) -> None:
    """Options of its messages as those of our jobs."""
    if row.get("queue"):
        one.options["queue"] = row["queue"]
    if row.get("expire_seconds"):
        one.options["expires_in"] = row["expire_seconds"]
    if headers := _json(row.get("headers") or "{}", dict, "headers"):
        for name in sorted(OURS & headers.keys()):
            del headers[name]
            one.notes.append(f"Its header {name!r} is left: firings write it.")
        one.options["metadata"] = headers
    for name in ("exchange", "routing_key"):
        if row.get(name):
            one.notes.append(f"Its {name} {row[name]!r} is left: there is no broker.")
    if row.get("priority") is not None:
        _add_priority(one, row["priority"])


def _add_priority(one: ForeignSchedule, priority: int) -> None:
    """RabbitMQ serves 9 before 0, Redis 0 before 9; only the broker's address says
    which it is."""
    broker = str(getattr(settings, "CELERY_BROKER_URL", None) or "").partition("://")[0]
    if broker.startswith(("amqp", "pyamqp")):
        one.options["priority"] = min(10 * priority, 100)
    elif broker.startswith(("redis", "rediss", "sentinel")):
        one.options["priority"] = -min(10 * priority, 100)
    else:
        one.notes.append(
            f"Its priority {priority} is left: RabbitMQ serves 9 first and Redis 0, "
            "and CELERY_BROKER_URL does not say which it is."
        )
