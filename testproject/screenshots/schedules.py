"""Rows of the shop's schedules, and of what they did."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model

from django_jobqueue.contrib.schedules import due_schedules
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.domain.schedule_rules import parse
from django_jobqueue.models import ArchivedJob
from django_jobqueue.store.connection import DjangoDatabase
from testproject.screenshots.scene import DAY, HOUR, MINUTE, SHOP, Scene

ZONE = "Europe/Berlin"
PARTNERS = {"supplier": "nordhafen", "currency": "EUR", "full": False}


def build(scene: Scene) -> None:
    """Insert them, with the histories of two."""
    Schedule.objects.all().delete()  # those that the code declares, which are others
    code = {"origin": "code", "declared_at": scene.now - DAY}
    _schedule(scene, "prices", "refresh_prices", "every 300", data=PARTNERS, **code)
    _schedule(
        scene,
        "invoices-nightly",
        "send_invoice",
        "cron 30 2 * * *",
        rule_override="cron 30 3 * * *",
        overlap="skip",
        jitter=timedelta(seconds=90),
        options={"queue": "mail", "priority": 5},
        **code,
    )
    _schedule(
        scene,
        "newsletter",
        "send_invoice",
        "cron 0 9 * * MON",
        paused=True,
        paused_at=scene.now - 2 * HOUR,
        paused_by="carl",
        paused_reason="the list is being cleaned",
        **code,
    )
    _schedule(scene, "thumbnails", "resize_image", "every 3600", missed="skip")
    _schedule(
        scene,
        "old-import",
        "import_product",
        "cron 0 4 * * *",
        gone_at=scene.now - 3 * DAY,
        **code,
    )
    _history(scene, "prices", "refresh_prices", 40)
    _history(scene, "invoices-nightly", "send_invoice", 9)
    _history(scene, "thumbnails", "resize_image", 5)
    row = Schedule.objects.get(name="invoices-nightly")
    anna = get_user_model().objects.get(username="anna")
    entry = "Changed Rule: 30 2 * * * → 30 3 * * *."
    LogEntry.objects.log_actions(anna.pk, [row], CHANGE, entry)
    scene.keys["schedule"] = row.pk


def _schedule(
    scene: Scene, name: str, job_type: str, rule: str, **columns: Any
) -> None:
    row = Schedule.objects.create(
        name=name,
        job_type_id=f"{SHOP}.{job_type}",
        rule=rule,
        time_zone=ZONE,
        **columns,
    )
    found = due_schedules.find(DjangoDatabase(), name)
    assert found is not None
    row.planned_for = found.plan
    row.next_at = parse(row.rule_in_force, ZONE).next_after(scene.now)
    row.save()


def _history(scene: Scene, name: str, job_type: str, count: int) -> None:
    """The newest firings, each with a job of the archive."""
    rule = parse(Schedule.objects.get(name=name).rule_in_force, ZONE)
    jobs = ArchivedJob.objects.filter(job_type=f"{SHOP}.{job_type}")
    ids: list[UUID] = list(jobs.order_by("-finished_at").values_list("pk", flat=True))
    moments = _before(scene.now, rule, count)
    for number, moment in enumerate(moments):
        values: dict[str, Any] = {"job_id": ids[number % len(ids)], "outcome": "fired"}
        after = timedelta(milliseconds=scene.spread(3))
        if number == 3:
            values = {"outcome": "missed", "number": 11}
            after = 40 * MINUTE
        elif number == 4:
            values |= {"outcome": "late"}
            after = 40 * MINUTE
        elif number == 6:
            values = {"outcome": "skipped"}
        Firing.objects.create(
            schedule=name, fires_at=moment, created_at=moment + after, **values
        )
    ran = scene.now - 95 * MINUTE
    Firing.objects.create(
        schedule=name,
        fires_at=ran,
        created_at=ran,
        job_id=ids[-1],
        outcome="manual",
        by="anna",
    )


def _before(now: datetime, rule: Any, count: int) -> list[datetime]:
    """The last so many moments, newest first."""
    start, found = now - 2 * MINUTE, []
    while len(found) < count:
        start -= (now - start) * 2
        found, at = [], rule.next_after(start)
        while at is not None and at <= now:
            found.append(at)
            at = rule.next_after(at)
    return found[: -count - 1 : -1]
