"""``jobqueue move``: waiting jobs go to another database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError
from django.db import Error as DatabaseError

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.contrib.transfer import moving
from django_jobqueue.contrib.transfer.moving import Move as Moving
from django_jobqueue.contrib.transfer.moving import MovePlan
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.management.jobqueue import many_jobs, where
from django_jobqueue.management.jobqueue.batches import run_batches
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.database import check, explained, using
from django_jobqueue.management.jobqueue.inputs import warn_of_unknown
from django_jobqueue.management.jobqueue.many_jobs import Result
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand, by
from django_jobqueue.models import JobType, Queue, QueuedJob
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.pauses import in_force
from django_jobqueue.store.bulk.selected_ids import selected_ids
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text import numbers
from django_jobqueue.verbs.declarations import Argument
from django_jobqueue.verbs.jobs import FILTERS

WAITING: Final = Term("statuses", (QueuedStatus.QUEUED,))
REASONS: Final = {
    moving.AT_MOST_ONCE: "between two databases nobody can promise that a handler is "
    "started at most once, as their types do",
    moving.OWN_TYPE: "they are of the job queue itself, for rows of this database",
    moving.ID_EXISTS: "jobs with their ids are there already",
    moving.KEY_EXISTS: "other jobs there have their unique keys",
}


class Move(Subcommand):
    name = "move"
    summary = "Move waiting jobs to another database."
    description = """\
Move waiting jobs to another database of DATABASES, with their ids, attempts and
times. Workers may run on both meanwhile: a job that moves is held like a
running one until it waits there. Running jobs are left alone.

  jobqueue move --to jobs_b --where "queue:mail" --dry-run
  jobqueue move --to jobs_b --type shop.send_receipt --yes
  jobqueue move --to jobs_b                 # ends a move that was killed

By filter, it takes the jobs that wait when it starts, 200 at a time. Ctrl-C
ends it between two batches. If it is killed, up to 200 jobs stay held until the
next move to the same database continues; none is lost, and none runs twice.

