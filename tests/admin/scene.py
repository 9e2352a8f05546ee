"""Rows of every state, as a busy project has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from django_jobqueue.domain.endpoint_answers import class_of
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    Firing,
    Host,
    JobType,
    Lease,
    Queue,
    QueuedJob,
    Report,
    Schedule,
    Token,
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
    """The rows by what they are."""

    queued: dict[str, UUID] = field(default_factory=dict)
    archived: dict[str, UUID] = field(default_factory=dict)
    workers: dict[str, int] = field(default_factory=dict)
    group: UUID = field(default_factory=uuid4)
    schedules: dict[str, str] = field(default_factory=dict)
    leases: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    hosts: dict[str, UUID] = field(default_factory=dict)


def queued(job_type: str = ADD, **columns: Any) -> UUID:
    """Insert a queued job; returns its id."""
    made: UUID = QueuedJob.objects.create(job_type_id=job_type, **columns).id
    return made


def archived(job_type: str = ADD, status: str = "succeeded", **columns: Any) -> UUID:
    """Insert an archived job; returns its id."""
    made: UUID = ArchivedJob.objects.create(
        job_type_id=job_type, status=status, **columns
    ).id
    return made


def worker(name: str = "web-1:4100", **columns: Any) -> int:
    """Insert a worker; returns its id."""
    defaults = {
        "host": "web-1",
        "pid": 4100,
        "threads": 4,
        "job_types": [ADD, FAIL],
        "versions": {"python": "3.13.1"},
        "lease_until": timezone.now() + 60 * MINUTE,  # longer than any test takes
        "rss": 80_000_000,
    }
    made: int = Worker.objects.create(name=name, **{**defaults, **columns}).pk
    return made


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
    """Insert them all."""
    scene = Scene()
    _workers(scene)
    _queued(scene)
    _archived(scene)
    _reports(scene)
    _schedules(scene)
    _leases(scene)
    _tokens(scene)
    _hosts(scene)
    now = timezone.now()
    JobType.objects.filter(name=LEAK).update(
        paused=True, paused_at=now, paused_by="carl", paused_reason="leaks"
    )
    Queue.objects.create(
        name="mail", paused=True, paused_at=now, paused_by="carl", paused_reason="spam"
    )
    Queue.objects.create(name="images")
    return scene


def lease(name: str, left: timedelta = 60 * MINUTE, **columns: Any) -> str:
    """Insert a lease that somebody took a minute ago; returns its name."""
    now = timezone.now()
    values = {"token": uuid4(), "holder": "web-1:4711", "host": "web-1", "fence": 41}
    moments = {"taken_at": now - MINUTE, "lease_until": now + left}
    Lease.objects.create(name=name, **{**values, **moments, **columns})
    return name


def _leases(scene: Scene) -> None:
    scene.leases = {
        "held": lease("import"),
        "lapsed": lease("report", left=-MINUTE, holder="web-2:9"),
        "free": lease("reindex", left=-MINUTE, token=None),
        "standby": lease("runworkers:main", awaited=True),
    }


def token(name: str, **columns: Any) -> int:
    """Insert a token of the HTTP API; returns its id."""
    values = {"digest": "0" * 64, "scopes": ["enqueue", "read"], "created_by": "bert"}
    return Token.objects.create(name=name, **{**values, **columns}).pk


def _tokens(scene: Scene) -> None:
    now = timezone.now()
    scene.tokens = {
        "billing": token("billing", job_types=["shop.*"], expires_at=now + 90 * DAY),
        "soon": token("soon", expires_at=now + DAY, last_used_at=now - HOUR),
        "expired": token("expired", expires_at=now - DAY),
        "revoked": token("billing", revoked_at=now - DAY, revoked_by="anna"),
    }


def host(name: str, left: timedelta = 60 * MINUTE, **columns: Any) -> UUID:
    """Insert a host; returns its id."""
    values = {"host": name.partition(":")[0], "processes": 2, "threads": 4}
    slots = {"async_slots": 100, "release": "r7", "queues": ["default", "mail"]}
    lease = {"lease_until": timezone.now() + left}
    made: UUID = Host.objects.create(
        id=uuid4(), name=name, **{**values, **slots, **lease, **columns}
    ).pk
    return made


def _hosts(scene: Scene) -> None:
    asked = {"number": 3, "processes": 8, "queues": ["mail"], "draining": False}
    done = {"number": 2, "queues": ["mail"], "draining": False}
    refused = (
        "The code does not start: ModuleNotFoundError: No module named 'shop.mail'"
    )
    scene.hosts = {
        "asked": host("web-1:900", desired=asked, applied=done),
        "draining": host("web-2:900", state="draining", desired={"draining": True}),
        "embedded": host("web-1:77/embedded", embedded=True, processes=1, queues=None),
        "lapsed": host("web-3:900", left=-MINUTE),
        "parked": host("web-4:900", state="parked", processes=0),
        "refused": host("web-5:900", desired={"restart": 1}, error=refused),
        "restarting": host("web-6:900", state="restarting"),
        "standby": host("web-7:900", state="standby"),
        "stopped": host("web-8:900", state="stopped", stopped_at=timezone.now()),
    }


def _workers(scene: Scene) -> None:
    now = timezone.now()
    scene.workers = {
        "running": worker(
            "web-1:1",
            running=1,
            queues=["default", "mail"],
            supervisor="web-1:900",
        ),
        "draining": worker("web-1:2", state="draining", desired="drain"),
        "lapsed": worker("web-1:3", lease_until=now - MINUTE),
        "stopped": worker("web-1:4", state="stopped", stopped_at=now, end="SIGTERM"),
        "lost": worker("web-1:5", state="lost", stopped_at=now, end="killed: 9"),
    }


def _queued(scene: Scene) -> None:
    now = timezone.now()
    hour = timedelta(hours=1)
    running = {"status": "running", "started_at": now - MINUTE, "attempts": 1}
    live, lapsed = scene.workers["running"], scene.workers["lapsed"]
    scene.queued = {
        "ready": queued(data={"a": 1}),
        "later": queued(run_after=now + hour),
        "retrying": queued(FAIL, run_after=now + hour, attempts=2, crashes=1),
        "expiring": queued(expires_at=now - MINUTE),
        "paused": queued(LEAK, data={"token": SECRET}),
        "running": queued(worker_id=live, **running),
        "cancelling": queued(worker_id=live, cancel_requested_at=now, **running),
        "lapsed": queued(worker_id=lapsed, **running),
        "unclaimed": queued(worker_id=None, **running),
    }
    Failure.objects.create(
        job_id=scene.queued["retrying"],
        job_type=FAIL,
        number=2,
        end="failed",
        started_at=now - MINUTE,
        error_class="builtins.ValueError",
        error_message="no luck",
        traceback="Traceback (most recent call last):\n  ValueError: no luck",
        worker="web-1:1",
        fingerprint=scene.group,
    )


def _archived(scene: Scene) -> None:
    now = timezone.now()
    ran = {"started_at": now - MINUTE, "wait_ms": 12, "run_ms": 2_400, "attempts": 1}
    failed = {
        "error_class": "builtins.ValueError",
        "error_message": "no luck",
        "fingerprint": scene.group,
    }
    scene.archived = {
        "succeeded": archived(result={"sum": 3}, data={"a": 1, "b": 2}, **ran),
        "failed": archived(FAIL, "failed", effective_max_attempts=3, **ran, **failed),
        "expired": archived(status="expired", expires_at=now - MINUTE),
        "cancelled": archived(status="cancelled", error_message="not wanted"),
        "once": archived(ONCE, "failed", **ran, **failed),
        "secret": archived(LEAK, "failed", data={"token": SECRET}, **ran, **failed),
        "gone": archived("shop.removed", "failed", **ran, **failed),
    }
    Failure.objects.create(
        job_id=scene.archived["failed"],
        job_type=FAIL,
        number=1,
        end="failed",
        started_at=now - MINUTE,
        error_class="builtins.ValueError",
        error_message="no luck",
        traceback="Traceback (most recent call last):\n  ValueError: no luck",
        worker="web-1:1",
        release="r7",
        fingerprint=scene.group,
        log_tail="half way there",
    )
    FailureGroup.objects.create(
        fingerprint=scene.group,
        coarse=scene.group,
        error_class="builtins.ValueError",
        frame="tests.sample.jobs:fail",
        template="no luck",
    )


def schedule(name: str, job_type: str = ADD, **columns: Any) -> str:
    """Insert a schedule that fires each hour; returns its name."""
    values = {"rule": "every 3600", "time_zone": "UTC", "data": {"a": 1}, **columns}
    Schedule.objects.create(name=name, job_type_id=job_type, **values)
    return name


def fired(schedule: str, ago: timedelta, job: UUID | None, **columns: Any) -> None:
    """Insert a firing so long ago, with this job."""
    values = {"outcome": "fired", **columns}
    moment = timezone.now() - ago
    Firing.objects.create(schedule=schedule, fires_at=moment, job_id=job, **values)


def _schedules(scene: Scene) -> None:
    Schedule.objects.all().delete()  # those of the shop
    now = timezone.now()
    code = {"origin": "code", "declared_at": now}
    night = {"rule": "cron 30 2 * * *", "time_zone": "Europe/Berlin"}
    pause = {"paused_at": now, "paused_by": "carl", "paused_reason": "moved"}
    leak = {"job_type": LEAK, "data": {"token": SECRET}}
    scene.schedules = {
        "code": schedule("nightly-report", **code, **night),
        "overridden": schedule("prices", rule_override="every 300", **code, **leak),
        "made": schedule("clean-up", data={"a": 1, "b": 2}, options={"priority": 3}),
        "paused": schedule("newsletter", paused=True, **pause, **code),
        "gone": schedule("old", gone_at=now, **code),
        "broken": schedule("broken", rule="cron 61 * * * *"),
        "ended": schedule("advent", ends_at=now - MINUTE),
    }
    name = scene.schedules["code"]
    fired(name, MINUTE, scene.queued["ready"])
    fired(name, 2 * MINUTE, scene.archived["failed"], outcome="late")
    fired(name, 3 * MINUTE, uuid4(), outcome="manual", by="carl")
    fired(name, 4 * MINUTE, None, outcome="skipped")
    fired(name, 5 * MINUTE, None, outcome="missed", number=12)


def _reports(scene: Scene) -> None:
    began = timezone.now() - MINUTE
    for id in (scene.queued["running"], scene.archived["succeeded"]):
        Report.objects.create(
            job_id=id,
            fence=0,
            number=1,
            done=30,
            total=120,
            note="asking the carrier",
            lines=[[began.timestamp(), "info", "a line"]],
            dropped=2,
            queries=12,
            query_ms=34.5,
            started_at=began,
        )
