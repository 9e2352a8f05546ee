"""``jobqueue personal-data``: find a person's value, erase it, or delete the rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.contrib.privacy import personal_data
from django_jobqueue.contrib.privacy.erasure_rows import Erasure
from django_jobqueue.contrib.privacy.models import Erasure as ErasureRow
from django_jobqueue.contrib.privacy.personal_value import ErasureAct
from django_jobqueue.domain.states import WorkState
from django_jobqueue.management.jobqueue.batches import run_batches
from django_jobqueue.management.jobqueue.console import Console, counted, moment_text
from django_jobqueue.management.jobqueue.subcommand import (
    YES,
    Options,
    SubcommandWithVerbs,
    Words,
    by,
    no_words,
)
from django_jobqueue.text import numbers
from django_jobqueue.verbs.columns import (
    MOMENT,
    NUMBER,
    Column,
    Listing,
    Type,
    only_json,
)
from django_jobqueue.verbs.declarations import Argument

MOST_LISTED: Final = 100


def _if_done(name: str, none: str | None = None) -> Callable[[Erasure], Any]:
    return lambda one: getattr(one, name) if one.act else none


ERASURES: Final = Listing(
    (
        Column("erasure", "Erasure", value=_if_done("id")),
        Column("act", "Act", value=_if_done("act", "find")),
        Column("state", "State", value=_if_done("state")),
        *only_json("key fingerprint total examined"),
        Column("rows", value="rows", note="by table"),
        Column("changed", value="changed", note="by table"),
        Column("", "Rows", NUMBER, "all_changed"),
        Column("remaining", value="remaining", note="by reason"),
        *only_json("passes reason"),
        Column("by", "By", Type(str), "created_by", breaks=True),
        Column("", "Created", MOMENT, "created_at"),
        *only_json("finished_at"),
    ),
    "Nothing was erased.",
)
COUNTED: Final = Listing(
    (
        Column("", "Where", value=lambda one: one[0]),
        Column("", "Rows", NUMBER, lambda one: one[1]["rows"]),
        Column("", "First", Type(" ".join), lambda one: one[1]["first"], cut=True),
    )
)
TITLES: Final = {ErasureAct.ERASE: "Erasing", ErasureAct.DELETE: "Deleting"}
WILL: Final = {
    ErasureAct.ERASE: "The values in {rows} will be erased",
    ErasureAct.DELETE: "{rows} will be erased, and those of jobs deleted",
}


class PersonalData(SubcommandWithVerbs):
    name = "personal-data"
    summary = "Find a person's data in all tables, and erase it."
    verbs = ("list", "find", "erase", "delete")
    wanted = "VALUE"
    description = """\
Find a value that identifies a person, such as an e-mail address or a customer
number, in the queue, the archive, failures, reports, schedules, operations and
the audit; or erase it there:

  find    count the rows that contain it, and name the first ones
  erase   replace it with [erased], and keep the rows
  delete  delete jobs, failures and reports that contain it; erase it elsewhere
  list    list the erasures, by whom and when; without the values

  jobqueue personal-data find anna@example.com
  jobqueue personal-data erase 4711 --key customer_id --reason "ticket 88"

Waiting jobs that contain the value are cancelled. Running ones are left alone:
a worker continues when they may have ended. VALUE may be "-" for the first line
of the input, to keep it out of the shell's history. Ctrl-C ends it between two
steps; finished steps stay."""
    json = f"""one object, of {ERASURES.keys}, with first (ids, by table) and earlier,
    which lists what was done about the same value before. "list" prints a list of such
    objects without first and earlier."""
    arguments = (
        Argument(
            "key",
            "Only values under this key of data, or this path of keys (customer.id); "
            "no free text.",
            default="",
        ),
        Argument("reason", "Stored with the record.", default=""),
        YES._replace(help="Do not ask before anything is erased or deleted."),
    )

    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
        if verb == "list":
            no_words(words)
            _list(console)
            return
        value = _value(words)
        with _draft(value, options["key"]) as draft:
            if verb != "find":
                _erase(console, options, draft, ErasureAct(verb))
            erasure = personal_data.get(draft.id)
            earlier = [e for e in personal_data.earlier(value) if e.id != erasure.id]
            _show(console, erasure, earlier)


@contextmanager
def _draft(value: str, key: str) -> Iterator[Erasure]:
    """A draft that is counted; unless it is started, nothing of it stays."""
    erasure = personal_data.find(value, key=key, by=by(), here=True)
    try:
        yield erasure
    finally:
        personal_data.discard(erasure.id)


def _value(words: list[str]) -> str:
    if len(words) != 1:
        raise CommandError("Give one value; put quotes around one with spaces.")
    if words != ["-"]:
        return words[0]
    return sys.stdin.readline().strip()


def _erase(console: Console, options: Options, draft: Erasure, act: ErasureAct) -> None:
    if not draft.total:
        return
    rows = counted(draft.total, "row")
    question = f"{WILL[act].format(rows=rows)}. This cannot be undone. Go on?"
    if not options["yes"]:
        nobody = f"{rows} would be changed: pass --yes to confirm."
        console.make_sure(question, "Nothing was changed.", nobody)
    personal_data.start(draft.id, act, reason=options["reason"], by=by(), here=True)

    def steps() -> Iterator[int]:
        for done in personal_data.work_here(draft.id):
            yield done.changed

    def summary() -> str:
        return f"{counted(personal_data.get(draft.id).all_changed, 'row')} changed."

    try:
        run_batches(steps(), console, (TITLES[act], draft.total), summary)
    except CommandError:  # interrupted
        personal_data.stop(draft.id, by=by())
        raise


def _show(console: Console, erasure: Erasure, earlier: list[Erasure]) -> None:
    if console.is_json:
        first = {name: one["first"] for name, one in erasure.counted.items()}
        one, *before = (ERASURES.as_object(e) for e in (erasure, *earlier))
        console.json({**one, "first": first, "earlier": before})
        return
    if erasure.counted:
        console.rows(COUNTED, erasure.counted.items())
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
            yield f"Left: {jobs}. Repeat this when they have ended."
        else:
            yield f"Left: {jobs}. A worker continues when they may have ended."
    if refused := erasure.remaining.get("refused"):
        rows = counted(refused, "row")
        yield f"Left: {rows} that the database refuses to change; see the log."
    for one in earlier:
        when = moment_text(one.finished_at)
        yield f"Before: {one.act}, {one.state} {when}, by {one.created_by or 'code'}."


def _list(console: Console) -> None:
    newest = ErasureRow.objects.using(conf.database).exclude(act="")
    ids = newest.order_by("-created_at", "-id").values_list("pk", flat=True)
    console.rows(ERASURES, map(personal_data.get, ids[:MOST_LISTED]))