Jobs of at-most-once types stay: no one can keep that promise between two
databases. So do jobs whose id or unique key already exists there. A missing job
type is declared there, if the code has it."""
    json = f"""{many_jobs.JSON} The reasons in skipped are {", ".join(REASONS)}."""
    arguments = (
        Argument("to", "Alias of the database that the jobs are moved to.", "ALIAS"),
        *many_jobs.ARGUMENTS,
        *where.filters(FILTERS),
    )

    def run(self, console: Console, options: Options) -> None:
        if not options["to"]:
            raise CommandError("Say where to: --to, with an alias of DATABASES.")
        check(options["to"], "--to")
        ids, selection = _chosen(console, options)
        move = Moving(options["to"], by=by())
        try:
            with move:
                _Run(console, options, move, ids).go(selection)
        except DatabaseError as error:
            with using(move.database):
                text = explained(error)
            if text is None:
                raise
            if move.has_begun:
                text += (
                    ". Jobs that were moving are held: the next jobqueue move --to "
                    f"{move.to} goes on with them."
                )
            raise CommandError(text) from error
        if move.held:
            console.warn(
                f"{counted(move.held, 'job')} could not be released, since others "
                f"have locked their rows. Write later: jobqueue move --to {move.to}"
            )


class _Run:
    """One call of the command."""

    def __init__(
        self, console: Console, options: Options, move: Moving, ids: list[UUID]
    ) -> None:
        self._console = console
        self._options = options
        self._move = move
        self._ids = ids
        self._moved: list[UUID] = []  # of those that were named
        self._count = 0

    def go(self, selection: Selection | None) -> None:
        """Move the jobs, or show what it would be. Raises CommandError."""
        empty = MovePlan(0, {}, (), (), (), ())
        plan = self._move.plan(selection) if selection else empty
        if plan.unknown:
            raise CommandError(_undeclared(plan.unknown, self._move.to))
        self._warn_of_pauses(plan)
        if self._options["dry_run"]:
            self._preview(plan, selection)
            return
        if plan.skipped and not plan.total:
            raise CommandError(f"Nothing was moved. {_stay(plan.skipped)}")
        jobs = counted(plan.total, "job")
        done = f"moved to {self._move.to}"
        many_jobs.make_sure(self._console, self._options, plan.total, jobs, done)
        steps = self._steps(selection, plan)
        run_batches(steps, self._console, ("Moving", plan.total), self._summary)
        if self._move.others:
            self._console.warn(
                "Another move to this database goes on, or died less than "
                f"{numbers.span(conf.lease)} ago on another host. What it holds was "
                "left to it. If it died, write then: jobqueue move --to "
                f"{self._move.to}"
            )
        skipped = dict(Counter(plan.skipped) + self._move.skipped)
        result = self._result(dry_run=False, count=self._count, skipped=skipped)
        if self._console.is_json:
            result.print(self._console)
        else:
            self._console.info(
                " ".join(filter(None, (self._summary(), _stay(skipped))))
            )
        many_jobs.refuse(result.problems)

    def _steps(self, selection: Selection | None, plan: MovePlan) -> Iterator[int]:
        for ids in self._move.steps(selection, plan.undeclared):
            self._count += len(ids)
            self._moved += [id for id in ids if id in self._ids]
            yield len(ids)

    def _summary(self) -> str:
        return many_jobs.summary(self._count, f"moved to {self._move.to}")

    def _preview(self, plan: MovePlan, selection: Selection | None) -> None:
        most = many_jobs.EXAMPLES
        chunks = (
            selected_ids(DjangoDatabase(), selection, most=most) if selection else ()
        )
        self._moved = next(iter(chunks), [])
        result = self._result(dry_run=True, count=plan.total, skipped=plan.skipped)
        if self._console.is_json:
            result.print(self._console)
            return
        if held := self._move.interrupted():
            self._console.warn(
                f"{counted(held, 'job')} more are held by a move that goes on, or was "
                "killed: then the next one goes on with them."
            )
        text = f"{counted(plan.total, 'job')} would be moved to {self._move.to}."
        self._console.print(" ".join(filter(None, (text, _stay(plan.skipped)))))
        jobs = QueuedJob.objects.using(conf.database).filter(pk__in=self._moved)
        rows = jobs.order_by("pk")
        many_jobs.show_examples(self._console, many_jobs.QUEUED, rows)

    def _result(self, **values: Any) -> Result:
        problems = []
        if not values["dry_run"]:
            to = self._move.to
            problems = [_why_not(id, to) for id in self._ids if id not in self._moved]
        return Result(verb="move", ids=self._moved, problems=problems, **values)

    def _warn_of_pauses(self, plan: MovePlan) -> None:
        """Whoever paused jobs here does not want them to run there either."""
        model: Any
        for model, names in ((JobType, plan.job_types), (Queue, plan.queues)):
            for name in _paused(model, names, conf.database) - _paused(
                model, names, self._move.to
            ):
                self._console.warn(
                    f"{name} is paused here, and not in {self._move.to}: its jobs run "
                    "there at once."
                )


def _chosen(console: Console, options: Options) -> tuple[list[UUID], Selection | None]:
    """The ids that were given, and the jobs to be moved; None if only a move that was
    killed is to be ended. Raises CommandError."""
    if not options["ids"] and not where.given(options, FILTERS):
        return [], None
    ids, filters = many_jobs.ids_or_filter(options, FILTERS)
    if ids:
        return ids, Selection(Table.QUEUED, (Term("id", tuple(ids)), WAITING))
    if "queue" in filters:
        warn_of_unknown(console, [filters["queue"]])
    now = database_now()
    until_now = Term("created", now, "<=")
    return [], where.selection(Table.QUEUED, filters, now, WAITING, until_now)


def _paused(model: Any, names: Any, alias: str) -> set[str]:
    rows = model.objects.using(alias).filter(in_force(), name__in=names)
    return set(rows.values_list("name", flat=True))


def _undeclared(names: Any, to: str) -> str:
    return (
        f"In the database {to!r} there is no job type {', '.join(map(repr, names))}, "
        "and no code here declares it, so no worker there would run its jobs. Run "
        f"manage.py migrate --database {to} where its handler is, or leave these jobs "
        "out. Nothing was moved."
    )


def _stay(skipped: dict[str, int]) -> str:
    """Sentences about jobs that stay."""
    return " ".join(
        f"{counted(number, 'job')} stay{'s' if number == 1 else ''}: {REASONS[reason]}."
        for reason, number in skipped.items()
        if number
    )


def _why_not(id: UUID, to: str) -> str:
    """Why this job was not moved."""
    try:
        job = operations.get_job(id)
    except JobNotFound as missing:
        return f"Job {id} is in {to} already." if _is_there(id, to) else str(missing)
    if job.is_over:
        return f"Job {id} has finished already ({job.status})."
    if job.status != QueuedStatus.QUEUED:
        return f"Job {id} is {job.status}; only a job that waits can be moved."
    if _is_there(id, to):
        return f"Job {id} stays: a job with this id is in {to} already."
    return f"Job {id} stays."


def _is_there(id: UUID, to: str) -> bool:
    try:
        operations.get_job(id, using=to)
    except JobNotFound:
        return False
    return True
