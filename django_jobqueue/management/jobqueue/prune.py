"""``jobqueue prune``: delete archived jobs that are old enough."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from datetime import timedelta
from typing import Final

from django.core.management.base import CommandError

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.states import ArchivedStatus, BulkKind
from django_jobqueue.exceptions import UnknownJobType
from django_jobqueue.management.jobqueue import many_jobs, where
from django_jobqueue.management.jobqueue.batches import run_batches
from django_jobqueue.management.jobqueue.console import Console, counted, were
from django_jobqueue.management.jobqueue.inputs import duration
from django_jobqueue.management.jobqueue.many_jobs import ByFilter, Result
from django_jobqueue.management.jobqueue.subcommand import YES, Options, VerbCommand, by
from django_jobqueue.models import ArchivedJob
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.store import find
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import prune as store_prune
from django_jobqueue.store.control.prune import Rule
from django_jobqueue.text import numbers
from django_jobqueue.text.durations import DURATIONS
from django_jobqueue.verbs.columns import NUMBER, RIGHT, Column, Listing
from django_jobqueue.verbs.declarations import Argument, Takes, flag
from django_jobqueue.verbs.jobs import PRUNE


class Prune(VerbCommand):
    json = many_jobs.JSON
    arguments = (
        *where.filters(("where",), group=""),
        Argument(
            "status",
            "Only jobs of this status; may be given again (default: all).",
            choices=ArchivedStatus.values,
            is_list=True,
        ),
        Argument(
            "older_than",
            f"Jobs that ended longer ago than this: {DURATIONS}; instead of the "
            "retention.",
            Takes.DURATION,
        ),
        Argument("type", "Only jobs of this type.", "TYPE"),
        flag("dry_run", "Delete nothing; print how many jobs would be deleted."),
        YES,
        Argument(
            "batch_pause",
            "Pause this long after each batch that deleted rows (default: 0).",
            "SECONDS",
            default="0",
        ),
    )

    def run(self, console: Console, options: Options) -> None:
        if options["where"]:
            _by_search(console, options)
            return
        pause = duration("--batch-pause", options["batch_pause"]).total_seconds()
        rules = _rules(options)
        if not rules and not console.is_json:
            console.info("The retention keeps all of these jobs; nothing to prune.")
        elif options["dry_run"]:
            db = DjangoDatabase()
            counts = {rule: store_prune.count(db, rule) for rule in rules}
            if console.is_json:
                _result(counts, dry_run=True).print(console)
                return
            jobs = counted(sum(counts.values()), "archived job")
            _list(console, counts, "Would be pruned")
            console.print(f"{jobs} would be pruned.")
        else:
            Pruning(console, rules).go(pause, is_sure=options["yes"])


def _by_search(console: Console, options: Options) -> None:
    filters = where.given(options, PRUNE.filters)
    terms = []
    if options["status"]:
        terms.append(Term("statuses", tuple(dict.fromkeys(options["status"]))))
    selection = where.selection(Table.ARCHIVED, filters, database_now(), *terms)
    prune_selected(console, options, selection)


def prune_selected(console: Console, options: Options, selection: Selection) -> None:
    """Delete these jobs, or say how many it would be. Raises CommandError."""
    with ByFilter(console, PRUNE, selection) as chosen:
        if not options["dry_run"]:
            chosen.go(options)
        elif console.is_json:
            chosen.preview().print(console)
        else:
            console.print(f"{counted(chosen.total, 'job')} would be deleted.")


class Pruning:
    """One run of the subcommand."""

    def __init__(self, console: Console, rules: list[Rule]) -> None:
        self._console = console
        self._db = DjangoDatabase()
        self._pruned = dict.fromkeys(rules, 0)

    def go(self, pause: float, *, is_sure: bool) -> None:
        """Prune by one rule after the other. Raises CommandError."""
        asks = self._console.can_ask and not is_sure
        is_seen = self._console.is_terminal and self._console.verbosity
        # Counting reads as much as pruning does.
        total = 0
        if asks or is_seen:
            total = sum(store_prune.count(self._db, rule) for rule in self._pruned)
        if asks and total > many_jobs.UNASKED:
            self._ask(total)
        bar = ("Pruning", total)
        with closing(self._steps()) as steps:  # closed, what was done is told at once
            run_batches(steps, self._console, bar, self._summary, pause=pause)
        if self._console.is_json:
            _result(self._pruned, dry_run=False).print(self._console)
        elif self._console.verbosity:
            _list(self._console, self._pruned, "Pruned")
            self._console.print(self._summary())

    def _ask(self, total: int) -> None:
        jobs = counted(total, "archived job")
        if not self._console.confirm(f"{jobs} will be deleted. Go on?"):
            raise CommandError("Nothing was pruned.")

    def _steps(self) -> Generator[int]:
        with closing(operations.prune(self._pruned, by=by())) as batches:
            for rule, gone in batches:
                self._pruned[rule] += gone
                yield gone

    def _summary(self) -> str:
        return f"{were(sum(self._pruned.values()), 'archived job', 'pruned')}."


def _result(counts: Mapping[Rule, int], *, dry_run: bool) -> Result:
    return Result(
        verb=BulkKind.PRUNE.value, dry_run=dry_run, count=sum(counts.values())
    )


def _rules(options: Options) -> list[Rule]:
    name, text = options["type"], options["older_than"]
    _check_job_type(name)
    older_than: timedelta | None = None
    if text is not None:
        older_than = duration("--older-than", text)
    statuses = options["status"] or [None]
    return [
        rule
        for status in dict.fromkeys(statuses)
        for rule in operations.prune_rules(
            status=status, older_than=older_than, job_type=name
        )
    ]


def _check_job_type(name: str | None) -> None:
    """The archive outlives its job types. Raises UnknownJobType."""
    if name is None:
        return
    known = find.known_names(DjangoDatabase())
    archived = ArchivedJob.objects.using(conf.database).filter(job_type=name)
    if name not in known and not archived.exists():
        raise UnknownJobType(name, registry.near(name, known))


def _limit(rule: Rule) -> str:
    """How old a job must be, or how many newer ones there must be."""
    if rule.count is not None:
        return f"the newest {numbers.number(rule.count)}"
    return str(numbers.length(timedelta(seconds=rule.keep)))


def _list(console: Console, counts: dict[Rule, int], title: str) -> None:
    listing = Listing(
        (
            Column("", "Status", value=lambda rule: rule.status),
            Column("", "Job type", value=_type, breaks=True),
            Column("", "Older than", RIGHT, _limit),
            Column("", title, NUMBER, counts.__getitem__),
        )
    )
    console.rows(listing, counts)


def _type(rule: Rule) -> str:
    return rule.job_type or ("every other" if rule.but_for else "every")


COMMAND: Final = Prune(PRUNE)
