"""All there is to know of one job, without its secrets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from operator import attrgetter
from types import SimpleNamespace
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
from django_jobqueue.verbs.columns import Column, Listing, only_json

MOST_REPLAYS: Final = 20
QUEUED: Final = ("quarantined", "cancel_requested_at")
ARCHIVED: Final = ("wait_ms", "run_ms", "release", "effective_max_attempts")
BOTH: Final = ("enqueued_by", "followers", "follows", "root_id", "bulk_operation_id")


class Shown:
    """A job, and what is read beside it. Raises JobNotFound, InvalidArguments."""

    def __init__(self, id: UUID | str) -> None:
        self.job = operations.get_job(id)
        self.job_type = _type_of(self.job)
        self.masking = _masking(self.job.data, self.job_type)
        self.row = _row(self.job)


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
    """The mask for the secrets of this job, or of other data for it."""
    return _masking(job.data if data is None else data, _type_of(job))


def _type_of(job: Job) -> JobType | None:
    return JobType.objects.using(conf.database).filter(pk=job.job_type).first()


def _masking(data: Any, job_type: JobType | None) -> Masking:
    return Masking(data, _names(job_type.sensitive if job_type else []))


def _max_attempts(one: Shown) -> int | None:
    """The limit in force. An archived job keeps the one that held when it ended: that
    of its type may be another one by now, or the type gone."""
    job, job_type = one.job, one.job_type
    if job.is_over or job_type is None:
        limit: int | None = one.row.effective_max_attempts
        return limit
    declared, override = job_type.max_attempts, job_type.max_attempts_override
    delivery = Delivery(job_type.delivery)
    return attempts_in_force(delivery, job.max_attempts, declared, override)


def why_not_running(job: Job) -> list[Reason]:
    """The reasons why it is not running; none if it has finished."""
    if job.is_over:
        return []
    row = QueuedJob.objects.using(conf.database).filter(pk=job.id).first()
    return why_not_one(row) if row else []


def _row(job: Job) -> SimpleNamespace:
    """The columns that a ``Job`` does not have; None where its table has none."""
    model: Any = ArchivedJob if job.is_over else QueuedJob
    names = (*BOTH, *(ARCHIVED if job.is_over else QUEUED))
    row = model.objects.using(conf.database).filter(pk=job.id).values(*names).first()
    return SimpleNamespace(**dict.fromkeys((*BOTH, *QUEUED, *ARCHIVED)) | (row or {}))


def _replays(one: Shown) -> list[UUID]:
    """The newest jobs that repeat this one."""
    ids = [
        pk
        for model in (QueuedJob, ArchivedJob)
        for pk in model.objects.using(conf.database)
        .filter(replay_of=one.job.id)
        .order_by("-pk")
        .values_list("pk", flat=True)[:MOST_REPLAYS]
    ]
    return sorted(ids)[-MOST_REPLAYS:]


def _followed_by(one: Shown) -> list[UUID]:
    rows = ArchivedJob.objects.using(conf.database).filter(followers__isnull=False)
    archived = rows.filter(pk=one.job.id).first() if one.job.is_over else None
    return [follower.pk for follower in followers_of(archived)] if archived else []


def _progress(one: Shown) -> dict[str, Any] | None:
    progress = progress_of(one.job.id)
    if progress.updated_at is None:
        return None
    return {
        "done": progress.done,
        "total": progress.total,
        "percent": progress.percent,
        "note": one.masking.text(progress.note),
        "updated_at": progress.updated_at,
    }


def _failures(one: Shown) -> Iterator[dict[str, Any]]:
    """The attempts that did not succeed, oldest first."""
    masking, failures = one.masking, Failure.objects.using(conf.database)
    rows = failures.filter(job_id=one.job.id).order_by("pk")
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


def _lines(one: Shown) -> Iterator[dict[str, Any]]:
    """The log lines of its attempts, oldest first."""
    reports = Report.objects.using(conf.database)
    rows = reports.filter(job_id=one.job.id).order_by("fence")
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
                "text": one.masking.text(str(text)),
            }


def _names(value: Any) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []


def _timeout(one: Shown) -> float | None:
    timeout = one.job.timeout
    return None if timeout is None else timeout.total_seconds()


def _masked(name: str, of: str = "job") -> Column:
    value = attrgetter(f"{of}.{name}")
    return Column(name, value=lambda one: one.masking.value(value(one)))


SHOWN: Final = Listing(
    (
        *only_json("id job_type", "job"),
        Column("handler", value=lambda one: getattr(one.job_type, "handler", "")),
        *only_json("status queue priority attempts crashes tags worker", "job"),
        Column(
            "max_attempts",
            value=_max_attempts,
            note="the limit in force, of an archived job the one when it ended; null "
            "is unlimited, or not known, as of jobs that succeeded",
        ),
        Column(
            "timeout",
            value=_timeout,
            note="of this job alone; null leaves it to its type",
        ),
        Column("backoff", value="job.backoff", note="the same"),
        *only_json("created_at run_after expires_at started_at finished_at", "job"),
        Column(
            "why_not_running",
            value=lambda one: why_not_running(one.job),
            note="list of texts; empty if the job runs or has finished",
        ),
        *only_json("enqueued_by", "row"),
        _masked("followers", "row")._replace(
            note="by option: names, or objects with options"
        ),
        Column(
            "follows", value="row.follows", note="the job that enqueued it by its end"
        ),
        *only_json("root_id bulk_operation_id quarantined", "row"),
        *only_json("cancel_requested_at wait_ms run_ms release", "row"),
        Column("followed_by", value=_followed_by, note="followers that it enqueued"),
        *map(_masked, ("data", "metadata", "result")),
        *only_json("error_class", "job"),
        Column(
            "error_message", value=lambda one: one.masking.text(one.job.error_message)
        ),
        *only_json("fingerprint", "job"),
        Column(
            "progress", value=_progress, note="{done, total, percent, note, updated_at}"
        ),
        *only_json("replay_of", "job"),
        Column("replays", value=_replays, note="jobs that repeat it"),
        Column(
            "failures",
            value=lambda one: list(_failures(one)),
            note="list of {attempt, end, reason, started_at, finished_at, worker, "
            "release, error_class, error_message, traceback, fingerprint}",
        ),
        Column(
            "lines",
            value=lambda one: list(_lines(one)),
            note="list of {attempt, at, level, text}",
        ),
    )
)
