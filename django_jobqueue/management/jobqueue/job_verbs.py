"""``jobqueue cancel``, ``run-now``, ``reschedule``, ``fail``, ``release``: made of the
declarations in ``verbs/jobs.py``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.management.jobqueue import many_jobs, where
from django_jobqueue.management.jobqueue.batches import BATCH, run_batches
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.inputs import values_of, warn_of_unknown
from django_jobqueue.management.jobqueue.many_jobs import ByFilter, Result
from django_jobqueue.management.jobqueue.subcommand import Options, VerbCommand, by
from django_jobqueue.models import QueuedJob
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store.bulk.selected_ids import count_selected, selected_ids
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control.cancel import Cancelled
from django_jobqueue.verbs import jobs
from django_jobqueue.verbs.declarations import Argument


class JobVerb(VerbCommand):
    json = many_jobs.JSON

    def all_arguments(self) -> Iterator[Argument]:
        yield from many_jobs.ARGUMENTS
        yield from where.filters(self.verb.filters)
        yield from self.verb.arguments
        yield from super().all_arguments()

    def run(self, console: Console, options: Options) -> None:
        ids, filters = many_jobs.ids_or_filter(options, self.verb.filters)
        now = database_now()
        own = (a for a in self.verb.arguments if a.name not in self.verb.filters)
        how = values_of(own, options, now)
        if self.verb.needs and not any(value != "" for value in how.values()):
            raise CommandError(self.verb.needs)
        if options.get("queue"):
            warn_of_unknown(console, [options["queue"]])
        if ids:
            self._by_id(console, options, ids, how)
            return
        terms = []
        if "status" in filters:
            terms.append(Term("statuses", (filters["status"],)))
        if self.verb.bulk is None:
            terms += [*self.verb.applies, Term("created", now, "<=")]
        selection = where.selection(Table.QUEUED, filters, now, *terms)
        if self.verb.bulk is None:
            self._in_batches(console, options, selection, how)
        else:
            self.as_operation(console, options, selection, **how)

    def as_operation(
        self, console: Console, options: Options, selection: Selection, **how: Any
    ) -> None:
        """Do it to these jobs, or show what it would be. Raises CommandError."""
        with ByFilter(console, self.verb, selection, **how) as chosen:
            if not options["dry_run"]:
                chosen.go(options)
                return
            asked = 0
            if not self.verb.applies:  # to running ones, too
                asked = chosen.draft.counted.having(QueuedStatus.RUNNING)
            self._answer(console, chosen.preview(asked))

    def _by_id(
        self, console: Console, options: Options, ids: list[UUID], how: dict[str, Any]
    ) -> None:
        chosen = Selection(Table.QUEUED, (Term("id", tuple(ids)), *self.verb.applies))
        chunks = selected_ids(DjangoDatabase(), chosen, most=BATCH)
        able = list(chain.from_iterable(chunks))
        if options["dry_run"]:
            changed, asked = able, self._running(able)
        else:
            text = counted(len(able), "job")
            many_jobs.make_sure(console, options, len(able), text, self.verb.done)
            changed, asked = self._change(ids, how)
        result = Result(
            verb=self.verb.name,
            dry_run=options["dry_run"],
            count=len(changed) - len(asked),
            asked_to_stop=len(asked),
            ids=changed,
            problems=[self._why_not(id) for id in ids if id not in changed],
        )
        self._answer(console, result)
        many_jobs.refuse(result.problems)

    def _in_batches(
        self,
        console: Console,
        options: Options,
        selection: Selection,
        how: dict[str, Any],
    ) -> None:
        db = DjangoDatabase()
        total = count_selected(db, selection)
        result = Result(verb=self.verb.name, dry_run=options["dry_run"], count=total)
        if options["dry_run"]:
            first = selected_ids(db, selection, most=many_jobs.EXAMPLES)
            result.ids = next(first, [])
            self._answer(console, result)
            return
        text = counted(total, "job")
        many_jobs.make_sure(console, options, total, text, self.verb.done)
        result.count = 0

        def steps() -> Iterator[int]:
            for ids in selected_ids(db, selection, most=BATCH):
                changed, _ = self._change(ids, how)
                result.count += len(changed)
                yield len(changed)

        def summary() -> str:
            return many_jobs.summary(result.count, self.verb.done)

        run_batches(steps(), console, (self.verb.doing, total), summary)
        self._answer(console, result)

    def _change(
        self, ids: Sequence[UUID], how: dict[str, Any]
    ) -> tuple[list[UUID], list[UUID]]:
        """Do it; the jobs that were changed, and those of them that will stop."""
        done = self.verb.function(ids, by=by(), **how)
        asked = done.asked if isinstance(done, Cancelled) else []
        return jobs.changed_ids(done), asked

    def _running(self, ids: Sequence[UUID]) -> list[UUID]:
        if self.verb.applies:
            return []
        running = _rows(ids).filter(status=QueuedStatus.RUNNING)
        return list(running.values_list("pk", flat=True))

    def _answer(self, console: Console, result: Result) -> None:
        done, asked = self.verb.done, result.asked_to_stop
        if console.is_json:
            result.print(console)
        elif result.dry_run:
            text = f"{counted(result.count, 'job')} would be {done}"
            if asked:
                text += f", {counted(asked, 'running one')} would be asked to stop"
            console.print(f"{text}.")
            rows = _rows(result.ids).order_by("pk")
            many_jobs.show_examples(console, many_jobs.QUEUED, rows)
        elif result.count or asked or not result.problems:
            console.info(many_jobs.summary(result.count, done, asked))

    def _why_not(self, id: UUID) -> str:
        try:
            job = operations.get_job(id)
        except JobNotFound as missing:
            return str(missing)
        if job.is_over:
            cannot = "" if self.verb.applies else f"; it cannot be {self.verb.done}"
            return f"Job {id} has finished already ({job.status}){cannot}."
        return f"Job {id} {self.verb.not_done.format(status=job.status)}"


def _rows(ids: Sequence[UUID]) -> Any:
    return QueuedJob.objects.using(conf.database).filter(pk__in=ids)


CANCEL: Final = JobVerb(jobs.CANCEL)
RUN_NOW: Final = JobVerb(jobs.RUN_NOW)
RESCHEDULE: Final = JobVerb(jobs.RESCHEDULE)
FAIL: Final = JobVerb(jobs.FAIL)
RELEASE: Final = JobVerb(jobs.RELEASE)
