"""``jobqueue dump`` and ``jobqueue load``: waiting jobs as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, TextIO

from django.core.management.base import CommandError
from django.db import DataError, IntegrityError

from django_jobqueue.contrib.transfer.dumping import COLUMNS, checked_job, dump, load
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.management.jobqueue import where
from django_jobqueue.management.jobqueue.console import Console, counted, were
from django_jobqueue.management.jobqueue.inputs import object_of
from django_jobqueue.management.jobqueue.subcommand import YES, Options, Subcommand, by
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.verbs.declarations import Argument, flag
from django_jobqueue.verbs.jobs import FILTERS


class Dump(Subcommand):
    name = "dump"
    summary = "Print queued jobs as JSON lines, for load."
    description = """\
Print the queued jobs, or a selection, one JSON object a line: all columns
except those of the claim. Running jobs are printed as if they waited. No job is
changed: to move jobs, cancel or prune the old ones.

  jobqueue dump > jobs.jsonl
  jobqueue dump --where "queue:mail state:ready" --secrets --yes > jobs.jsonl

Secrets are masked unless --secrets is given, which is recorded in the audit. A
line with masked values says so, and cannot be loaded."""
    epilog = f"""\
Each object has v (the version, 1), {", ".join(COLUMNS[:5])},
and so on, which are columns of the table; masked is present, and true, if
something was masked."""

    arguments = (
        *where.filters(FILTERS),
        flag("secrets", "With secrets; it asks, or needs --yes."),
        YES,
    )

    def run(self, console: Console, options: Options) -> None:
        filters = where.given(options, FILTERS)
        chosen = Selection(Table.QUEUED)
        if filters:
            chosen = where.selection(Table.QUEUED, filters, database_now())
        if options["secrets"] and not options["yes"]:
            question = "The secrets of the jobs will be shown. Go on?"
            console.make_sure(question, "Nothing was printed.", "Say --yes.")
        number = 0
        for line in dump(chosen, secrets=options["secrets"], by=by()):
            console.print(json.dumps(line, ensure_ascii=False))
            number += 1
        if console.verbosity:
            console.stderr.write(f"{counted(number, 'job')}.", style_func=str)


class Load(Subcommand):
    name = "load"
    summary = "Enqueue the jobs of a dump."
    description = """\
Enqueue the jobs that dump printed, with their ids, attempts and times. All
lines are read and checked first, like an enqueue; then all are inserted in one
transaction, or none.

  jobqueue load jobs.jsonl
  jobqueue dump --database old --secrets --yes | jobqueue load -

Jobs whose id already exists, queued or archived, are left out, and so are jobs
whose unique key another job has."""
    json = "one object: loaded and left_out (numbers), dry_run."
    arguments = (
        Argument("file", "The file; - is the standard input.", "FILE", words="1"),
        Argument(
            "on_conflict",
            "Leave out jobs that exist, or load nothing (default: skip).",
            choices=("skip", "fail"),
            default="skip",
        ),
        flag("dry_run", "Only read and check the lines."),
    )

    def run(self, console: Console, options: Options) -> None:
        jobs = list(_read(options["file"]))
        loaded, left = len(jobs), 0
        if not options["dry_run"]:
            loaded = len(_loaded(jobs, fail=options["on_conflict"] == "fail"))
            left = len(jobs) - loaded
        if console.is_json:
            result = {"loaded": loaded, "left_out": left, "dry_run": options["dry_run"]}
            console.print(json.dumps(result))
        elif options["dry_run"]:
            console.print(f"{counted(loaded, 'job')} can be loaded.")
        else:
            text = were(loaded, "job", "loaded")
            console.info(f"{text}; {left} left out." if left else f"{text}.")


def _loaded(jobs: list[dict[str, Any]], *, fail: bool) -> list[Any]:
    try:
        return load(jobs, fail=fail, by=by())
    except (DataError, IntegrityError) as error:
        text = " ".join(str(error).split())
        raise CommandError(f"Nothing was loaded: {text}") from None


def _read(path: str) -> Iterator[dict[str, Any]]:
    """The job of each line. Raises CommandError."""
    try:
        opened: Any = nullcontext(sys.stdin)
        if path != "-":
            opened = open(path, encoding="utf-8-sig")  # noqa: SIM115
        with opened as file:
            yield from _checked(file)
    except (OSError, UnicodeError) as error:
        raise CommandError(f"{path!r} cannot be read: {error}") from None


def _checked(file: TextIO) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            yield checked_job(object_of(line, "Give the lines that dump prints."))
        except (CommandError, InvalidArguments) as error:
            text = f"Line {number}: {error} Nothing was loaded."
            raise CommandError(text) from None
