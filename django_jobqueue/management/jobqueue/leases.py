"""``jobqueue leases``: who holds which lease, and taking one away."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.management.jobqueue.subcommand_verbs import SubcommandWithVerbs
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.management.jobqueue.time_formats import local
from django_jobqueue.models import Lease
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.leases import LeaseRow, leases
from django_jobqueue.text import numbers
from django_jobqueue.text.suggestions import did_you_mean

NONE: Final = "-"
COLORS: Final = {"lapsed": "red"}
COLUMNS: Final = (
    Column("Lease", breaks=True),
    Column("State"),
    Column("Holder", breaks=True),
    Column("Since"),
    Column("Left", right=True),
    Column("Fence", right=True),
)


class Leases(SubcommandWithVerbs):
    """Lists leases, and takes them away."""

    name = "leases"
    summary = "List leases by name; take one away from its holder."
    verbs = ("list", "take-away")
    wanted = "LEASE ..."
    description = """\
List the leases that processes hold, or take leases from their holders:

  take-away  others may take it at once, with a greater fence; its holder
             learns of it with its next renewal

A lease that has lapsed was not renewed in time: its holder died, or cannot
reach the database. Whoever wants it takes it over without your help. Take a
lease away from a process that lives and does not get on. Those of runworkers
--standby NAME are called runworkers:NAME; the workers of a host that loses
one are stopped.

  jobqueue leases
  jobqueue leases --all
  jobqueue leases take-away nightly-import"""
    epilog = """\
--format json prints a list of {name, state (held, lapsed or free), holder,
host, since, until, left (seconds; negative if it is over), fence}. Of
take-away, it is the list of the names that were taken away."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add whether free ones are listed."""
        super().add_arguments(parser)
        parser.add_argument(
            "--all", action="store_true", help="List those that are free, too."
        )

    only_with = {"all": ("list",)}

    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """List them, or take them away. Raises CommandError."""
        is_json = options["format"] == "json"
        if verb == "list":
            if words:
                raise CommandError("list takes no name.")
            _show(console, leases(DjangoDatabase(), free=options["all"]), is_json)
        else:
            _take_away(console, words, is_json)


def _show(console: Console, rows: list[LeaseRow], is_json: bool) -> None:
    if is_json:
        console.print(as_json([_as_object(row) for row in rows]))
    elif rows:
        console.table(
            COLUMNS, [Row(_cells(row), COLORS.get(row.state, "")) for row in rows]
        )
    else:
        console.print("Nobody holds a lease.")


def _as_object(row: LeaseRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "state": row.state,
        "holder": row.holder,
        "host": row.host,
        "since": row.since.isoformat(),
        "until": row.until.isoformat(),
        "left": row.left,
        "fence": row.fence,
    }


def _cells(row: LeaseRow) -> list[str]:
    return [
        row.name,
        row.state,
        row.holder,
        local(row.since),
        numbers.span(row.left) if row.state == "held" else NONE,
        numbers.number(row.fence),
    ]


def _take_away(console: Console, names: list[str], is_json: bool) -> None:
    if not names:
        raise CommandError("Name the leases to take away.")
    known = set(Lease.objects.using(conf.database).values_list("name", flat=True))
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise CommandError(f"There is no lease {name!r}.{hint}")
    taken = operations.take_away_leases(names, by=by())
    if is_json:
        console.print(as_json(taken))
    elif taken:
        were = "was" if len(taken) == 1 else "were"
        console.info(f"{counted(len(taken), 'lease')} {were} taken away.")
    for name in names:
        if name not in taken:
            console.warn(f"Nobody held the lease {name!r}.")
