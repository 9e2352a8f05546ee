"""``jobqueue operations``: bulk operations, listed, stopped or undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from django.core.management.base import CommandError

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import WorkState
from django_jobqueue.management.jobqueue import many_jobs
from django_jobqueue.management.jobqueue.console import Console, listed, moment_text
from django_jobqueue.management.jobqueue.subcommand import (
    YES,
    Options,
    SubcommandWithVerbs,
    Words,
    by,
    no_words,
    sentences,
)
from django_jobqueue.models import BulkOperation
from django_jobqueue.operations.bulk import filter_text, is_abandoned
from django_jobqueue.search import SHORTEST
from django_jobqueue.search.ids import id_search
from django_jobqueue.search.selection import Selection
from django_jobqueue.stats.sensitive_keys import sensitive_keys
from django_jobqueue.text import numbers
from django_jobqueue.verbs.bulk_operations import VERBS
from django_jobqueue.verbs.columns import (
    MOMENT,
    NONE,
    NUMBER,
    Column,
    Listing,
    Type,
    only_json,
)
from django_jobqueue.verbs.declarations import Argument, Takes, Verb

MOST: Final = 20


def _filter(row: BulkOperation) -> str:
    selection = Selection.from_json(row.selection)
    types = selection.values("type")
    return filter_text(selection, sensitive=lambda: sensitive_keys(types))


OPERATIONS: Final = Listing(
    (
        Column("id", "Operation"),
        Column("kind", "Kind"),
        Column("state", "State"),
        Column("filter", value=_filter),
        *only_json("reason per_minute"),
        Column("", "Handled", NUMBER, "seen"),
        Column("total", "Of", NUMBER, note="null until it is counted"),
        *only_json("seen changed"),
        Column("skipped", note="numbers by reason"),
        Column("", "Created", MOMENT, "created_at"),
        Column("created_by", "By", Type(lambda name: name or NONE), breaks=True),
        *only_json("created_at started_at finished_at error"),
        Column(
            "abandoned",
            value=lambda row: is_abandoned(operations.bulk.get(row.pk)),
            note="no worker runs it",
        ),
        Column("", "Filter", value=_filter, cut=True),
    ),
    "No bulk operations.",
)


class BulkOperations(SubcommandWithVerbs):
    name = "operations"
    summary = "List bulk operations; show, pause, stop or undo them."
    verbs = ("list", "show", *VERBS, "undo")
    wanted = "OPERATION ..."
    description = f"""\
List bulk operations, those of the admin and of this command, the latest first,
or

  show    one of them: its filter, its options, and its progress
{sentences(VERBS.values(), 6)}
  undo    cancel the jobs that a replay created and that have not started

An operation is named by its id, or by its first {SHORTEST} or more digits.

  jobqueue operations
  jobqueue operations stop 01a2048e8ec8"""
    json = f"""a list of {OPERATIONS.keys}; "undo" prints the operations that
    cancel."""
    arguments = (
        Argument(
            "state",
            f"List operations in this state: {', '.join(WorkState.values)} "
            "(default: any).",
            "STATE",
            choices=WorkState.values,
            only="list",
        ),
        Argument(
            "limit",
            f"List at most N operations (default: {MOST}).",
            Takes.POSITIVE,
            only="list",
        ),
        YES._replace(only="undo"),
    )

    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
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
            _move(VERBS[verb], ids, console)
        rows = BulkOperation.objects.using(conf.database).filter(pk__in=ids)
        if console.is_json:
            console.rows(OPERATIONS, rows)
        elif verb == "show":
            for row in rows:
                console.facts(_facts(row))


def _id(text: str) -> UUID:
    """The id of the operation that begins so. Raises CommandError."""
    wanted = id_search(text)
    if wanted is None:
        raise CommandError(
            f"{text!r} is not an id: give it, or its first {SHORTEST} or more digits."
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


def _list(console: Console, options: Options) -> None:
    rows = BulkOperation.objects.using(conf.database).order_by("-created_at", "-pk")
    if options["state"]:
        rows = rows.filter(state=options["state"])
    console.rows(OPERATIONS, rows[: options["limit"] or MOST])


def _move(verb: Verb, ids: list[UUID], console: Console) -> None:
    left = []
    for id in ids:
        if not verb.function(id, by=by()):
            state = WorkState(operations.bulk.get(id).state).value
            left.append(verb.not_done.format(id=id, state=state, done=verb.done))
        elif not console.is_json:
            console.info(f"Bulk operation {id} was {verb.done}.")
    many_jobs.refuse(left)


def _undo(id: UUID, console: Console, options: Options) -> UUID:
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
    if not console.is_json:
        console.info(f"Bulk operation {made.id} cancels {jobs}.")
    return made.id


def _facts(row: BulkOperation) -> Iterator[tuple[str, str]]:
    one = OPERATIONS.as_object(row)
    total = "" if row.total is None else f" of {numbers.number(row.total)}"
    yield "Operation", str(row.pk)
    yield "Kind", row.kind
    alone = ", and no worker runs it" if one["abandoned"] else ""
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
