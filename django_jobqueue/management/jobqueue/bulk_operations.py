"""``jobqueue operations``: bulk operations, listed, stopped or undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import WorkState
from django_jobqueue.management.jobqueue import many_jobs
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.detail_page import (
    as_json,
    listed,
    moment_text,
    print_facts,
)
from django_jobqueue.management.jobqueue.subcommand import by, positive
from django_jobqueue.management.jobqueue.subcommand_verbs import (
    SubcommandWithVerbs,
    no_words,
)
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.management.jobqueue.time_formats import local
from django_jobqueue.models import BulkOperation
from django_jobqueue.operations.bulk import filter_text, is_abandoned
from django_jobqueue.search import SHORTEST
from django_jobqueue.search.ids import id_search
from django_jobqueue.search.selection import Selection
from django_jobqueue.text import numbers

DONE: Final = {"pause": "paused", "resume": "resumed", "stop": "stopped"}
MOST: Final = 20
COLUMNS: Final = (
    Column("Operation"),
    Column("Kind"),
    Column("State"),
    Column("Handled", right=True),
    Column("Of", right=True),
    Column("Created"),
    Column("By", breaks=True),
    Column("Filter", cut=True),
)


class BulkOperations(SubcommandWithVerbs):
    """Lists bulk operations, shows one, pauses, resumes, stops or undoes it."""

    name = "operations"
    summary = "List bulk operations; show, pause, stop or undo them."
    verbs = ("list", "show", *DONE, "undo")
    wanted = "OPERATION ..."
    only_with = {"state": ("list",), "limit": ("list",), "yes": ("undo",)}
    description = f"""\
List bulk operations, those of the admin and of this command, the latest first,
or

  show    one of them: its filter, its options, and how far it is
  pause   workers pause after the chunk at hand
  resume  they go on: after a pause, after an error, or if its job is gone
  stop    it ends after the chunk at hand; what it did stays. A draft is
          discarded
  undo    cancel the jobs that a replay created and that have not started

An operation is named by its id, or by its first {SHORTEST} or more digits.

  jobqueue operations
  jobqueue operations stop 01a2048e8ec8"""
    epilog = """\
--format json prints a list of {id, kind, state, filter, reason, per_minute,
total (null until it is counted), seen, changed, skipped (numbers by reason),
created_by, created_at, started_at, finished_at, error, abandoned (nobody works
it off)}; "undo" prints the operations that cancel."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add which are listed, and --yes."""
        super().add_arguments(parser)
        parser.add_argument(
            "--state",
            choices=WorkState.values,
            metavar="STATE",
            help=f"List operations in this state: {', '.join(WorkState.values)} "
            "(default: any).",
        )
        parser.add_argument(
            "--limit",
            type=positive,
            metavar="N",
            help=f"List at most N operations (default: {MOST}).",
        )
        many_jobs.add_yes(parser)

    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """List or show them, or do it to them. Raises CommandError."""
        if verb == "list":
            no_words(words)
            _list(console, options)
            return
        if not words:
            raise CommandError(f"Name the operations to {verb} by their ids.")
        ids = list(dict.fromkeys(map(_id, words)))
        if verb == "undo":
            ids = [_undo(id, console, options) for id in ids]
        elif verb != "show":
            _move(verb, ids, console, options)
        rows = BulkOperation.objects.using(conf.database).filter(pk__in=ids)
        if many_jobs.is_json(options):
            console.print(as_json(list(map(_as_object, rows))))
        elif verb == "show":
            for row in rows:
                print_facts(console, _facts(row))


