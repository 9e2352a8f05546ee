"""Rows of a shop in trouble at three in the morning: the partner's server refuses
webhooks, and there is the usual rest. Times are relative to now; all else is the same
each time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model

from django_jobqueue.domain.failures import Failure as Kept
from django_jobqueue.models import (
    ArchivedJob,
    AuditEntry,
    BulkOperation,
    Failure,
    FailureGroup,
    JobType,
    Queue,
    QueuedJob,
    Worker,
)
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from testproject.screenshots.failing import failures

SHOP = "testproject.shop"
WEBHOOK = f"{SHOP}.deliver_webhook"
SEED = 7
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
RELEASE = "2026.11.3"

# Of each job type: its queue, how many are archived, and how long one runs (ms).
TYPES: dict[str, tuple[str, int, int]] = {
    "capture_payment": ("default", 70, 420),
    "post_ledger": ("default", 70, 9),
    "render_invoice": ("default", 60, 180),
    "send_invoice": ("mail", 60, 750),
    "deliver_webhook": ("webhooks", 40, 90),
    "resize_image": ("images", 30, 2_300),
    "import_product": ("default", 40, 30),
    "refresh_prices": ("default", 10, 5_200),
}
# Of each failure: how many jobs failed for good, how many wait for a retry, since when.
FAILED: dict[str, tuple[str, int, int, timedelta]] = {
    "refused": ("deliver_webhook", 64, 14, 50 * MINUTE),
    "order": ("render_invoice", 9, 0, 3 * DAY),
    "picture": ("resize_image", 21, 2, 9 * DAY),
    "declined": ("capture_payment", 12, 0, 40 * DAY),
    "list": ("import_products", 3, 0, 5 * DAY),
    "lost": ("refresh_prices", 2, 0, 2 * DAY),
}
RUNNING = ("deliver_webhook", "send_invoice", "refresh_prices")
STATES: dict[str, dict[str, Any]] = {
    "order": {
        "state": "open",
        "regressed_at": -35 * MINUTE,
        "resolved_in": "2026.11.2",
        "assignee": "anna",
        "notes": "Orders were deleted before their invoice was made. Fixed in "
        "2026.11.2, see SHOP-412.",
    },
    "declined": {
        "state": "ignored",
        "notes": "Nothing to be done: the customer is told by mail.",
    },
    "list": {"state": "resolved", "resolved_at": -1 * DAY, "assignee": "carl"},
}


@dataclass
class Scene:
    """What was made; ``keys`` are those that pages are taken of."""

    now: datetime
    random: random.Random = field(default_factory=lambda: random.Random(SEED))
    kept: dict[str, Kept] = field(default_factory=failures)
    workers: list[Worker] = field(default_factory=list)
    keys: dict[str, Any] = field(default_factory=dict)

    def ago(self, longest: timedelta) -> datetime:
        """Some time ago, more often lately."""
        return self.now - longest * self.random.random() ** 2

    def spread(self, middle: int) -> int:
        """A number around this one, as durations are: seldom much greater."""
        return max(1, int(middle * self.random.lognormvariate(0, 0.5)))

    def worker(self) -> Worker:
        """One of those that are alive."""
        return self.random.choice(self.workers[:4])


def build(now: datetime) -> Scene:
    """Insert them all."""
    scene = Scene(now)
    _pauses(scene)
    _workers(scene)
    _succeeded(scene)
    for name in FAILED:
        _failed(scene, name)
    _queued(scene)
    _operations(scene)
    _history(scene)
    return scene


# What goes on while pictures are taken.
LIVE = """
UPDATE jobqueue_worker
   SET lease_until = clock_timestamp() + interval '9 s',
       renewed_at = clock_timestamp() - interval '1 s'
 WHERE host <> 'web-3';
UPDATE jobqueue_queuedjob
   SET started_at = clock_timestamp() - interval '7 s'
 WHERE status = 'running' AND started_at IS NOT NULL AND fence < 9;
