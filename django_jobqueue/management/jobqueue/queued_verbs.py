"""``jobqueue run-now``, ``reschedule``, ``fail`` and ``release``: verbs for jobs that
wait, or whose worker is gone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, ClassVar, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import BulkKind, QueuedStatus
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.management.jobqueue import many_jobs, where
from django_jobqueue.management.jobqueue.batches import BATCH, run_batches
from django_jobqueue.management.jobqueue.by_filter import ByFilter
from django_jobqueue.management.jobqueue.cancel import COLUMNS, example
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.many_jobs import Result
from django_jobqueue.management.jobqueue.queues import warn_of_unknown
from django_jobqueue.management.jobqueue.subcommand import Subcommand, by
from django_jobqueue.management.jobqueue.time_formats import TIMES, moment
from django_jobqueue.models import QueuedJob
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store.bulk.selected_ids import count_selected, selected_ids
from django_jobqueue.store.connection import DjangoDatabase

FILTERS: Final = ("--where", "--type", "--queue", "--older-than", "--group")


class QueuedVerb(Subcommand):
    """Does one thing to jobs, by id or by filter."""

    positionals = "ids"
    epilog = many_jobs.JSON_KEYS
    filters: ClassVar[Sequence[str]] = FILTERS
    bulk_action: ClassVar[BulkKind | None] = None  # None: in batches
    verb: ClassVar[str]  # in JSON
    done: ClassVar[str]  # to the jobs, in words
    doing: ClassVar[str] = ""  # the title of the progress bar
    # Which jobs of a filter it can change at all.
    eligible: ClassVar[Sequence[Term]] = (Term("statuses", (QueuedStatus.QUEUED,)),)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add which jobs, and whether to ask."""
        many_jobs.add_arguments(parser)
        where.add_arguments(parser.add_argument_group("filter"), self.filters)

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Do it, or show what it would be. Raises CommandError."""
        ids, filters = many_jobs.ids_or_filter(options, self.filters)
        now = database_now()
        how = self.how(options, now)
        if ids:
            self._by_id(console, options, ids, how)
            return
        if "queue" in filters:
            warn_of_unknown(console, [filters["queue"]])
        if self.bulk_action is not None:
            selection = where.selection(Table.QUEUED, filters, now)
            self._as_operation(console, options, self.bulk_action, selection, how)
        else:
            others = (*self.eligible, Term("created", now, "<="))
            selection = where.selection(Table.QUEUED, filters, now, *others)
            self._in_batches(console, options, selection, how)

    def how(self, options: dict[str, Any], now: datetime) -> dict[str, Any]:
        """What the operation is called with beside the jobs. Raises CommandError."""
        return {}

    @abstractmethod
    def change(self, ids: Sequence[UUID], how: dict[str, Any]) -> list[UUID]:
        """Do it; returns the ids of the jobs that were changed."""

    def _by_id(
        self,
        console: Console,
        options: dict[str, Any],
        ids: list[UUID],
        how: dict[str, Any],
    ) -> None:
        chosen = Selection(Table.QUEUED, (Term("id", tuple(ids)), *self.eligible))
        chunks = selected_ids(DjangoDatabase(), chosen, most=BATCH)
        able = list(chain.from_iterable(chunks))
        done: Sequence[UUID] = able
        if not options["dry_run"]:
            jobs = counted(len(able), "job")
            many_jobs.make_sure(console, options, len(able), jobs, self.done)
            done = self.change(ids, how)
        result = Result(
            verb=self.verb,
            dry_run=options["dry_run"],
            count=len(done),
            ids=done,
            problems=[self._why_not(id) for id in ids if id not in done],
        )
        self._tell(console, options, result)
        many_jobs.refuse(result.problems)

    def _as_operation(
        self,
        console: Console,
        options: dict[str, Any],
        bulk_action: BulkKind,
        selection: Selection,
        how: dict[str, Any],
    ) -> None:
        with ByFilter(console, bulk_action, selection, **how) as chosen:
            if options["dry_run"]:
                self._tell(console, options, chosen.preview())
            else:
                chosen.go(options)

    def _in_batches(
        self,
        console: Console,
        options: dict[str, Any],
        selection: Selection,
        how: dict[str, Any],
    ) -> None:
        db = DjangoDatabase()
        total = count_selected(db, selection)
        if options["dry_run"]:
            most = many_jobs.EXAMPLES
            first = next(selected_ids(db, selection, most=most), [])
            result = Result(verb=self.verb, dry_run=True, count=total, ids=first)
            self._tell(console, options, result)
            return
        jobs = counted(total, "job")
        many_jobs.make_sure(console, options, total, jobs, self.done)
        done = 0

        def steps() -> Iterator[int]:
            nonlocal done
            for ids in selected_ids(db, selection, most=BATCH):
                changed = len(self.change(ids, how))
                done += changed
                yield changed

        def summary() -> str:
            return many_jobs.summary(done, self.done)

        run_batches(steps(), console, (self.doing, total), summary)
        self._tell(console, options, Result(verb=self.verb, dry_run=False, count=done))

    def _tell(self, console: Console, options: dict[str, Any], result: Result) -> None:
        if many_jobs.is_json(options):
            result.print(console)
        elif result.dry_run:
            jobs = counted(result.count, "job")
            console.print(f"{jobs} would be {self.done}.")
            many_jobs.show_examples(console, COLUMNS, _examples(result.ids))
        elif result.count or not result.problems:
            console.info(many_jobs.summary(result.count, self.done))

    def _why_not(self, id: UUID) -> str:
        try:
            job = operations.get_job(id)
        except JobNotFound as missing:
            return str(missing)
        if job.is_over:
            return f"Job {id} has finished already ({job.status})."
        return f"Job {id} is {job.status}; {self.wanted}"

    wanted: ClassVar[str] = "only a job that waits can be changed so."


class RunNow(QueuedVerb):
    """Lets waiting jobs run now."""

    name = "run-now"
    bulk_action = BulkKind.RUN_NOW
    verb, done = BulkKind.RUN_NOW.value, "made due"
    summary = "Let waiting jobs run now, by id or by filter."
    description = """\
