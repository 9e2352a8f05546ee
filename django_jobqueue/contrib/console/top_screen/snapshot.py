"""What the screen shows, read at one moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import F

from django_jobqueue.conf import conf
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.management.jobqueue import failure_groups
from django_jobqueue.models import FailureGroup, QueuedJob
from django_jobqueue.stats import current_state
from django_jobqueue.stats.current_state import Present
from django_jobqueue.stats.group_states import STATES
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.stats import Recent

HOUR: Final = 3_600.0  # seconds
MINUTE: Final = 60.0
MOST_RUNNING: Final = 500  # jobs, those that started first
MOST_GROUPS: Final = 50  # of failures, the newest


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the job queue at one moment."""

    present: Present
    recent: list[Recent]  # of the last hour
    finished: int  # attempts of the last minute
    failed: int  # of these
    running: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)


def read(*, running: bool, groups: bool) -> Snapshot:
    """Read it, from the caller's connection; running jobs and failure groups only where
    they are wanted."""
    db = DjangoDatabase()
    minute = stats.recent(db, MINUTE)
    return Snapshot(
        present=current_state.read(db),
        recent=stats.recent(db, HOUR),
        finished=sum(row.succeeded + row.failed + row.retried for row in minute),
        failed=sum(row.failed + row.retried for row in minute),
        running=_running() if running else [],
        groups=_groups() if groups else [],
    )


def _running() -> list[dict[str, Any]]:
    jobs = QueuedJob.objects.using(conf.database).filter(status=QueuedStatus.RUNNING)
    names = ("id", "job_type_id", "queue", "worker_id", "attempts", "started_at")
    oldest = jobs.order_by(F("started_at").asc(nulls_last=True), "pk")
    return list(oldest.values(*names)[:MOST_RUNNING])


def _groups() -> list[dict[str, Any]]:
    groups = FailureGroup.objects.using(conf.database).filter(STATES["open"])
    newest = groups.order_by("-last_seen", "-fingerprint")[:MOST_GROUPS]
    rows = failure_groups.with_figures(list(newest))
    return [failure_groups.GROUPS.as_object(row) for row in rows]
