"""Rows of the pages beside jobs and failures: hosts, endpoints, a move, limits, leases,
alerts, searches and erasures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from django_jobqueue.contrib.alerts.models import Alert, AlertDelivery
from django_jobqueue.contrib.console.models import JobSearch
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.models import (
    Host,
    JobType,
    KeyLimit,
    KeyOverride,
    QueuedJob,
    Worker,
)
from django_jobqueue.search.selection import Selection, Table
from testproject.screenshots.scene import DAY, HOUR, MINUTE, RELEASE, SHOP, Scene

LIMIT = f"{SHOP}.send_invoice"
MAILED = {"refund": 9, "acme": 6, "harbour": 2, "nordhafen": 1}  # jobs of each customer
PAGER = "https://pager.example/hook"
REFUSED = "14.0 % of 412 deliver_webhook jobs failed in the last hour."
WAITS = "31 jobs are ready in queue webhooks; the oldest has waited for 49 m."


def build(scene: Scene) -> None:
    """Insert them."""
    _hosts(scene)
    _endpoints(scene)
    _move(scene)
    _limits(scene)
    _leases(scene)
    _alerts(scene)
    _searches(scene)


def _hosts(scene: Scene) -> None:
    lives = scene.now + HOUR
    asked = {"processes": 3, "number": 2}
    hosts: dict[str, dict[str, Any]] = {
        "web-1:4111": {"processes": 2, "desired": asked, "applied": {"number": 1}},
        "web-2:990": {
            **{"processes": 2, "queues": ["mail", "webhooks"], "state": "draining"},
            "error": "threads: 900 is more than MAX_THREADS, 200",
        },
        "web-3:2203": {"processes": 1, "lease_until": scene.now - 4 * MINUTE},
        "web-4:77": {"processes": 0, "state": "parked"},
        "asgi-1:15": {"processes": 1, "embedded": True, "async_slots": 50},
        "web-9:310": {
            **{"processes": 2, "state": "lost", "release": "2026.11.2"},
            "stopped_at": scene.now - 3 * HOUR,
        },
    }
    for name, columns in hosts.items():
        values: dict[str, Any] = {
            **{"host": name.partition(":")[0], "release": RELEASE, "threads": 4},
            **{"async_slots": 100, "started_at": scene.now - 9 * HOUR},
            **{"renewed_at": scene.now, "lease_until": lives},
        }
        host = Host.objects.create(id=uuid4(), name=name, **{**values, **columns})
        scene.keys.setdefault("host", host.pk)
    Worker.objects.filter(host="web-1").update(supervisor="web-1:4111")


def _endpoints(scene: Scene) -> None:
    now = scene.now.timestamp()
    sent = {"class": "2xx", "status": 202, "seconds": 0.21, "worker": "web-2:991"}
    refused = {
        **{"class": "refused", "seconds": 0.004, "worker": "web-1:4112"},
        "problem": "ConnectError: [Errno 111] Connection refused",
    }
    minutes = {str(int(now // 60) - ago): [83 + ago, ago % 2] for ago in range(15)}
    answers = {
        "last": {**sent, "at": now - 12},
        "last_failure": {**refused, "at": now - 7 * 60},
        "minutes": minutes,
    }
    endpoint = Worker.objects.create(
        name="carrier",
        host="",
        pid=0,
        state="endpoint",
        started_at=scene.now - 9 * DAY,
        lease_until=datetime(9999, 12, 30, tzinfo=UTC),
        answers=answers,
    )
    _hold(scene, endpoint, "deliver_webhook", 4)
    scene.keys["endpoint"] = endpoint.pk


def _move(scene: Scene) -> None:
    move = Worker.objects.create(
        name="move to archive",
        host="web-2",
        pid=7311,
        state="moving",
        started_at=scene.now - 6 * MINUTE,
        renewed_at=scene.now - 5 * MINUTE,
        lease_until=scene.now - 4 * MINUTE,
    )
    _hold(scene, move, "refresh_prices", 3)
    scene.keys["move"] = move.pk


def _hold(scene: Scene, holder: Worker, job_type: str, count: int) -> None:
    for number in range(count):
        QueuedJob.objects.create(
            job_type_id=f"{SHOP}.{job_type}",
            worker_id=holder.pk,
            status="running",
            attempts=1,
            started_at=scene.now - (count - number) * 0.7 * MINUTE,
        )


def _limits(scene: Scene) -> None:
    KeyLimit.objects.create(name=LIMIT, concurrency=2, concurrency_override=4)
    KeyLimit.objects.create(name="partner", concurrency=1)
    rule = {"by": ["customer"]}
    JobType.objects.filter(pk=LIMIT).update(limit_name=LIMIT, limit_rule=rule)
    KeyOverride.objects.create(limit_key=f"{LIMIT} refund", concurrency=0)
    for key, count in MAILED.items():
        QueuedJob.objects.bulk_create(
            QueuedJob(
                job_type_id=LIMIT,
                queue="mail",
                data={"customer": key},
                limit_key=f"{LIMIT} {key}",
                run_after=scene.now - 8 * MINUTE,
            )
            for _ in range(count)
        )
    scene.keys["limit"] = LIMIT


def _leases(scene: Scene) -> None:
    for name, columns in {
        "importer": {"holder": "web-1:4112", "host": "web-1", "awaited": True},
        "ledger/2026-11": {"holder": "web-3:2204", "host": "web-3"},
        "reports": {"holder": "web-2:991", "host": "web-2", "token": None},
    }.items():
        is_lapsed = columns["host"] == "web-3"
        until = scene.now + (-4 * MINUTE if is_lapsed else HOUR)
        values = {"token": uuid4(), "lease_until": until, "fence": 12}
        taken = {"taken_at": scene.now - 2 * HOUR, "renewed_at": scene.now}
        Lease.objects.create(name=name, **{**values, **taken, **columns})
    scene.keys["lease"] = "importer"


def _alerts(scene: Scene) -> None:
    group = str(scene.keys["group refused"])
    rows: tuple[tuple[str, str, str, timedelta, dict[str, Any]], ...] = (
        ("failure_group", group, "", 50 * MINUTE, {"state": "reported"}),
        ("failing", f"{SHOP}.deliver_webhook", REFUSED, 45 * MINUTE, {}),
        ("backlog", "webhooks", WAITS, 44 * MINUTE, {}),
        (
            "backlog",
            "mail",
            "140 jobs are ready in queue mail; the oldest has waited for 6 m.",
            DAY,
            {"state": "resolved", "resolved_at": scene.now - DAY + 12 * MINUTE},
        ),
        ("regression", str(scene.keys["group order"]), "", DAY, {"state": "reported"}),
    )
    for condition, subject, text, since, columns in rows:
        alert = Alert.objects.create(
            condition=condition,
            subject=subject,
            text=text,
            fired_at=scene.now - since,
            last_seen=None if "state" in columns else scene.now,
            **columns,
        )
        _deliveries(scene, alert)


def _deliveries(scene: Scene, alert: Alert) -> None:
    at = alert.fired_at + timedelta(seconds=4)
    for channel in ("mail", PAGER):
        sent: dict[str, Any] = {"sent_at": at}
        if channel == PAGER and alert.condition == "failing":
            late = {"next_attempt_at": scene.now + 2 * MINUTE, "attempts": 7}
            sent = {"error": "HTTP 503", **late}
        if channel == PAGER and alert.condition == "regression":
            sent = {"error": "HTTP 404", "given_up_at": at}
        AlertDelivery.objects.create(
            alert=alert, event="fired", channel=channel, **sent
        )
    if alert.state == "resolved":
        AlertDelivery.objects.create(
            alert=alert, event="resolved", channel="mail", sent_at=alert.resolved_at
        )


def _searches(scene: Scene) -> None:
    everywhere = {table.value: Selection(table).to_json() for table in Table}
    for query, state, minutes in (
        ("data.order_id:4711", "done", 40),
        ("error:ConnectError data.event:order.paid", "running", 1),
    ):
        search = JobSearch.objects.create(
            query=query,
            selections=everywhere,
            state=state,
            examined=minutes * 61_034,
            oldest=scene.now - 30 * DAY,
            matched={"archived": 3},
            created_by="anna",
            created_at=scene.now - minutes * MINUTE,
            progress_at=scene.now,
            finished_at=scene.now if state == "done" else None,
        )
        scene.keys["search"] = search.pk
    done = Erasure.objects.create(
        act="erase",
        state="done",
        fingerprint="5f" * 32,
        reason="Request of 24 November, DSR-31.",
        changed={"archivedjob": 41, "failure": 3},
        created_by="anna",
        created_at=scene.now - DAY,
        started_at=scene.now - DAY,
        finished_at=scene.now - DAY + MINUTE,
        passes=2,
        total=44,
    )
    scene.keys["erasure"] = done.pk
