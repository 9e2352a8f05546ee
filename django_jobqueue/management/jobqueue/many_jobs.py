"""What commands that change many jobs share: arguments, confirmation, summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import UnknownJobType
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.job_ids import HELP, job_id
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.store import find
from django_jobqueue.store.connection import DjangoDatabase

MANY: Final = 100  # jobs above which somebody has to confirm
EXAMPLES: Final = 5
SHOWN_PROBLEMS: Final = 10


def add_arguments(parser: CommandParser) -> None:
    """Add the ids, --dry-run and --yes."""
    parser.add_argument("ids", metavar="ID", nargs="*", help=f"Jobs, each by {HELP}.")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="Change nothing; print how many jobs would be changed, and some of them.",
    )
    add_yes(parser)


def add_yes(parser: CommandParser) -> None:
    """Add --yes, and the other spellings of it."""
    parser.add_argument(
        "--yes",
        "-y",
        "--no-input",
        "--noinput",
        action="store_true",
        help=f"Do not ask before more than {MANY} jobs are changed.",
    )


def ids_or_filter(
    options: dict[str, Any], flags: Sequence[str]
) -> tuple[list[UUID], dict[str, Any]]:
    """The ids that were given, or else the filters. Raises CommandError."""
    names = {flag: flag.removeprefix("--").replace("-", "_") for flag in flags}
    filters = {name: options[name] for name in names.values() if options[name]}
    listed = f"{', '.join(flags[:-1])} or {flags[-1]}"
    if options["ids"] and filters:
        raise CommandError(f"Name jobs by id or choose them by {listed}, not both.")
    if not options["ids"] and not filters:
        raise CommandError(f"Name jobs by id, or choose them by {listed}.")
    return list(dict.fromkeys(map(job_id, options["ids"]))), filters


def check_job_type(name: str | None) -> None:
    """Raises UnknownJobType, with the names most like it."""
    if name is None:
        return
    known = find.known_names(DjangoDatabase())
    if name not in known:
        raise UnknownJobType(name, registry.near(name, known))


def make_sure(
    console: Console, options: dict[str, Any], number: int, jobs: str, verb: str
) -> None:
    """Ask where it is many. Raises CommandError if the answer is no, or if nobody is
    there."""
    if number <= MANY:
        return
    answer = options["yes"] or console.confirm(f"{jobs} will be {verb}. Go on?")
    if answer is None:
        raise CommandError(
            f"{jobs} would be {verb}. More than {MANY} need a confirmation: say --yes. "
            "--dry-run shows what it would be."
        )
    if not answer:
        raise CommandError(f"Nothing was {verb}.")


def show_examples(
    console: Console, columns: Sequence[Column], rows: Iterable[Sequence[str]]
) -> None:
    """Show the first few of these jobs."""
    shown = [Row(row) for row in islice(rows, EXAMPLES)]
    if shown:
        console.print("For example:")
        console.table(columns, shown)


def refuse(problems: Iterable[str]) -> None:
    """Raises CommandError if there are problems with single jobs."""
    texts = list(problems)
    shown = texts[:SHOWN_PROBLEMS]
    if len(texts) > len(shown):
        shown.append(f"… and {counted(len(texts) - len(shown), 'other id')}.")
    if shown:
        raise CommandError("\n".join(shown))


def were(number: int, verb: str) -> str:
    """``1 job was cancelled``, ``3 jobs were cancelled``."""
    return f"{counted(number, 'job')} {'was' if number == 1 else 'were'} {verb}"


def summary(done: int, verb: str, asked: int = 0) -> str:
    """``3 jobs were cancelled, 1 running one was asked to stop.``"""
    text = were(done, verb)
    if asked:
        was = "was" if asked == 1 else "were"
        text += f", {counted(asked, 'running one')} {was} asked to stop"
    return f"{text}."
