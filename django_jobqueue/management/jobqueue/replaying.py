"""The replaying of chosen jobs, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import Delivery, ReplayExpiry, SkipReplayed
from django_jobqueue.management.jobqueue import bulk
from django_jobqueue.management.jobqueue.batches import BATCH, run_batches
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.progress import Progress
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.management.jobqueue.table import Column
from django_jobqueue.management.jobqueue.times import moment, span
from django_jobqueue.models import ArchivedJob, JobType
from django_jobqueue.store import find
from django_jobqueue.store.connection import DjangoDatabase

COLUMNS: Final = (
    Column("Job"),
    Column("Job type", least=12, cut="start"),
    Column("Ended ago", right=True),
    Column("Outcome", least=10, cut="start"),
)


class Replaying:
    """One run of the subcommand."""

    def __init__(
        self,
        console: Console,
        options: dict[str, Any],
        jobs: QuerySet[ArchivedJob],
        now: datetime,
    ) -> None:
        known = find.known_names(DjangoDatabase())
        when = options["run_after"]
        self._console = console
        self._options = options
        self._now = now
        self._run_after = when and moment("--run-after", when, now=now)
        once = [] if options["ids"] or options["at_most_once"] else _at_most_once()
        replayable = jobs.filter(job_type__in=known)
        self._jobs = replayable.exclude(job_type__in=once).order_by("finished_at", "pk")
        self._without_type = jobs.exclude(job_type__in=known).count()
        self._left_out = replayable.filter(job_type__in=once).count()
        self._limit: int | None = options["limit"]
        self.total = self._jobs[: self._limit].count()
        self._done = 0
        self.named: dict[UUID, UUID | None] = {}  # new ids, where ids were given

    def show(self) -> None:
        """Say how many it would be, and show some."""
        jobs = counted(self.total, "job")
        self._console.print(f"{jobs} would be replayed.")
        self._warn()
        oldest = self._jobs[: self._limit]
        bulk.show_examples(self._console, oldest, COLUMNS, self._example)
        if self._options["ids"]:
            self.named = dict.fromkeys(oldest.values_list("pk", flat=True))

    def go(self) -> None:
        """Replay them; print each new id, or only how many."""
        self._warn()
        if self.total > bulk.MANY:
            jobs = counted(self.total, "job")
            bulk.make_sure(self._console, self._options, jobs, "replayed")
        progress = Progress(self._console, "Replaying", self.total)
        run_batches(self._steps(), progress, self._console, self._summary)
        for old, new in self.named.items():
            self._console.print(f"{old} was replayed as {new}")
        if not self.named:
            self._console.say(self._summary())

    def _steps(self) -> Iterator[int]:
        for ids in _chunks(self._jobs, self._limit):
            with transaction.atomic(using=conf.database):
                made = operations.replay_many(
                    ids,
                    run_after=self._run_after,
                    expires=self._options["expires"],
                    skip_replayed=SkipReplayed.NONE,
                    skip_at_most_once=False,
                    queue=self._options["queue"],
                    priority=self._options["priority"],
                    by=by(),
                )
            self._done += len(made)
            if self._options["ids"]:
                self.named.update(made)
            yield len(ids)

    def _example(self, job: ArchivedJob) -> list[str]:
        ago = (self._now - job.finished_at).total_seconds()
        outcome = job.error_class or job.status
        return [str(job.pk), job.job_type_id, span(ago), outcome]

    def _summary(self) -> str:
        return f"{bulk.were(self._done, 'replayed')}."

    def _warn(self) -> None:
        if self._without_type and not self._options["ids"]:
            more = counted(self._without_type, "more job")
            self._console.warn(
                f"{more} cannot be replayed, because the job type is gone."
            )
        if self._left_out:
            were = bulk.were(self._left_out, "left out")
            self._console.warn(
                f"{were}: of an at-most-once type; --at-most-once takes them, too."
            )
        if self._options["expires"] == ReplayExpiry.KEEP:
            past = self._jobs.filter(expires_at__lte=self._now)
            expired = past[: self._limit].count()
            if expired:
                self._console.warn(
                    f"{counted(expired, 'job')} will expire again at once; say "
                    "--expires same or --expires never if that is not wanted."
                )


def _at_most_once() -> list[str]:
    """The names of the job types whose jobs are never started twice."""
    types = JobType.objects.using(conf.database)
    return list(
        types.filter(delivery=Delivery.AT_MOST_ONCE).values_list("pk", flat=True)
    )


def _chunks(jobs: QuerySet[ArchivedJob], limit: int | None) -> Iterator[list[UUID]]:
    """Ids, the oldest first, each chunk read when it is due; behind a position, not an
    offset, as those before have been replayed by then."""
    position = Q()
    while limit is None or limit > 0:
        size = BATCH if limit is None else min(BATCH, limit)
        rows = list(jobs.filter(position).values_list("pk", "finished_at")[:size])
        if not rows:
            return
        yield [id for id, _ in rows]
        last, ended = rows[-1]
        after = Q(finished_at__gt=ended) | Q(pk__gt=last)
        position = Q(finished_at__gte=ended) & after
        limit = None if limit is None else limit - len(rows)
