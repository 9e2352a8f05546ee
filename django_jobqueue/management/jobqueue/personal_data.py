"""``jobqueue personal-data``: find a person's value, erase it, or delete the rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import ErasureAct, WorkState
from django_jobqueue.management.jobqueue import many_jobs
from django_jobqueue.management.jobqueue.batches import run_batches
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.detail_page import as_json, moment_text
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.management.jobqueue.subcommand_verbs import (
    SubcommandWithVerbs,
    no_words,
)
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.models import Erasure as ErasureRow
from django_jobqueue.operations.personal_data import work_here
from django_jobqueue.store.erasing.erasure_rows import Erasure
from django_jobqueue.text import numbers

personal_data = operations.personal_data

MOST_LISTED: Final = 100
LISTED: Final = (
    Column("Erasure"),
    Column("Act"),
    Column("State"),
    Column("Rows", right=True),
    Column("By", breaks=True),
    Column("Created"),
)
COUNTED: Final = (
    Column("Where"),
    Column("Rows", right=True),
    Column("First", cut=True),
)
TITLES: Final = {ErasureAct.ERASE: "Erasing", ErasureAct.DELETE: "Deleting"}
WILL: Final = {
    ErasureAct.ERASE: "The values in {rows} will be erased",
    ErasureAct.DELETE: "{rows} will be erased, and those of jobs deleted",
}


class PersonalData(SubcommandWithVerbs):
    """Lists erasures, finds a value, erases it, or deletes the rows."""

    name = "personal-data"
    summary = "Find a person's data in all tables, and erase them."
    verbs = ("list", "find", "erase", "delete")
    wanted = "VALUE"
    description = """\
Find a value that says who somebody is, such as an e-mail address or a customer
number, in the queue, the archive, failures, reports, schedules, operations and
the audit; or erase it there:

  find    count the rows that hold it, and name the first of them
  erase   replace it by [erased], and keep the rows
  delete  delete the jobs, failures and reports that hold it; erase it elsewhere
  list    list what was erased, by whom and when; without the values

  jobqueue personal-data find anna@example.com
  jobqueue personal-data erase 4711 --key customer_id --reason "ticket 88"

Waiting jobs that hold the value are cancelled. Running ones are left: a worker
goes on when they may have ended. VALUE may be "-" for the first line of the
input, so that it is not in the history of the shell. Ctrl-C ends it between two
steps; what it did stays."""
    epilog = """\
--format json prints one object: {erasure, act, state, key, fingerprint, total,
examined, rows (by table), first (ids, by table), changed (by table), remaining
(by reason), passes, reason, by, finished_at, earlier}; earlier lists what was
done about the same value before. "list" prints a list of such objects without
first and earlier."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the key, the reason, and whether it is sure."""
        super().add_arguments(parser)
        parser.add_argument(
            "--key",
            default="",
            help="Only values under this key of data, or this path of keys "
            "(customer.id); no free texts.",
        )
        parser.add_argument("--reason", default="", help="Kept with the record.")
        many_jobs.add_yes(parser, "Do not ask before anything is erased or deleted.")

    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """List, find, erase or delete. Raises CommandError."""
        if verb == "list":
            no_words(words)
            _list(console, options)
            return
        value = _value(words)
        with _Draft(value, options["key"]) as draft:
            if verb != "find":
                _erase(console, options, draft, ErasureAct(verb))
            erasure = personal_data.get(draft.id)
            earlier = [e for e in personal_data.earlier(value) if e.id != erasure.id]
            _show(console, options, erasure, earlier)


class _Draft:
    """A draft that is counted; unless it is started, nothing of it stays."""

    def __init__(self, value: str, key: str) -> None:
        self._erasure = personal_data.find(value, key=key, by=by(), here=True)

    def __enter__(self) -> Erasure:
        return self._erasure

    def __exit__(self, *error: object) -> None:
        personal_data.discard(self._erasure.id)