Let jobs that wait for their time, or for their next attempt, run now. Attempts
and expiry stay as they are.

  jobqueue run-now 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11
  jobqueue run-now --where "state:retrying error:ConnectionError" --dry-run

By filter, it is a bulk operation, as in the admin, that this command runs."""

    def change(self, ids: Sequence[UUID], how: dict[str, Any]) -> list[UUID]:
        """Make them due."""
        return operations.run_now(ids, by=by())


class Reschedule(QueuedVerb):
    """Changes when, how urgently and where waiting jobs run."""

    name = "reschedule"
    bulk_action = BulkKind.RESCHEDULE
    verb, done = BulkKind.RESCHEDULE.value, "rescheduled"
    filters = ("--where", "--type", "--older-than", "--group")
    summary = "Change when, how urgently or where waiting jobs run."
    description = """\
Change when, how urgently or where waiting jobs run.

  jobqueue reschedule 019a9f5e7c3b --run-after 2h
  jobqueue reschedule --where "queue:mail state:ready" --priority -5

By filter, it is a bulk operation, as in the admin, that this command runs.
Jobs that would expire before their new time are skipped."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add what is changed, too."""
        super().add_arguments(parser)
        group = parser.add_argument_group("what is changed")
        group.add_argument(
            "--run-after",
            metavar="WHEN",
            help=f"Not before this: {TIMES}. A duration is from now.",
        )
        group.add_argument(
            "--priority", type=int, help="From -100 to 100; higher runs first."
        )
        group.add_argument("--queue", help="Their new queue.")

    def how(self, options: dict[str, Any], now: datetime) -> dict[str, Any]:
        """The new time, priority and queue. Raises CommandError."""
        when = options["run_after"]
        how = {
            "run_after": when and moment("--run-after", when, now=now),
            "priority": options["priority"],
            "queue": options["queue"],
        }
        given = {name: value for name, value in how.items() if value is not None}
        if not given:
            raise CommandError("Say what changes: --run-after, --priority or --queue.")
        return given

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Change them. Raises CommandError."""
        if options["queue"]:
            warn_of_unknown(console, [options["queue"]])
        super().run(console, options)

    def change(self, ids: Sequence[UUID], how: dict[str, Any]) -> list[UUID]:
        """Change them."""
        return operations.reschedule(ids, by=by(), **how)


class FailNow(QueuedVerb):
    """Archives waiting jobs as failed."""

    name = "fail"
    verb, done, doing = "fail", "failed", "Failing"
    summary = "Archive waiting jobs as failed, by id or by filter."
    description = """\
Archive waiting jobs as failed, whatever attempts they have left. What runs is
left alone: cancel it.

  jobqueue fail 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11 --reason "no such order"
  jobqueue fail --where "attempts:>10 error:Declined" --reason "given up"

By filter, it takes the jobs that wait when it starts, 1,000 in a transaction. A
failed job can be replayed."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add why, too."""
        super().add_arguments(parser)
        parser.add_argument("--reason", help="Kept as what the jobs failed with.")

    def how(self, options: dict[str, Any], now: datetime) -> dict[str, Any]:
        """The reason. Raises CommandError."""
        if not options["reason"]:
            raise CommandError("Say why: --reason.")
        return {"reason": options["reason"]}

    def change(self, ids: Sequence[UUID], how: dict[str, Any]) -> list[UUID]:
        """Archive them."""
        return operations.fail(ids, by=by(), **how)


class Release(QueuedVerb):
    """Takes running jobs from workers that are gone."""

    name = "release"
    verb, done, doing = "release", "released", "Releasing"
    eligible = (Term("state", "lapsed"),)
    wanted = "only one whose worker is gone can be released. Cancel it instead."
    summary = "Take running jobs from workers that are gone."
    description = """\
Take running jobs from workers that are gone at once, not when a living host
comes to it. They wait again, with one more crash; those of at-most-once types
are archived as failed. Jobs of living workers are left alone. Name jobs
that a killed jobqueue move holds: they wait again as they were.

  jobqueue release 019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11
  jobqueue release --where state:lapsed"""

    def change(self, ids: Sequence[UUID], how: dict[str, Any]) -> list[UUID]:
        """Take them."""
        return [one.id for one in operations.release(ids, by=by())]


def _examples(ids: Sequence[UUID]) -> Iterable[list[str]]:
    jobs = QueuedJob.objects.using(conf.database).filter(pk__in=ids)
    return map(example, jobs.order_by("pk"))
