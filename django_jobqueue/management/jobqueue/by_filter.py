"""Jobs that a filter chooses: a bulk operation that this process drafts and runs.

It is the same operation as the admin's, with its row, its history and its rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError

from django_jobqueue import operations
from django_jobqueue.domain.states import BulkKind, WorkState
from django_jobqueue.management.jobqueue import many_jobs
from django_jobqueue.management.jobqueue.batches import INTERRUPTED, run_batches
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.many_jobs import Result
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.operations.bulk import work_here
from django_jobqueue.search.selection import Selection
from django_jobqueue.store.bulk.skips import planned, skip_reason
from django_jobqueue.text import numbers

# The title of the progress bar, and what was done to the jobs.
VERBS: Final = {
    BulkKind.REPLAY: ("Replaying", "replayed"),
    BulkKind.CANCEL: ("Cancelling", "cancelled"),
    BulkKind.RUN_NOW: ("Moving", "made due"),
    BulkKind.RESCHEDULE: ("Rescheduling", "rescheduled"),
    BulkKind.PRUNE: ("Deleting", "deleted"),
}


class ByFilter:
    """A bulk operation: drafted and counted; confirmed; run. A draft that is not
    started leaves nothing behind."""

    def __init__(
        self,
        console: Console,
        operation: BulkKind,
        selection: Selection,
        *,
        reason: str = "",
        **how: Any,
    ) -> None:
        self._console = console
        self._operation = operation
        self._title, self._verb = VERBS[operation]
        self.draft = operations.bulk.draft(
            operation, selection, reason=reason, by=by(), here=True, **how
        )
        options = self.draft.options
        changes, self.skipped = planned(operation, self.draft.counted, options)
        self.total = changes if options.limit is None else min(changes, options.limit)
        self._done = 0
        self._asked = 0
        self._is_over = False

    def __enter__(self) -> ByFilter:
        return self

    def __exit__(self, *error: object) -> None:
        operations.bulk.discard(self.draft.id)

    @property
    def examples(self) -> Sequence[UUID]:
        """The ids of the first of the jobs that would be changed."""
        return self.draft.counted.examples[: self.total]

    def preview(self, asked: int = 0) -> Result:
        """What it would do, ``asked`` of it to running jobs."""
        return Result(
            verb=self._operation.value,
            dry_run=True,
            count=self.total - asked,
            asked_to_stop=asked,
            skipped=self.skipped,
            ids=self.examples,
        )

    def go(self, options: dict[str, Any]) -> None:
        """Do it, after a question where it is many jobs, and say what was done. Raises
        CommandError."""
        jobs = f"{counted(self.total, 'job')}{self._statuses()}"
        many_jobs.make_sure(self._console, options, self.total, jobs, self._verb)
        if self.total:
            self._work_off()
        if many_jobs.is_json(options):
            self._result().print(self._console)
        else:
            self._console.info(self._summary())

    def _statuses(self) -> str:
        """`` (7 failed, 2 succeeded)``, where there are several."""
        counts: dict[str, int] = {}
        for traits, number in self.draft.counted.cells.items():
            if not skip_reason(self._operation, traits, self.draft.options):
                status = traits.split()[0]
                counts[status] = counts.get(status, 0) + number
        if len(counts) < 2:
            return ""
        each = (f"{numbers.number(n)} {status}" for status, n in sorted(counts.items()))
        return f" ({', '.join(each)})"

    def _work_off(self) -> None:
        operations.bulk.start(self.draft.id, by=by(), here=True)
        bar = (self._title, self.total)
        try:
            run_batches(self._steps(), self._console, bar, self._summary)
        except CommandError as interrupted:
            if not operations.bulk.resume(self.draft.id, by=by()):
                raise
            raise CommandError(
                f"{interrupted} Workers do the others: to end that, write jobqueue "
                f"operations stop {self.draft.id}",
                returncode=INTERRUPTED,
            ) from None
        if not self._is_over:
            state = WorkState(operations.bulk.get(self.draft.id).state).value
            if state == WorkState.DONE:  # somebody resumed it beside this command
                self._console.warn("A worker did the others.")
                return
            raise CommandError(
                f"Bulk operation {self.draft.id} is {state} by now. {self._summary()}"
            )

    def _steps(self) -> Iterator[int]:
        for chunk in work_here(self.draft.id):
            self._done += chunk.changed - chunk.asked
            self._asked += chunk.asked
            self._is_over = chunk.over
            yield chunk.changed

    def _summary(self) -> str:
        return many_jobs.summary(self._done, self._verb, self._asked)

    def _result(self) -> Result:
        return Result(
            verb=self._operation.value,
            dry_run=False,
            count=self._done,
            asked_to_stop=self._asked,
            operation=self.draft.id if self.total else None,
            skipped=dict(operations.bulk.get(self.draft.id).skipped)
            if self.total
            else self.skipped,
        )