UPDATE jobqueue_bulkoperation SET progress_at = clock_timestamp()
 WHERE state = 'running'
"""


def _pauses(scene: Scene) -> None:
    paused = {"paused": True, "paused_by": "carl", "paused_at": scene.now - 2 * HOUR}
    JobType.objects.filter(pk=f"{SHOP}.resize_image").update(
        paused_reason="The image server is being moved.",
        resume_at=scene.now + 5 * HOUR,
        **paused,
    )
    Queue.objects.create(name="night", paused_reason="Month's end.", **paused)
    JobType.objects.filter(pk=WEBHOOK).update(concurrency_override=2)
    scene.keys |= {"jobtype": WEBHOOK, "queue": "night"}


def _workers(scene: Scene) -> None:
    names = ("web-1:4112", "web-1:4113", "web-2:991", "web-2:992", "web-3:2204")
    types = [f"{SHOP}.{name}" for name in (*TYPES, "import_products")]
    types.append("jobqueue.bulk")
    for number, name in enumerate(names):
        host, _, pid = name.partition(":")
        common = {
            "host": host,
            "pid": int(pid),
            "supervisor": f"{host}:{int(pid) - 1}",
            "release": RELEASE if number != 3 else "2026.11.2",
            "threads": 4,
            "async_slots": 100,
            "job_types": types,
            "versions": {"python": "3.13.1", "django": "6.1.3", "django_jobqueue": "1"},
            "rss": 74_000_000 + number * 3_100_000,
            "started_at": scene.now - 9 * HOUR,
        }
        if name.startswith("web-3"):  # it is lost
            common["lease_until"] = scene.now - 4 * MINUTE
            common["renewed_at"] = scene.now - 4.5 * MINUTE
        else:
            common["lease_until"] = scene.now + MINUTE  # goes on in ``live``
            common["renewed_at"] = scene.now
        scene.workers.append(Worker.objects.create(name=name, **common))
    draining = scene.workers[3]
    Worker.objects.filter(pk=draining.pk).update(state="draining", desired="drain")
    scene.keys["worker"] = scene.workers[0].pk


def _succeeded(scene: Scene) -> None:
    rows = []
    for name, (queue, count, run) in TYPES.items():
        for _ in range(count):
            finished = scene.ago(7 * DAY)
            rows.append(_archived(scene, name, queue, finished, run))
    for number in range(6):
        cancelled = _archived(scene, "send_invoice", "mail", scene.ago(DAY), 1)
        cancelled.status = "cancelled" if number % 2 else "expired"
        rows.append(cancelled)
    ArchivedJob.objects.bulk_create(rows)
    scene.keys["succeeded"] = rows[0].pk


def _archived(
    scene: Scene, name: str, queue: str, finished: datetime, run: int
) -> ArchivedJob:
    waited, ran = scene.spread(40), scene.spread(run)
    started = finished - timedelta(milliseconds=ran)
    created = started - timedelta(milliseconds=waited)
    return ArchivedJob(
        id=_id(scene, created),
        job_type_id=f"{SHOP}.{name}",
        queue=queue,
        status="succeeded",
        data=_data(scene, name),
        attempts=1,
        created_at=created,
        run_after=created,
        started_at=started,
        finished_at=finished,
        wait_ms=waited,
        run_ms=ran,
        worker=scene.worker().name,
        release=RELEASE,
        enqueued_by="checkout",
    )


def _data(scene: Scene, name: str) -> dict[str, Any]:
    order = scene.random.randrange(40_000, 49_000)
    if name == "capture_payment":
        return {"order_id": order, "card_token": "tok_visa_4242"}
    if name == "deliver_webhook":
        return {"order_id": order, "event": "order.paid"}
    if name == "resize_image":
        return {"product_id": order % 300}
    return {"order_id": order}


def _failed(scene: Scene, name: str) -> None:
    job_type, count, retrying, since = FAILED[name]
    queue = TYPES.get(job_type, ("default",))[0]
    kept = scene.kept[name]
    jobs: list[Any] = []
    for _ in range(count):
        job = _archived(scene, job_type, queue, scene.ago(min(since, 7 * DAY)), 9_000)
        job.status, job.attempts = "failed", 5 if name == "refused" else 1
        job.error_class, job.error_message = kept.error_class, kept.message
        job.fingerprint = kept.fingerprint.value
        jobs.append(job)
    jobs.sort(key=lambda job: job.finished_at)
    ArchivedJob.objects.bulk_create(jobs)
    waiting = [_retrying(scene, job_type, queue) for _ in range(retrying)]
    QueuedJob.objects.bulk_create(waiting)
    attempts = [one for job in (*jobs, *waiting) for one in _attempts(scene, kept, job)]
    Failure.objects.bulk_create(attempts)
    _group(scene, name, jobs[-1].finished_at)
    scene.keys[name] = jobs[-1].pk


def _attempts(scene: Scene, kept: Kept, job: Any) -> Iterator[Failure]:
    last = getattr(job, "finished_at", scene.now - MINUTE)
    for number in range(job.attempts, 0, -1):
        finished = last - (job.attempts - number) ** 2 * MINUTE
        yield Failure(
            job_id=job.pk,
            job_type=job.job_type_id,
            number=number,
            end="failed",
            started_at=finished - timedelta(milliseconds=scene.spread(900)),
            finished_at=finished,
            worker=scene.worker().name,
            release=RELEASE,
            error_class=kept.error_class,
            error_message=kept.message,
            traceback=kept.traceback,
            frames=kept.frames,
            log_tail="POST /partner/webhook/" if job.queue == "webhooks" else "",
            fingerprint=kept.fingerprint.value,
        )


def _group(scene: Scene, name: str, last: datetime) -> None:
    found = scene.kept[name].fingerprint
    said = {
        column: scene.now + value if isinstance(value, timedelta) else value
        for column, value in STATES.get(name, {}).items()
    }
    FailureGroup.objects.create(
        fingerprint=found.value,
        coarse=found.coarse,
        error_class=found.error_class,
        frame=found.frame,
        template=found.template,
        first_seen=scene.now - FAILED[name][3],
        last_seen=last,
        **said,
    )
    scene.keys[f"group {name}"] = found.value


def _retrying(scene: Scene, job_type: str, queue: str) -> QueuedJob:
    created = scene.now - 40 * MINUTE * scene.random.random()
    return QueuedJob(
        id=_id(scene, created),
        job_type_id=f"{SHOP}.{job_type}",
        queue=queue,
        data=_data(scene, job_type),
        attempts=scene.random.randrange(1, 4),
        created_at=created,
        run_after=scene.now + 10 * MINUTE * scene.random.random(),
        enqueued_by="checkout",
    )


def _queued(scene: Scene) -> None:
    rows = []
    for name, count in (("deliver_webhook", 31), ("resize_image", 12)):
        queue = TYPES[name][0]
        for _ in range(count):
            created = scene.now - 50 * MINUTE * scene.random.random()
            rows.append(_waiting(scene, name, queue, created, created))
    for _ in range(9):
        due = scene.now + DAY * scene.random.random()
        rows.append(_waiting(scene, "send_invoice", "mail", scene.now - HOUR, due))
    for number, name in enumerate(
        ("deliver_webhook", "send_invoice", "refresh_prices")
    ):
        job = _waiting(scene, name, TYPES[name][0], scene.now - HOUR, scene.now - HOUR)
        job.status, job.attempts, job.fence = "running", 1, number + 1
        job.worker_id = scene.workers[number].pk
        job.started_at = scene.now - timedelta(seconds=7 + 40 * number)
        rows.append(job)
    lost = _waiting(scene, "render_invoice", "default", scene.now - HOUR, scene.now)
    lost.status, lost.attempts, lost.fence = "running", 1, 9
    lost.worker_id = scene.workers[4].pk
    lost.started_at = scene.now - 6 * MINUTE
    QueuedJob.objects.bulk_create([*rows, lost])
    for worker in (*scene.workers[:3], scene.workers[4]):
        Worker.objects.filter(pk=worker.pk).update(running=1)
    scene.keys |= {"ready": rows[0].pk, "running": rows[-1].pk}


def _waiting(
    scene: Scene, name: str, queue: str, created: datetime, due: datetime
) -> QueuedJob:
    return QueuedJob(
        id=_id(scene, created),
        job_type_id=f"{SHOP}.{name}",
        queue=queue,
        data=_data(scene, name),
        created_at=created,
        run_after=due,
        enqueued_by="checkout",
    )


def _operations(scene: Scene) -> None:
    failed = (Term("status", "failed"), Term("type", WEBHOOK))
    common = {
        "kind": "replay",
        "selection": Selection(Table.ARCHIVED, failed).to_json(),
        "created_by": "anna",
        "started_at": scene.now - 4 * MINUTE,
    }
    running = BulkOperation.objects.create(
        state="running",
        reason="The partner is back, INC-118.",
        total=48_211,
        seen=29_880,
        changed=29_455,
        skipped={"replayed": 312, "at_most_once": 113},
        progress_at=scene.now,
        per_minute=12_000,
        job_id=_works_off(scene),
        **common,
    )
    BulkOperation.objects.create(
        state="done",
        reason="Fixed in 2026.11.2, SHOP-412.",
        total=312,
        seen=312,
        changed=312,
        created_at=scene.now - 2 * DAY,
        finished_at=scene.now - 2 * DAY + MINUTE,
        **common,
    )
    draft = BulkOperation.objects.create(
        state="draft", **{**common, "started_at": None}
    )
    bulk.count(draft.pk)
    scene.keys |= {"operation": running.pk, "draft": draft.pk}


def _works_off(scene: Scene) -> UUID:
    """The job that works an operation off."""
    job = QueuedJob.objects.create(
        job_type_id="jobqueue.bulk",
        queue="default",
        status="running",
        attempts=1,
        fence=10,
        worker_id=scene.workers[1].pk,
        started_at=scene.now,
    )
    found: UUID = job.pk
    return found


def _history(scene: Scene) -> None:
    user = get_user_model().objects.get(username="anna")
    archived = ArchivedJob.objects.filter(pk=scene.keys["refused"])
    LogEntry.objects.log_actions(user.pk, archived, CHANGE, "Replayed.")
    operation = str(scene.keys["operation"])
    refused = str(scene.keys["refused"])
    filtered = "type: shop.deliver_webhook, status: failed"
    reason = "The partner is down, INC-118."
    limits = {"overrides": {"concurrency": "4 → 2"}}
    for after, by, verb, count, about, details in (
        (3 * HOUR, "carl", "pause", 1, [WEBHOOK], {"reason": reason}),
        (2 * HOUR, "carl", "override", 1, [WEBHOOK], limits),
        (95 * MINUTE, "anna", "run schedule", 1, ["shop.report_sales"], {}),
        (30 * MINUTE, "bert", "export", 1_204, [], {"jobs": "archived"}),
        (12 * MINUTE, "anna", "replay", 1, [refused, WEBHOOK], {}),
        (
            4 * MINUTE,
            "anna",
            "start bulk replay",
            48_211,
            [operation],
            {"filter": filtered, "reason": "The partner is back, INC-118."},
        ),
    ):
        AuditEntry.objects.create(
            at=scene.now - after,
            by=by,
            verb=verb,
            count=count,
            about=about,
            details=details,
        )


def _id(scene: Scene, created: datetime) -> UUID:
    """An id as the queue makes them (UUIDv7), at this time."""
    millis = int(created.timestamp() * 1_000)
    random_bits = scene.random.getrandbits(62)
    return UUID(int=millis << 80 | 0x7 << 76 | 0x2 << 62 | random_bits)
