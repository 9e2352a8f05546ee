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
from django_jobqueue.management.jobqueue import many_jobs, where
from django_jobqueue.management.jobqueue.by_filter import ByFilter
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.many_jobs import Result
from django_jobqueue.management.jobqueue.queues import warn_of_unknown
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by
from django_jobqueue.management.jobqueue.text_tables import Column
from django_jobqueue.models import QueuedJob
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.database_clock import database_now

FILTERS: Final = (
    "--where",
    "--type",
    "--queue",
    "--status",
    "--older-than",
    "--group",
)
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
  jobqueue cancel --where "state:retrying error:Timeout data.customer.id:7"

By filter, it is a bulk operation, as in the admin, that this command
runs: it takes the jobs that are there when it starts, chunk by chunk, each a
transaction of its own. After Ctrl-C workers do the others. A cancelled job can
be replayed."""
    epilog = many_jobs.JSON_KEYS

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is to be cancelled, and why."""
        many_jobs.add_arguments(parser)
        parser.add_argument(
            "--reason", default="", help="Kept with the jobs in the archive."
        )
        chosen = parser.add_argument_group("filter")
        where.add_arguments(chosen, FILTERS)
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
        asked = sum(job.status == QueuedStatus.RUNNING for job in queued)
        number, done = len(queued) - asked, [job.pk for job in queued]
    else:
        jobs_text = counted(len(queued), "job")
        many_jobs.make_sure(console, options, len(queued), jobs_text, "cancelled")
        cancelled = operations.cancel(ids, reason=options["reason"], by=by())
        number, asked = len(cancelled.archived), len(cancelled.asked)
        done = [*cancelled.archived, *cancelled.asked]
    result = Result(
        verb="cancel",
        dry_run=options["dry_run"],
        count=number,
        asked_to_stop=asked,
        ids=done,
        problems=[_why_not(id) for id in ids if id not in done],
    )
    _tell(console, options, result, queued)
    many_jobs.refuse(result.problems)


def _by_filter(
    console: Console, options: dict[str, Any], filters: dict[str, str]
) -> None:
    if "queue" in filters:
        warn_of_unknown(console, [filters["queue"]])
    terms = []
    if "status" in filters:
        terms.append(Term("statuses", (filters["status"],)))
    selection = where.selection(Table.QUEUED, filters, database_now(), *terms)
    cancel_selected(console, options, selection)


def cancel_selected(
    console: Console, options: dict[str, Any], selection: Selection
) -> None:
    """Cancel these jobs, or show what it would be. Raises CommandError."""
    reason = options["reason"]
    with ByFilter(console, BulkKind.CANCEL, selection, reason=reason) as chosen:
        if not options["dry_run"]:
            chosen.go(options)
            return
        running = chosen.draft.counted.having(QueuedStatus.RUNNING)
        jobs = QueuedJob.objects.using(conf.database).filter(pk__in=chosen.examples)
        _tell(console, options, chosen.preview(running), jobs.order_by("pk"))


def _tell(
    console: Console,
    options: dict[str, Any],
    result: Result,
    examples: Iterable[QueuedJob],
) -> None:
    if many_jobs.is_json(options):
        result.print(console)
    elif not result.dry_run:
        if examples:
            count, asked = result.count, result.asked_to_stop
            console.info(many_jobs.summary(count, "cancelled", asked))
    else:
        text = f"{counted(result.count, 'job')} would be cancelled"
        if result.asked_to_stop:
            running = counted(result.asked_to_stop, "running one")
            text += f", {running} would be asked to stop"
        console.print(f"{text}.")
        many_jobs.show_examples(console, COLUMNS, map(example, examples))


def example(job: QueuedJob) -> list[str]:
    """The row of this job in a table."""
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
