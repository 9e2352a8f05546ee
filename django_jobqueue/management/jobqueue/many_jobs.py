"""Verbs on many jobs: which ones, the question before, the work and the answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError

from django_jobqueue import operations
from django_jobqueue.domain.states import WorkState
from django_jobqueue.management.jobqueue.batches import INTERRUPTED, run_batches
from django_jobqueue.management.jobqueue.console import Console, counted, were
from django_jobqueue.management.jobqueue.subcommand import YES, Options, by
from django_jobqueue.management.jobqueue.text_tables import Row
from django_jobqueue.management.jobqueue.where import JOB_ID, given, job_id
from django_jobqueue.operations.bulk import work_here
from django_jobqueue.search.selection import Selection
from django_jobqueue.store.bulk.skips import planned, skip_reason
from django_jobqueue.text import numbers
from django_jobqueue.verbs.columns import Column, Listing
from django_jobqueue.verbs.declarations import ASK, Argument, Verb, flag

UNASKED: Final = 1  # jobs that are changed without a question
EXAMPLES: Final = 5
SHOWN_PROBLEMS: Final = 10
STDIN: Final = "-"
DRY_RUN: Final = flag(
    "dry_run", "Change nothing; print how many jobs would be changed, and some of them."
)
ARGUMENTS: Final = (
    Argument(
        "ids",
        f"Jobs, each by {JOB_ID}; - reads them from standard input.",
        "ID",
        words="*",
    ),
    DRY_RUN,
    YES,
)
# The fields of Result.
JSON: Final = """one object: verb, dry_run, count (jobs that were changed, or would be),
asked_to_stop (running jobs beside them), operation (the id of the bulk operation, or
null), skipped (numbers by reason), ids (given by id: those that were changed; of a dry
run: the first ones), replays (by the id of the old job, that of the new one), problems
(texts about ids that were not changed)."""
QUEUED: Final = Listing(
    (
        Column("pk", "Job"),
        Column("job_type_id", "Job type", breaks=True),
        Column("queue", "Queue", breaks=True),
        Column("status", "Status"),
    )
)


@dataclass(kw_only=True)
class Result:
    """The result or preview of a command on many jobs, with the JSON's keys."""

    verb: str
    dry_run: bool
    count: int
    asked_to_stop: int = 0
    operation: UUID | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    ids: Sequence[UUID] = ()
    replays: Mapping[UUID, UUID] = field(default_factory=dict)
    problems: Sequence[str] = ()

    def print(self, console: Console) -> None:
        """Print it for a program."""
        replays = {str(old): new for old, new in self.replays.items()}
        console.json({**vars(self), "replays": replays})


def ids_or_filter(
    options: Options, names: Sequence[str]
) -> tuple[list[UUID], dict[str, Any]]:
    """The ids that were given, or else the filters. Raises CommandError."""
    filters = given(options, names)
    *most, last = (f"--{name.replace('_', '-')}" for name in names)
    listed = f"{', '.join(most)} or {last}"
    if options["ids"] and filters:
        raise CommandError(f"Name jobs by id or choose them by {listed}, not both.")
    if not options["ids"] and not filters:
        raise CommandError(f"Name jobs by id, or choose them by {listed}.")
    words = list(_words(options["ids"]))
    if options["ids"] and not words:
        raise CommandError("Standard input has no ids.")
    return list(dict.fromkeys(map(job_id, words))), filters


def _words(ids: Iterable[str]) -> Iterator[str]:
    for word in ids:
        if word == STDIN:
            yield from sys.stdin.read().split()
        else:
            yield word


def make_sure(
    console: Console,
    options: Options,
    number: int,
    rows: str,
    done: str,
    ask: str = ASK,
) -> None:
    """Ask where it is more than one. Raises CommandError if the answer is no, or if
    nobody is there."""
    if number > UNASKED and not options["yes"]:
        console.make_sure(
            ask.format(rows=rows, done=done),
            f"Nothing was {done}.",
            f"{rows} would be {done}. More than one needs confirmation: pass --yes. "
            "--dry-run shows what it would be.",
        )


def show_examples(console: Console, listing: Listing, rows: Iterable[Any]) -> None:
    """Show the first few of these jobs."""
    shown = [Row(listing.cells(row)) for row in islice(rows, EXAMPLES)]
    if shown:
        console.print("For example:")
        console.table(listing.shown, shown)


def refuse(problems: Iterable[str]) -> None:
    """Raises CommandError if there are problems with single jobs."""
    texts = list(problems)
    shown = texts[:SHOWN_PROBLEMS]
    if len(texts) > len(shown):
        shown.append(f"… and {counted(len(texts) - len(shown), 'other id')}.")
    if shown:
        raise CommandError("\n".join(shown))


def summary(number: int, done: str, asked: int = 0) -> str:
    """``3 jobs were cancelled, 1 running one was asked to stop.``"""
    text = were(number, "job", done)
    if asked:
        text += f", {were(asked, 'running one', 'asked to stop')}"
    return f"{text}."


class ByFilter:
    """Jobs that a filter chooses: a bulk operation, the same as the admin's, that this
    process drafts and counts; confirms; and runs. A draft that is not started leaves
    nothing behind."""

    def __init__(
        self,
        console: Console,
        verb: Verb,
        selection: Selection,
        *,
        reason: str = "",
        **how: Any,
    ) -> None:
        if verb.bulk is None:
            raise TypeError(f"{verb.name} is not a bulk operation")
        self._console = console
        self._verb = verb
        self._operation = verb.bulk
        self.draft = operations.bulk.draft(
            verb.bulk, selection, reason=reason, by=by(), here=True, **how
        )
        options = self.draft.options
        changes, self.skipped = planned(verb.bulk, self.draft.counted, options)
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
        """Its preview; ``asked`` is the number of running jobs."""
        return Result(
            verb=self._operation.value,
            dry_run=True,
            count=self.total - asked,
            asked_to_stop=asked,
            skipped=self.skipped,
            ids=self.examples,
        )

    def go(self, options: Options) -> None:
        """Do it, after a question where it is many jobs, and say what was done. Raises
        CommandError."""
        jobs = f"{counted(self.total, 'job')}{self._statuses()}"
        done, ask = self._verb.done, self._verb.ask
        make_sure(self._console, options, self.total, jobs, done, ask)
        if self.total:
            self._work_off()
        if self._console.is_json:
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
        bar = (self._verb.doing, self.total)
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
                self._console.warn("A worker finished the remaining jobs.")
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
        return summary(self._done, self._verb.done, self._asked)

    def _result(self) -> Result:
        skipped: Mapping[str, int] = self.skipped
        if self.total:
            skipped = operations.bulk.get(self.draft.id).skipped
        return Result(
            verb=self._operation.value,
            dry_run=False,
            count=self._done,
            asked_to_stop=self._asked,
            operation=self.draft.id if self.total else None,
            skipped=skipped,
        )
