"""``jobqueue leases``: who holds which lease, and taking one away."""

from __future__ import annotations

from typing import Final

from django.core.management.base import CommandError

from django_jobqueue.conf import conf
from django_jobqueue.contrib.leases.lease_readings import LeaseRow, leases
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.contrib.leases.take_away import TAKE_AWAY
from django_jobqueue.management.jobqueue.console import Console, were
from django_jobqueue.management.jobqueue.inputs import known_names
from django_jobqueue.management.jobqueue.subcommand import (
    Options,
    SubcommandWithVerbs,
    Words,
    by,
    sentences,
)
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.verbs.columns import MOMENT, NUMBER, SPAN, Column, Listing
from django_jobqueue.verbs.declarations import flag


def _left(row: LeaseRow) -> float | None:
    return row.left if row.state == "held" else None


LEASES: Final = Listing(
    (
        Column("name", "Lease", breaks=True),
        Column("state", "State", note="held, lapsed or free"),
        Column("holder", "Holder", breaks=True),
        Column("host"),
        Column("since", "Since", MOMENT),
        Column("until"),
        Column("", "Left", SPAN, _left),
        Column("left", note="seconds; negative if it has lapsed"),
        Column("fence", "Fence", NUMBER),
    ),
    "No lease is held.",
    color=lambda row: "red" if row.state == "lapsed" else "",
)


class Leases(SubcommandWithVerbs):
    name = "leases"
    summary = "List leases by name; take one away from its holder."
    verbs = ("list", TAKE_AWAY.name)
    wanted = "LEASE ..."
    description = f"""\
List the leases that processes hold, or take leases from their holders:

{sentences([TAKE_AWAY], 9)}

A lease that has lapsed was not renewed in time: its holder died, or cannot
reach the database. Another process takes it over without your help. Take a
lease away from a process that is alive but makes no progress. Leases of
runworkers --standby NAME are called runworkers:NAME; the workers of a host that
loses one are stopped.

  jobqueue leases
  jobqueue leases --all
  jobqueue leases take-away nightly-import"""
    json = f"""a list of {LEASES.keys}. Of take-away, it is the list of the names that
    were taken away."""
    arguments = (flag("all", "Also list free ones.", only="list"),)

    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
        if verb == "list":
            if words:
                raise CommandError("list takes no name.")
            console.rows(LEASES, leases(DjangoDatabase(), free=options["all"]))
            return
        rows = Lease._default_manager.using(conf.database)
        known_names("lease", words, rows.values_list("name", flat=True), "take away")
        taken = TAKE_AWAY.function(words, by=by())
        if console.is_json:
            console.json(taken)
        elif taken:
            console.info(f"{were(len(taken), TAKE_AWAY.on, TAKE_AWAY.done)}.")
        for name in words:
            if name not in taken:
                console.warn(TAKE_AWAY.not_done.format(name=name))