def _value(words: list[str]) -> str:
    if len(words) != 1:
        raise CommandError("Give one value; put quotes around one with spaces.")
    if words != ["-"]:
        return words[0]
    return sys.stdin.readline().strip()


def _erase(
    console: Console, options: dict[str, Any], draft: Erasure, act: ErasureAct
) -> None:
    if not draft.total:
        return
    rows = counted(draft.total, "row")
    question = f"{WILL[act].format(rows=rows)}. This cannot be undone. Go on?"
    answer = options["yes"] or console.confirm(question)
    if answer is None:
        raise CommandError(f"{rows} would be changed: say --yes to confirm.")
    if not answer:
        raise CommandError("Nothing was changed.")
    personal_data.start(draft.id, act, reason=options["reason"], by=by(), here=True)

    def steps() -> Iterator[int]:
        for done in work_here(draft.id):
            yield done.changed

    def summary() -> str:
        return f"{counted(personal_data.get(draft.id).all_changed, 'row')} changed."

    try:
        run_batches(steps(), console, (TITLES[act], draft.total), summary)
    except CommandError:  # interrupted
        personal_data.stop(draft.id, by=by())
        raise


def _show(
    console: Console, options: dict[str, Any], erasure: Erasure, earlier: list[Erasure]
) -> None:
    if options["format"] == "json":
        first = {name: one["first"] for name, one in erasure.counted.items()}
        before = [_as_object(one) for one in earlier]
        one = {**_as_object(erasure), "first": first, "earlier": before}
        console.print(as_json(one))
        return
    if erasure.counted:
        rows = [
            Row([name, numbers.number(one["rows"]), " ".join(one["first"])])
            for name, one in erasure.counted.items()
        ]
        console.table(COUNTED, rows)
    for line in _sentences(erasure, earlier):
        console.print(line)


def _sentences(erasure: Erasure, earlier: list[Erasure]) -> Iterator[str]:
    examined = counted(erasure.examined, "row")
    if erasure.act:
        yield f"{counted(erasure.all_changed, 'row')} changed."
    else:
        verb = "holds" if erasure.total == 1 else "hold"
        number = numbers.number(erasure.total or 0)
        yield f"{number} of {examined} {verb} the value."
    if running := erasure.remaining.get("running"):
        jobs = counted(running, "running job")
        if erasure.state == WorkState.DONE:
            yield f"Left: {jobs}. Do it again when they have ended."
        else:
            yield f"Left: {jobs}. A worker goes on when they may have ended."
    for one in earlier:
        when = moment_text(one.finished_at)
        yield f"Before: {one.act}, {one.state} {when}, by {one.created_by or 'code'}."


def _list(console: Console, options: dict[str, Any]) -> None:
    newest = ErasureRow.objects.using(conf.database).exclude(act="")
    ids = newest.order_by("-created_at", "-id").values_list("pk", "created_at")
    erasures = [(personal_data.get(id), at) for id, at in ids[:MOST_LISTED]]
    if options["format"] == "json":
        console.print(as_json([_as_object(one) for one, _at in erasures]))
        return
    if not erasures:
        console.print("Nothing was erased.")
        return
    rows = [
        Row(
            [
                str(one.id),
                one.act,
                one.state,
                numbers.number(one.all_changed),
                one.created_by,
                moment_text(at),
            ]
        )
        for one, at in erasures
    ]
    console.table(LISTED, rows)


def _as_object(erasure: Erasure) -> Mapping[str, Any]:
    return {
        "erasure": erasure.id if erasure.act else None,
        "act": erasure.act or "find",
        "state": erasure.state if erasure.act else None,
        "key": erasure.key,
        "fingerprint": erasure.fingerprint,
        "total": erasure.total,
        "examined": erasure.examined,
        "rows": erasure.rows,
        "changed": dict(erasure.changed),
        "remaining": dict(erasure.remaining),
        "passes": erasure.passes,
        "reason": erasure.reason,
        "by": erasure.created_by,
        "finished_at": erasure.finished_at,
    }
