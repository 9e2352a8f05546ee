"""What commands that change many jobs share: arguments, confirmation, result."""

from __future__ import annotations

import sys
from argparse import _ActionsContainer as Arguments
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.job_ids import HELP, job_id
from django_jobqueue.management.jobqueue.subcommand_verbs import add_format
from django_jobqueue.management.jobqueue.text_tables import Column, Row

UNASKED: Final = 1  # jobs that are changed without a question
EXAMPLES: Final = 5
SHOWN_PROBLEMS: Final = 10
STDIN: Final = "-"
JSON_KEYS: Final = """\
--format json prints one object: verb, dry_run, count (jobs that were changed,
or would be), asked_to_stop (running jobs beside them), operation (the id of the
bulk operation, or null), skipped (numbers by reason), ids (given by id: those
that were changed; of a dry run: the first ones), replays (by the id of the old
job, that of the new one), problems (texts about ids that were not changed)."""


@dataclass(kw_only=True)
class Result:
    """What a command did to many jobs, or would do; its fields are the keys in JSON."""

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
        values = {
            **vars(self),
            "replays": {str(old): new for old, new in self.replays.items()},
        }
        console.print(as_json(values))


def is_json(options: dict[str, Any]) -> bool:
    """Whether a program reads the output."""
    return bool(options["format"] == "json")


def add_arguments(parser: CommandParser) -> None:
    """Add the ids, --dry-run, --yes and --format."""
    parser.add_argument(
        "ids",
        metavar="ID",
        nargs="*",
        help=f"Jobs, each by {HELP}; - reads them from standard input.",
    )
    add_dry_run(parser)
    add_yes(parser)
    add_format(parser)


def add_dry_run(parser: Arguments) -> None:
    """Add --dry-run."""
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="Change nothing; print how many jobs would be changed, and some of them.",
    )


def add_yes(
    parser: Arguments, help: str = "Do not ask before more than one job is changed."
) -> None:
    """Add --yes, and the other spellings of it."""
    parser.add_argument(
        "--yes",
        "-y",
        "--no-input",
        "--noinput",
        action="store_true",
        help=help,
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
    console: Console, options: dict[str, Any], number: int, jobs: str, verb: str
) -> None:
    """Ask where it is more than one. Raises CommandError if the answer is no, or if
    nobody is there."""
    if number <= UNASKED:
        return
    answer = options["yes"] or console.confirm(f"{jobs} will be {verb}. Go on?")
    if answer is None:
        raise CommandError(
            f"{jobs} would be {verb}. More than one needs a confirmation: say --yes. "
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
