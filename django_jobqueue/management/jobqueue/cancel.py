"""``jobqueue cancel``: queued jobs are archived, running ones asked to stop."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandParser
from django.db import transaction
from django.db.models import QuerySet

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.management.jobqueue import bulk
from django_jobqueue.management.jobqueue.batches import BATCH, run_batches
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.progress import Progress
from django_jobqueue.management.jobqueue.queues import warn_of_unknown
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by
from django_jobqueue.management.jobqueue.table import Column
from django_jobqueue.models import QueuedJob
from django_jobqueue.stats.clock import database_now

FILTERS: Final = ("--queue", "--type", "--status")
COLUMNS: Final = (
    Column("Job"),
    Column("Job type", least=10, cut="start"),
    Column("Queue", least=7, cut="middle"),
    Column("Status"),
)


class Cancel(Subcommand):
    """Cancels jobs by id or by filter."""

    name = "cancel"
    summary = "Cancel queued and running jobs, by id or by filter."
    rest = "ids"
    description = f"""\
Cancel jobs. Queued ones are archived as cancelled at once; running ones are
asked to stop, and archived as cancelled when they do.

  jobqueue cancel 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11 --reason "wrong order"
  jobqueue cancel --type shop.send_receipt --status queued --dry-run

By filter, it takes the jobs that are there when it starts, in chunks of {BATCH:,},
each a transaction of its own. A cancelled job can be replayed."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is to be cancelled, and why."""
        bulk.add_arguments(parser)
        parser.add_argument(
            "--reason", default="", help="Kept with the jobs in the archive."
        )
        chosen = parser.add_argument_group("filter")
        chosen.add_argument("--queue", help="Jobs in this queue.")
        chosen.add_argument("--type", metavar="TYPE", help="Jobs of this type.")
        chosen.add_argument(
            "--status",
            choices=QueuedStatus.values,
            help="Only queued, or only running, jobs (default: both).",
        )

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Cancel them, or show what it would be."""
        ids, filters = bulk.ids_or_filter(options, FILTERS)
        jobs = QueuedJob.objects.using(conf.database)
        if ids:
            cancelling = Cancelling(console, options, jobs.filter(pk__in=ids))
        else:
            if "queue" in filters:
                warn_of_unknown(console, [filters["queue"]])
            chosen = _matching(jobs.all(), filters, database_now())
            cancelling = Cancelling(console, options, chosen)
        if options["dry_run"]:
            cancelling.show()
        else:
            cancelling.go()
        bulk.refuse(_why_not(id) for id in ids if id not in cancelling.named)


class Cancelling:
    """One run of the subcommand."""

    def __init__(
        self, console: Console, options: dict[str, Any], jobs: QuerySet[QueuedJob]
    ) -> None:
        self._console = console
        self._options = options
        self._jobs = jobs
        self._total = jobs.count()
        self._archived = 0
        self._asked = 0
        self.named: set[UUID] = set()  # where ids were given

    def show(self) -> None:
        """Say how many it would be, and show some."""
        running = self._jobs.filter(status=QueuedStatus.RUNNING).count()
        text = f"{counted(self._total - running, 'job')} would be cancelled"
        if running:
            text += f", {counted(running, 'running one')} would be asked to stop"
        self._console.print(f"{text}.")
        oldest = self._jobs.order_by("pk")
        bulk.show_examples(self._console, oldest, COLUMNS, _example)
        if self._options["ids"]:
            self.named.update(oldest.values_list("pk", flat=True))

    def go(self) -> None:
        """Cancel them."""
        if self._total > bulk.MANY:
            jobs = counted(self._total, "job")
            bulk.make_sure(self._console, self._options, jobs, "cancelled")
        progress = Progress(self._console, "Cancelling", self._total)
        run_batches(self._steps(), progress, self._console, self._summary)
        if self._total or not self._options["ids"]:
            self._console.say(self._summary())

    def _steps(self) -> Iterator[int]:
        reason = self._options["reason"]
        for ids in _chunks(self._jobs):
            with transaction.atomic(using=conf.database):
                done = operations.cancel(ids, reason=reason, by=by())
            self._archived += len(done.archived)
            self._asked += len(done.asked)
            if self._options["ids"]:
                self.named.update(done.archived, done.asked)
            yield len(ids)

    def _summary(self) -> str:
        text = bulk.were(self._archived, "cancelled")
        if self._asked:
            were = "was" if self._asked == 1 else "were"
            text += f", {counted(self._asked, 'running one')} {were} asked to stop"
        return f"{text}."


def _chunks(jobs: QuerySet[QueuedJob]) -> Iterator[list[UUID]]:
    """Ids in order, each chunk read when it is due; behind a position, not an offset,
    as those before are gone by then."""
    ids = list(jobs.order_by("pk").values_list("pk", flat=True)[:BATCH])
    while ids:
        yield ids
        left = jobs.filter(pk__gt=ids[-1]).order_by("pk")
        ids = list(left.values_list("pk", flat=True)[:BATCH])


def _matching(
    jobs: QuerySet[QueuedJob], filters: dict[str, Any], now: datetime
) -> QuerySet[QueuedJob]:
    bulk.check_job_type(filters.get("type"))
    names = {"type": "job_type"}
    chosen = {names.get(name, name): value for name, value in filters.items()}
    # Without this it would run after those who enqueue meanwhile, and never end.
    return jobs.filter(created_at__lte=now, **chosen)


def _example(job: QueuedJob) -> list[str]:
    return [
        str(job.pk),
        job.job_type_id,
        job.queue,
        job.status,
    ]


def _why_not(id: UUID) -> str:
    """Why this job was not cancelled."""
    try:
        job = operations.get_job(id)
    except JobNotFound as missing:
        return str(missing)
    if job.is_over:
        return f"Job {id} is over already ({job.status}); it cannot be cancelled."
    return f"Job {id} was {job.status} too late to be cancelled; try again."
