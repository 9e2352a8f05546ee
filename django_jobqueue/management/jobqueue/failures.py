"""``jobqueue failures``: failure groups, and what is decided about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue import failure_groups
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.subcommand import by, positive
from django_jobqueue.management.jobqueue.subcommand_verbs import (
    SubcommandWithVerbs,
    no_words,
)
from django_jobqueue.management.jobqueue.time_formats import TIMES, moment
from django_jobqueue.models import FailureGroup
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.group_states import STATES

ALL: Final = "all"
DONE: Final = {"resolve": "resolved", "ignore": "ignored", "reopen": "reopened"}


class Failures(SubcommandWithVerbs):
    """Lists failure groups, shows one, and decides about them."""

    name = "failures"
    summary = "List failure groups; show, resolve or ignore them."
    verbs = ("list", "show", *DONE)
    wanted = "GROUP ..."
    only_with = {
        "state": ("list",),
        "limit": ("list",),
        "in_release": ("resolve",),
        "until": ("ignore",),
    }
    description = """\
List the groups of failures that are the same failure, the latest first, or

  show     one of them: where it occurs, how often, and its newest traceback
  resolve  it is fixed: the next failure reopens the group as regressed; with
           --in-release, failures of the other releases that run now do not
  ignore   it is known: failures are counted, and nobody is told
  reopen   it is open again: neither resolved nor ignored

A group is named by its fingerprint, or by the beginning of it that the list
shows.

  jobqueue failures
  jobqueue failures show 5f1c9a04
  jobqueue failures resolve 5f1c9a04 --in-release 2026.11
  jobqueue failures ignore 5f1c9a04 --until 7d

To run its jobs again: jobqueue replay --group 5f1c9a04."""
    epilog = """\
--format json prints a list of {fingerprint, state, error_class, message, place,
first_seen, last_seen, archived (jobs; at most 1001), waiting, job_types,
releases, assignee, resolved_in, resolved_at, regressed_at, ignored_until};
"show" prints one such object with notes, changed_by, changed_at, breakdown (a
list of {job_type, queue, worker, release, failures}) and newest ({job_id,
finished_at, error_message, traceback}), which may be null."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add which are listed, and what is decided."""
        super().add_arguments(parser)
        parser.add_argument(
            "--state",
            choices=[*STATES, ALL],
            help="List groups in this state (default: open, regressed ones included).",
        )
        parser.add_argument(
            "--limit",
            type=positive,
            metavar="N",
            help="List at most N groups (default: 20).",
        )
        parser.add_argument("--in-release", help="The release that has the fix.")
        parser.add_argument(
            "--until", metavar="WHEN", help=f"Ignore until then: {TIMES}."
        )

    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """List, show or decide. Raises CommandError."""
        if verb == "list":
            no_words(words)
            _list(console, options)
            return
        if not words:
            raise CommandError(f"Name the groups to {verb} by their fingerprints.")
        keys = list(dict.fromkeys(map(failure_groups.key_of, words)))
        if verb == "show":
            failure_groups.show(console, options, keys)
        else:
            _decide(verb, keys, console, options)


def _list(console: Console, options: dict[str, Any]) -> None:
    groups = FailureGroup.objects.using(conf.database)
    state = options["state"] or "open"
    if state != ALL:
        groups = groups.filter(STATES[state])
    newest = groups.order_by("-last_seen", "-fingerprint")[: options["limit"] or 20]
    failure_groups.listed(console, options, list(newest))


def _decide(
    verb: str, keys: list[UUID], console: Console, options: dict[str, Any]
) -> None:
    match verb:
        case "resolve":
            release = options["in_release"] or ""
            changed = operations.resolve(keys, in_release=release, by=by())
        case "ignore":
            changed = operations.ignore(keys, until=_until(options), by=by())
        case _:
            changed = operations.reopen(keys, by=by())
    if options["format"] == "json":
        groups = FailureGroup.objects.using(conf.database).filter(pk__in=keys)
        console.print(as_json(failure_groups.as_objects(list(groups))))
        return
    were = "was" if len(changed) == 1 else "were"
    if changed:
        console.info(f"{counted(len(changed), 'failure group')} {were} {DONE[verb]}.")
    for key in keys:
        if key not in changed:
            console.warn(f"Failure group {key} was open already.")


def _until(options: dict[str, Any]) -> datetime | None:
    now = database_now()
    text = options["until"]
    until = text and moment("--until", text, now=now)
    if until and until <= now:
        raise CommandError("--until: this moment is past.")
    return until or None
