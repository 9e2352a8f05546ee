"""One run of the demo: its orders and its jobs, and what became of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from django.db import connection
from django.db.models import Count, QuerySet

from django_jobqueue.models import ArchivedJob, Failure, QueuedJob
from testproject.shop.models import Order


@dataclass(frozen=True, slots=True)
class Run:
    """What was made since a moment of the database's clock."""

    since: datetime

    @classmethod
    def starting_now(cls) -> Run:
        """The run that starts now."""
        return cls(_clock())

    @property
    def queued(self) -> QuerySet[QueuedJob]:
        """Its jobs that are queued or running."""
        return QueuedJob.objects.filter(created_at__gte=self.since)

    @property
    def archived(self) -> QuerySet[ArchivedJob]:
        """Its jobs that are over."""
        return ArchivedJob.objects.filter(created_at__gte=self.since)

    @property
    def errors(self) -> list[tuple[str, int]]:
        """The last error of each of its jobs that have not succeeded, and how many have
        the same one; the most frequent first."""
        unsuccessful = [
            *self.queued.values_list("id", flat=True),
            *self.archived.exclude(status="succeeded").values_list("id", flat=True),
        ]
        failures = Failure.objects.filter(job_id__in=unsuccessful)
        last = failures.order_by("job_id", "-id").distinct("job_id")
        return Counter(
            f"{f.job_type}: {f.error_class}: {f.error_message}" for f in last
        ).most_common()

    @property
    def orders(self) -> list[Order]:
        """Its orders, the first one first."""
        orders = Order.objects.filter(created_at__gte=self.since).order_by("pk")
        return list(
            orders.select_related("customer", "invoice").prefetch_related(
                "lines", "payments", "ledger_entries", "receipts"
            )
        )

    def next_job_in(self) -> float | None:
        """Seconds until one of its jobs may run; None if none is left."""
        first = self.queued.order_by("run_after").first()
        if first is None:
            return None
        return max(0.0, (first.run_after - _clock()).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What became of the jobs of one type."""

    job_type: str
    enqueued: int
    succeeded: int
    failed: int  # and whatever else did not succeed
    retries: int
    run_ms: float | None  # median of the last attempts


def figures(run: Run) -> list[Figures]:
    """The figures of every job type that the run used."""
    left = dict(
        run.queued.order_by().values_list("job_type").annotate(count=Count("id"))
    )
    over: dict[str, list[tuple[str, int, int | None]]] = defaultdict(list)
    rows = run.archived.values_list("job_type", "status", "attempts", "run_ms")
    for job_type, *row in rows.iterator():
        over[job_type].append(tuple(row))
    names = sorted({*left, *over})
    return [_figures(name, left.get(name, 0), over[name]) for name in names]


def _figures(
    job_type: str, left: int, over: list[tuple[str, int, int | None]]
) -> Figures:
    succeeded = sum(status == "succeeded" for status, _, _ in over)
    times = [run_ms for _, _, run_ms in over if run_ms is not None]
    return Figures(
        job_type=job_type,
        enqueued=left + len(over),
        succeeded=succeeded,
        failed=len(over) - succeeded,
        retries=sum(max(0, attempts - 1) for _, attempts, _ in over),
        run_ms=median(times) if times else None,
    )


def _clock() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment
