"""All there is to know of one job, without its secrets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import attempts_in_force
from django_jobqueue.domain.states import Delivery
from django_jobqueue.models import ArchivedJob, Failure, JobType, QueuedJob, Report
from django_jobqueue.models.follower_search import followers_of
from django_jobqueue.progress import progress_of
from django_jobqueue.stats.why_not_running import Reason, why_not_one
from django_jobqueue.store.rows import Job
from django_jobqueue.text.redaction import mask_json, mask_text, secrets_in

MOST_REPLAYS: Final = 20
QUEUED: Final = ("quarantined", "cancel_requested_at")
ARCHIVED: Final = ("wait_ms", "run_ms", "release")
BOTH: Final = ("enqueued_by", "followers", "follows", "root_id", "bulk_operation_id")


def read(id: UUID | str) -> dict[str, Any]:
    """The job with this id; the keys are stable. Raises JobNotFound,
    InvalidArguments."""
    job = operations.get_job(id)
    job_type = _type_of(job)
    masking = _masking(job.data, job_type)
    row = _row(job)
    return {
        **_identity(job, job_type),
        "max_attempts": _max_attempts(job, job_type, row),
        "timeout": None if job.timeout is None else job.timeout.total_seconds(),
        "backoff": job.backoff,
        **_times(job),
        "why_not_running": why_not_running(job),
        **{name: row.get(name) for name in (*BOTH, *QUEUED, *ARCHIVED)},
        "followers": masking.value(row.get("followers")),
        "followed_by": [one.pk for one in _followers(job)],
        "data": masking.value(job.data),
        "metadata": masking.value(job.metadata),
        "result": masking.value(job.result),
        "error_class": job.error_class,
        "error_message": masking.text(job.error_message),
        "fingerprint": job.fingerprint,
        "progress": _progress(job, masking),
        "replay_of": job.replay_of,
        "replays": _replays(job.id),
        "failures": list(_failures(job.id, masking)),
        "lines": list(_lines(job.id, masking)),
    }


class Masking:
    """Takes the secrets of one job out of all that is shown of it."""

    def __init__(self, data: Any, sensitive: list[str]) -> None:
        self._sensitive = sensitive
        self._secrets = secrets_in(data, sensitive)

    def value(self, value: Any) -> Any:
        """The JSON value without them, and without what looks like one."""
        return mask_json(value, self._sensitive, self._secrets)

    def text(self, text: str) -> str:
        """The text without them, and without what looks like one."""
        return mask_text(text, self._secrets)


def masking_of(job: Job, data: Any = None) -> Masking:
    """What masks the secrets of this job, or of other data for it."""
    return _masking(job.data if data is None else data, _type_of(job))


def _type_of(job: Job) -> JobType | None:
    return JobType.objects.using(conf.database).filter(pk=job.job_type).first()


def _masking(data: Any, job_type: JobType | None) -> Masking:
    return Masking(data, _names(job_type.sensitive if job_type else []))


def _identity(job: Job, job_type: JobType | None) -> dict[str, Any]:
    return {
        "id": job.id,
        "job_type": job.job_type,
        "handler": job_type.handler if job_type else "",
        "status": job.status,
        "queue": job.queue,
        "priority": job.priority,
        "attempts": job.attempts,
        "crashes": job.crashes,
        "tags": list(job.tags),
        "worker": job.worker,
    }


def _max_attempts(
    job: Job, job_type: JobType | None, row: dict[str, Any]
) -> int | None:
    """The limit in force. An archived job keeps the one that held when it ended: that
    of its type may be another one by now, or the type gone."""
    if job.is_over or job_type is None:
        return row.get("effective_max_attempts")
    declared, override = job_type.max_attempts, job_type.max_attempts_override
    delivery = Delivery(job_type.delivery)
    return attempts_in_force(delivery, job.max_attempts, declared, override)


def _times(job: Job) -> dict[str, datetime | None]:
    names = ("created_at", "run_after", "expires_at", "started_at", "finished_at")
    return {name: getattr(job, name) for name in names}


def why_not_running(job: Job) -> list[Reason]:
    """The reasons why it is not running; none if it has finished."""
    if job.is_over:
        return []
    row = QueuedJob.objects.using(conf.database).filter(pk=job.id).first()
    return why_not_one(row) if row else []


def _row(job: Job) -> dict[str, Any]:
    """The columns that a ``Job`` does not have."""
    model: Any = ArchivedJob if job.is_over else QueuedJob
    own = (*ARCHIVED, "effective_max_attempts") if job.is_over else QUEUED
    row = (
        model.objects.using(conf.database).filter(pk=job.id).values(*BOTH, *own).first()
    )
    return row or {}


def _replays(id: UUID) -> list[UUID]:
    """The newest jobs that repeat this one."""
    ids = [
        pk
        for model in (QueuedJob, ArchivedJob)
        for pk in model.objects.using(conf.database)
        .filter(replay_of=id)
        .order_by("-pk")
        .values_list("pk", flat=True)[:MOST_REPLAYS]
    ]
    return sorted(ids)[-MOST_REPLAYS:]


def _followers(job: Job) -> list[QueuedJob | ArchivedJob]:
    rows = ArchivedJob.objects.using(conf.database).filter(followers__isnull=False)
    archived = rows.filter(pk=job.id).first() if job.is_over else None
    return followers_of(archived) if archived else []


def _progress(job: Job, masking: Masking) -> dict[str, Any] | None:
    progress = progress_of(job.id)
    if progress.updated_at is None:
        return None
    return {
        "done": progress.done,
        "total": progress.total,
        "percent": progress.percent,
        "note": masking.text(progress.note),
        "updated_at": progress.updated_at,
    }


def _failures(id: UUID, masking: Masking) -> Iterator[dict[str, Any]]:
    """The attempts that did not succeed, oldest first."""
    rows = Failure.objects.using(conf.database).filter(job_id=id).order_by("pk")
    for row in rows:
        yield {
            "attempt": row.number,
            "end": row.end,
            "reason": masking.text(row.reason),
            "started_at": row.started_at,
            "finished_at": row.finished_at,
            "worker": row.worker,
            "release": row.release,
            "error_class": row.error_class,
            "error_message": masking.text(row.error_message),
            "traceback": masking.text(row.traceback),
            "fingerprint": row.fingerprint,
        }


def _lines(id: UUID, masking: Masking) -> Iterator[dict[str, Any]]:
    """What its attempts logged, oldest first."""
    rows = Report.objects.using(conf.database).filter(job_id=id).order_by("fence")
    for row in rows:
        for line in row.lines if isinstance(row.lines, list) else ():
            try:
                at, level, text = line
                moment = datetime.fromtimestamp(at, UTC)
            except (TypeError, ValueError, OverflowError):  # written by plain SQL
                continue
            yield {
                "attempt": row.number,
                "at": moment,
                "level": str(level),
                "text": masking.text(str(text)),
            }


def _names(value: Any) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []
