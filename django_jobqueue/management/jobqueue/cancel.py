"""``jobqueue cancel``: queued jobs are archived, running ones asked to stop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import BulkKind, QueuedStatus
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.management.jobqueue import many_jobs
from django_jobqueue.management.jobqueue.by_filter import ByFilter
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.queues import warn_of_unknown
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by
from django_jobqueue.management.jobqueue.text_tables import Column
from django_jobqueue.models import QueuedJob
from django_jobqueue.search.selection import Selection, Table, Term

FILTERS: Final = ("--queue", "--type", "--status")
COLUMNS: Final = (
    Column("Job"),
    Column("Job type", breaks=True),
    Column("Queue", breaks=True),
    Column("Status"),
)


class Cancel(Subcommand):
    """Cancels jobs by id or by filter."""

    name = "cancel"
    summary = "Cancel queued and running jobs, by id or by filter."
    positionals = "ids"
    description = """\
Cancel jobs. Queued ones are archived as cancelled at once; running ones are
asked to stop, and archived as cancelled when they do.

  jobqueue cancel 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11 --reason "wrong order"
  jobqueue cancel --type shop.send_receipt --status queued --dry-run

By filter, it is a bulk operation, as in the admin, that this command
runs: it takes the jobs that are there when it starts, chunk by chunk, each a
transaction of its own. A cancelled job can be replayed."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is to be cancelled, and why."""
        many_jobs.add_arguments(parser)
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
        ids, filters = many_jobs.ids_or_filter(options, FILTERS)
        if ids:
            _by_id(console, options, ids)
        else:
            _by_filter(console, options, filters)


def _by_id(console: Console, options: dict[str, Any], ids: list[UUID]) -> None:
    jobs = QueuedJob.objects.using(conf.database).filter(pk__in=ids).order_by("pk")
    queued = list(jobs)
    if options["dry_run"]:
        running = sum(job.status == QueuedStatus.RUNNING for job in queued)
        _show(console, len(queued), running, queued)
        done = {job.pk for job in queued}
    else:
        jobs_text = counted(len(queued), "job")
        many_jobs.make_sure(console, options, len(queued), jobs_text, "cancelled")
        cancelled = operations.cancel(ids, reason=options["reason"], by=by())
        if queued:
            number, asked = len(cancelled.archived), len(cancelled.asked)
            console.info(many_jobs.summary(number, "cancelled", asked))
        done = {*cancelled.archived, *cancelled.asked}
    many_jobs.refuse(_why_not(id) for id in ids if id not in done)


def _by_filter(
    console: Console, options: dict[str, Any], filters: dict[str, str]
) -> None:
    many_jobs.check_job_type(filters.get("type"))
    if "queue" in filters:
        warn_of_unknown(console, [filters["queue"]])
    terms = [Term(name, filters[name]) for name in ("queue", "type") if name in filters]
    if "status" in filters:
        terms.append(Term("statuses", (filters["status"],)))
    selection = Selection(Table.QUEUED, tuple(terms))
    reason = options["reason"]
    with ByFilter(console, BulkKind.CANCEL, selection, reason=reason) as chosen:
        if not options["dry_run"]:
            chosen.go(options)
            return
        counts = chosen.draft.counted
        jobs = QueuedJob.objects.using(conf.database).filter(pk__in=chosen.examples)
        running = counts.having(QueuedStatus.RUNNING)
        _show(console, chosen.total, running, jobs.order_by("pk"))


def _show(
    console: Console, total: int, running: int, examples: Iterable[QueuedJob]
) -> None:
    text = f"{counted(total - running, 'job')} would be cancelled"
    if running:
        text += f", {counted(running, 'running one')} would be asked to stop"
    console.print(f"{text}.")
    many_jobs.show_examples(console, COLUMNS, map(_example, examples))


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
        return f"Job {id} has finished already ({job.status}); it cannot be cancelled."
    return f"Job {id} was {job.status} too late to be cancelled; try again."