def _id(text: str) -> UUID:
    """The id of the operation that begins so. Raises CommandError."""
    wanted = id_search(text)
    if wanted is None:
        raise CommandError(
            f"{text!r} is no id: give it, or its first {SHORTEST} or more digits."
        )
    rows = BulkOperation.objects.using(conf.database)
    rows = rows.filter(pk__gte=wanted.first, pk__lte=wanted.last).order_by("pk")
    ids = list(rows.values_list("pk", flat=True)[:2])
    if not ids:
        raise CommandError(f"There is no bulk operation {text!r}.")
    if len(ids) > 1:
        raise CommandError(
            f"Several bulk operations begin with {text!r}, such as {ids[0]} and "
            f"{ids[1]}."
        )
    return ids[0]


def _list(console: Console, options: dict[str, Any]) -> None:
    rows = BulkOperation.objects.using(conf.database).order_by("-created_at", "-pk")
    if options["state"]:
        rows = rows.filter(state=options["state"])
    newest = list(rows[: options["limit"] or MOST])
    if many_jobs.is_json(options):
        console.print(as_json(list(map(_as_object, newest))))
    elif newest:
        console.table(COLUMNS, [Row(_cells(row)) for row in newest])
    else:
        console.print("No bulk operations.")


def _move(
    verb: str, ids: list[UUID], console: Console, options: dict[str, Any]
) -> None:
    move = getattr(operations.bulk, verb)
    left = []
    for id in ids:
        if not move(id, by=by()):
            state = WorkState(operations.bulk.get(id).state).value
            left.append(f"Bulk operation {id} is {state}: it cannot be {DONE[verb]}.")
        elif not many_jobs.is_json(options):
            console.info(f"Bulk operation {id} was {DONE[verb]}.")
    many_jobs.refuse(left)


def _undo(id: UUID, console: Console, options: dict[str, Any]) -> UUID:
    """Cancel what it created; returns the operation that does."""
    made = operations.bulk.draft_undo(id, by=by())
    try:
        made = operations.bulk.count(made.id)
        number = made.total or 0
        jobs = f"{numbers.number(number)} created jobs that have not started"
        many_jobs.make_sure(console, options, number, jobs, "cancelled")
        operations.bulk.start(made.id, by=by())
    finally:
        operations.bulk.discard(made.id)  # unless it has started
    if not many_jobs.is_json(options):
        console.info(f"Bulk operation {made.id} cancels {jobs}.")
    return made.id


def _as_object(row: BulkOperation) -> dict[str, Any]:
    operation = operations.bulk.get(row.pk)
    names = ("reason", "per_minute", "total", "seen", "changed", "skipped")
    times = ("created_by", "created_at", "started_at", "finished_at", "error")
    return {
        "id": row.pk,
        "kind": row.kind,
        "state": row.state,
        "filter": filter_text(operation.selection),
        **{name: getattr(row, name) for name in (*names, *times)},
        "abandoned": is_abandoned(operation),
    }


def _cells(row: BulkOperation) -> list[str]:
    return [
        str(row.pk),
        row.kind,
        row.state,
        numbers.number(row.seen),
        "-" if row.total is None else numbers.number(row.total),
        local(row.created_at),
        row.created_by or "-",
        filter_text(Selection.from_json(row.selection)),
    ]


def _facts(row: BulkOperation) -> Iterator[tuple[str, str]]:
    one = _as_object(row)
    total = "" if row.total is None else f" of {numbers.number(row.total)}"
    yield "Operation", str(row.pk)
    yield "Kind", row.kind
    alone = ", and nobody works it off" if one["abandoned"] else ""
    yield "State", f"{row.state}{alone}"
    yield "Filter", one["filter"]
    yield "Reason", row.reason
    yield "Handled", f"{numbers.number(row.seen)}{total}"
    yield "Changed", numbers.number(row.changed)
    skipped = (f"{numbers.number(n)} {why}" for why, n in row.skipped.items())
    yield "Skipped", listed(skipped)
    yield "Per minute", "" if row.per_minute is None else numbers.number(row.per_minute)
    yield "Error", row.error
    yield "Created", moment_text(row.created_at)
    yield "Created by", row.created_by
    yield "Started", moment_text(row.started_at)
    yield "Finished", moment_text(row.finished_at)
