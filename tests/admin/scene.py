"""Rows of every state, as a busy project has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.db.models import Model
from django.utils import timezone

from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.contrib.remote.endpoint_answers import class_of
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    Host,
    JobType,
    Queue,
    QueuedJob,
    Report,
    Worker,
)

ADD = "tests.sample.add"
FAIL = "tests.sample.fail"
LEAK = "tests.sample.leak"  # its parameter "token" is sensitive
ONCE = "tests.sample.write_once"  # at most once
SECRET = "hunter2-is-not-a-password"

MINUTE = timedelta(minutes=1)
HOUR, DAY = 60 * MINUTE, 1_440 * MINUTE


@dataclass
class Scene:
    queued: dict[str, UUID] = field(default_factory=dict)
    archived: dict[str, UUID] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    group: UUID = field(default_factory=uuid4)
    schedules: dict[str, str] = field(default_factory=dict)
    leases: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    hosts: dict[str, UUID] = field(default_factory=dict)


Columns = dict[str, Any]  # of a row that is not inserted yet; others have their default


def insert_all(model: type[Model], rows: Sequence[Columns]) -> list[Any]:
    """Insert rows in one statement; returns their keys.

    ``bulk_create`` resolves the default of each column of each row, which took most of
    the time of a scene.
    """
    meta = model._meta
    fields = {
        key: one for one in meta.concrete_fields for key in (one.name, one.attname)
    }
    given = list(dict.fromkeys(fields[name] for row in rows for name in row))
    cells, values = [], []
    for row in rows:
        by_field = {fields[name]: value for name, value in row.items()}
        cells.append([("%s" if one in by_field else "DEFAULT") for one in given])
        values += [
            one.get_db_prep_save(by_field[one], connection)
            for one in given
            if one in by_field
        ]
    columns = ", ".join(f'"{one.column}"' for one in given)
    lines = ", ".join(f"({', '.join(line)})" for line in cells)
    assert meta.pk is not None
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {meta.db_table} ({columns}) VALUES {lines}"
            f" RETURNING {meta.pk.column or 'NULL'}",  # NULL: a key of several columns
            values,
        )
        return [key for (key,) in cursor.fetchall()]


def insert(model: type[Model], row: Columns) -> Any:
    return insert_all(model, [row])[0]


def insert_named(model: type[Model], rows: Mapping[str, Columns]) -> dict[str, Any]:
    """Insert rows in one statement; returns their keys by these names."""
    return dict(zip(rows, insert_all(model, list(rows.values())), strict=True))


def _inserting(model: type[Model], row: Callable[..., Columns]) -> Callable[..., Any]:
    """Insert a row with the arguments of what makes one; returns its key."""
    return lambda *given, **columns: insert(model, row(*given, **columns))


def queued_row(job_type: str = ADD, **columns: Any) -> Columns:
    return {"id": new_id(), "job_type": job_type, **columns}


def archived_row(
    job_type: str = ADD, status: str = "succeeded", **columns: Any
) -> Columns:
    return {"id": new_id(), "job_type": job_type, "status": status, **columns}


def worker_row(name: str = "web-1:4100", **columns: Any) -> Columns:
    return {
        "name": name,
        "host": "web-1",
        "pid": 4100,
        "threads": 4,
        "job_types": [ADD, FAIL],
        "versions": {"python": "3.13.1"},
        "lease_until": timezone.now() + 60 * MINUTE,  # longer than any test takes
        "rss": 80_000_000,
        **columns,
    }


def lease_row(name: str, left: timedelta = 60 * MINUTE, **columns: Any) -> Columns:
    """A lease that somebody took a minute ago."""
    now = timezone.now()
    values = {"token": uuid4(), "holder": "web-1:4711", "host": "web-1", "fence": 41}
    moments = {"taken_at": now - MINUTE, "lease_until": now + left}
    return {"name": name, **values, **moments, **columns}


def token_row(name: str, **columns: Any) -> Columns:
    values = {"digest": "0" * 64, "scopes": ["enqueue", "read"], "created_by": "bert"}
    return {"name": name, **values, **columns}


def host_row(name: str, left: timedelta = 60 * MINUTE, **columns: Any) -> Columns:
    values = {"host": name.partition(":")[0], "processes": 2, "threads": 4}
    slots = {"async_slots": 100, "release": "r7", "queues": ["default", "mail"]}
    lease = {"lease_until": timezone.now() + left}
    return {"id": uuid4(), "name": name, **values, **slots, **lease, **columns}


def schedule_row(name: str, job_type: str = ADD, **columns: Any) -> Columns:
    """A schedule that fires each hour."""
    values = {"rule": "every 3600", "time_zone": "UTC", "data": {"a": 1}, **columns}
    return {"name": name, "job_type": job_type, **values}


def firing_row(
    schedule: str, ago: timedelta, job: UUID | None, **columns: Any
) -> Columns:
    """A firing so long ago, with this job."""
    values = {"outcome": "fired", "fires_at": timezone.now() - ago, **columns}
    return {"schedule": schedule, "job_id": job, **values}


queued = _inserting(QueuedJob, queued_row)
archived = _inserting(ArchivedJob, archived_row)
worker = _inserting(Worker, worker_row)
host = _inserting(Host, host_row)
schedule = _inserting(Schedule, schedule_row)
fired = _inserting(Firing, firing_row)


def endpoint(
    name: str, status: int, *, failed: int, answered: int, problem: str = ""
) -> int:
    """Insert an endpoint that gave this answer two minutes ago; returns its id. One
    that succeeds refused the connection a minute earlier."""
    now = timezone.now()
    last = {
        "class": class_of(status).value,
        "status": status,
        "at": now.timestamp() - 125,
        "seconds": 0.25,
        "worker": "web-1:7",
    }
    refused = {
        "class": "refused",
        "at": now.timestamp() - 185,
        "seconds": 0.002,
        "problem": problem,
        "worker": "web-1:7",
    }
    answers = {"last": last, "last_failure": refused if status < 300 else last}
    if answered:
        minute = int(now.timestamp() // 60)
        answers["minutes"] = {str(minute): [answered, failed]}
    return worker(
        name,
        state="endpoint",
        host="",
        pid=0,
        threads=0,
        job_types=[],
        rss=0,
        lease_until=datetime(9999, 12, 30, tzinfo=UTC),
        answers=answers,
    )


def build() -> Scene:
    scene = Scene()
    _workers(scene)
    _queued(scene)
    _archived(scene)
    _failures(scene)
    _reports(scene)
    _schedules(scene)
    _leases(scene)
    _tokens(scene)
    _hosts(scene)
    now = timezone.now()
    JobType.objects.filter(name=LEAK).update(
        paused=True, paused_at=now, paused_by="carl", paused_reason="leaks"
    )
    paused = {"paused_at": now, "paused_by": "carl", "paused_reason": "spam"}
    insert_all(Queue, [{"name": "mail", "paused": True, **paused}, {"name": "images"}])
    return scene


def _leases(scene: Scene) -> None:
    scene.leases = insert_named(
        Lease,
        {
            "held": lease_row("import"),
            "lapsed": lease_row("report", left=-MINUTE, holder="web-2:9"),
            "free": lease_row("reindex", left=-MINUTE, token=None),
            "standby": lease_row("runworkers:main", awaited=True),
        },
    )


def _tokens(scene: Scene) -> None:
    now = timezone.now()
    until = {"expires_at": now + 90 * DAY}
    revoked = {"revoked_at": now - DAY, "revoked_by": "anna"}
    scene.tokens = insert_named(
        Token,
        {
            "billing": token_row("billing", job_types=["shop.*"], **until),
            "soon": token_row("soon", expires_at=now + DAY, last_used_at=now - HOUR),
            "expired": token_row("expired", expires_at=now - DAY),
            "revoked": token_row("billing", **revoked),
        },
    )


def _hosts(scene: Scene) -> None:
    asked = {"number": 3, "processes": 8, "queues": ["mail"], "draining": False}
    done = {"number": 2, "queues": ["mail"], "draining": False}
    refused = (
        "The code does not start: ModuleNotFoundError: No module named 'shop.mail'"
    )
    embedded = {"embedded": True, "processes": 1, "queues": None}
    scene.hosts = insert_named(
        Host,
        {
            "asked": host_row("web-1:900", desired=asked, applied=done),
            "draining": host_row(
                "web-2:900", state="draining", desired={"draining": True}
            ),
            "embedded": host_row("web-1:77/embedded", **embedded),
            "lapsed": host_row("web-3:900", left=-MINUTE),
            "parked": host_row("web-4:900", state="parked", processes=0),
            "refused": host_row("web-5:900", desired={"restart": 1}, error=refused),
            "restarting": host_row("web-6:900", state="restarting"),
            "standby": host_row("web-7:900", state="standby"),
            "stopped": host_row(
                "web-8:900", state="stopped", stopped_at=timezone.now()
            ),
        },
    )


def _workers(scene: Scene) -> None:
    now = timezone.now()
    busy = {"running": 1, "queues": ["default", "mail"], "supervisor": "web-1:900"}
    scene.workers = insert_named(
        Worker,
        {
            "running": worker_row("web-1:1", **busy),
            "draining": worker_row("web-1:2", state="draining", desired="drain"),
            "lapsed": worker_row("web-1:3", lease_until=now - MINUTE),
            "stopped": worker_row(
                "web-1:4", state="stopped", stopped_at=now, end="SIGTERM"
            ),
            "lost": worker_row(
                "web-1:5", state="lost", stopped_at=now, end="killed: 9"
            ),
        },
    )


def _queued(scene: Scene) -> None:
    now = timezone.now()
    running = {"status": "running", "started_at": now - MINUTE, "attempts": 1}
    live, lapsed = scene.workers["running"], scene.workers["lapsed"]
    scene.queued = insert_named(
        QueuedJob,
        {
            "ready": queued_row(data={"a": 1}),
            "later": queued_row(run_after=now + HOUR),
            "retrying": queued_row(FAIL, run_after=now + HOUR, attempts=2, crashes=1),
            "expiring": queued_row(expires_at=now - MINUTE),
            "paused": queued_row(LEAK, data={"token": SECRET}),
            "running": queued_row(worker_id=live, **running),
            "cancelling": queued_row(
                worker_id=live, cancel_requested_at=now, **running
            ),
            "lapsed": queued_row(worker_id=lapsed, **running),
            "unclaimed": queued_row(worker_id=None, **running),
        },
    )


def _archived(scene: Scene) -> None:
    now = timezone.now()
    ran = {"started_at": now - MINUTE, "wait_ms": 12, "run_ms": 2_400, "attempts": 1}
    error = {"error_class": "builtins.ValueError", "error_message": "no luck"}
    failed = {"status": "failed", "fingerprint": scene.group, **ran, **error}
    scene.archived = insert_named(
        ArchivedJob,
        {
            "succeeded": archived_row(result={"sum": 3}, data={"a": 1, "b": 2}, **ran),
            "failed": archived_row(FAIL, effective_max_attempts=3, **failed),
            "expired": archived_row(status="expired", expires_at=now - MINUTE),
            "cancelled": archived_row(status="cancelled", error_message="not wanted"),
            "once": archived_row(ONCE, **failed),
            "secret": archived_row(LEAK, data={"token": SECRET}, **failed),
            "gone": archived_row("shop.removed", **failed),
        },
    )


def _failures(scene: Scene) -> None:
    began = timezone.now() - MINUTE
    attempt = {
        "job_type": FAIL,
        "end": "failed",
        "started_at": began,
        "error_class": "builtins.ValueError",
        "error_message": "no luck",
        "traceback": "Traceback (most recent call last):\n  ValueError: no luck",
        "worker": "web-1:1",
        "fingerprint": scene.group,
    }
    last = {"number": 1, "release": "r7", "log_tail": "half way there"}
    insert_all(
        Failure,
        [
            {"job_id": scene.queued["retrying"], "number": 2, **attempt},
            {"job_id": scene.archived["failed"], **last, **attempt},
        ],
    )
    group = {"error_class": "builtins.ValueError", "frame": "tests.sample.jobs:fail"}
    ids = {"fingerprint": scene.group, "coarse": scene.group}
    insert(FailureGroup, {"template": "no luck", **ids, **group})


def _schedules(scene: Scene) -> None:
    Schedule.objects.all().delete()  # those of the shop
    now = timezone.now()
    code = {"origin": "code", "declared_at": now}
    night = {"rule": "cron 30 2 * * *", "time_zone": "Europe/Berlin"}
    pause = {"paused_at": now, "paused_by": "carl", "paused_reason": "moved"}
    overridden = {"rule_override": "every 300", "data": {"token": SECRET}}
    made = {"data": {"a": 1, "b": 2}, "options": {"priority": 3}}
    scene.schedules = insert_named(
        Schedule,
        {
            "code": schedule_row("nightly-report", **code, **night),
            "overridden": schedule_row("prices", LEAK, **code, **overridden),
            "made": schedule_row("clean-up", **made),
            "paused": schedule_row("newsletter", paused=True, **pause, **code),
            "gone": schedule_row("old", gone_at=now, **code),
            "broken": schedule_row("broken", rule="cron 61 * * * *"),
            "ended": schedule_row("advent", ends_at=now - MINUTE),
        },
    )
    name = scene.schedules["code"]
    insert_all(
        Firing,
        [
            firing_row(name, MINUTE, scene.queued["ready"]),
            firing_row(name, 2 * MINUTE, scene.archived["failed"], outcome="late"),
            firing_row(name, 3 * MINUTE, uuid4(), outcome="manual", by="carl"),
            firing_row(name, 4 * MINUTE, None, outcome="skipped"),
            firing_row(name, 5 * MINUTE, None, outcome="missed", number=12),
        ],
    )


def _reports(scene: Scene) -> None:
    began = timezone.now() - MINUTE
    said = {
        "fence": 0,
        "number": 1,
        "done": 30,
        "total": 120,
        "note": "asking the carrier",
        "lines": [[began.timestamp(), "info", "a line"]],
        "dropped": 2,
        "queries": 12,
        "query_ms": 34.5,
        "started_at": began,
    }
    jobs = (scene.queued["running"], scene.archived["succeeded"])
    insert_all(Report, [{"job_id": id, **said} for id in jobs])
