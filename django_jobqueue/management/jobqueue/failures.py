"""``jobqueue failures``: failure groups, what is decided about them, and their
jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.management.jobqueue import failure_groups, failure_jobs
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
DONE: Final = {
    "resolve": "resolved",
    "ignore": "ignored",
    "reopen": "reopened",
    "assign": "assigned",
    "note": "noted",
}


class Failures(SubcommandWithVerbs):
    """Lists failure groups, shows one, decides about them, and changes their jobs."""

    name = "failures"
    summary = "List failure groups; show, decide, replay their jobs."
    verbs = ("list", "show", *DONE, *failure_jobs.JOB_VERBS)
    wanted = "GROUP ..."
    only_with = {
        "state": ("list",),
        "limit": ("list",),
        "in_release": ("resolve",),
        "until": ("ignore",),
        "to": ("assign",),
        "text": ("note",),
        **failure_jobs.ONLY_WITH,
    }
    description = """\
List the groups of failures that are the same failure, the latest first, or

  show     one of them: where it occurs, how often, and its newest traceback
  resolve  it is fixed: the next failure reopens the group as regressed; with
           --in-release, failures of the other releases that run now do not
  ignore   it is known: failures are counted, and nobody is told
  reopen   it is open again: neither resolved nor ignored
  assign   somebody looks after it: --to NAME; --to "" is nobody
  note     add --text TEXT to its notes

or change its jobs, by a bulk operation as in the admin, that this command runs:

  replay   enqueue its failed jobs again; with --resolve, it is fixed, too.
           Jobs that were replayed before are left out (see --again), and so
           are those of at-most-once types (see --at-most-once)
  cancel   cancel its jobs that wait for another attempt
  prune    delete its archived jobs

A group is named by its fingerprint, or by the beginning of it that the list
shows.

  jobqueue failures
  jobqueue failures show 5f1c9a04
  jobqueue failures resolve 5f1c9a04 --in-release 2026.11
  jobqueue failures ignore 5f1c9a04 --until 7d
  jobqueue failures replay 5f1c9a04 77ab03c1 --dry-run

To replay a part of its jobs: jobqueue replay --where "group:5f1c9a04 …"."""
    epilog = """\
--format json prints a list of {fingerprint, state, error_class, message, place,
first_seen, last_seen, archived (jobs; at most 1001), waiting, job_types,
releases, assignee, resolved_in, resolved_at, regressed_at, ignored_until};
"show" prints one such object with notes, changed_by, changed_at, breakdown (a
list of {job_type, queue, worker, release, failures}) and newest ({job_id,
finished_at, error_message, traceback}), which may be null. Of replay, cancel
and prune: one object, with the keys that jobqueue replay has."""

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
        parser.add_argument("--to", metavar="NAME", help="Who looks after it.")
        parser.add_argument("--text", help="The note.")
        failure_jobs.add_arguments(parser)
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
        if verb in failure_jobs.JOB_VERBS:
            failure_jobs.change(verb, keys, console, options)
        elif verb == "show":
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
    changed = _decided(verb, keys, options)
    if options["format"] == "json":
        groups = FailureGroup.objects.using(conf.database).filter(pk__in=keys)
        console.print(as_json(failure_groups.as_objects(list(groups))))
        return
    were = "was" if len(changed) == 1 else "were"
    if changed:
        console.info(f"{counted(len(changed), 'failure group')} {were} {DONE[verb]}.")
    for key in keys:
        if key not in changed:
            why = "was open already" if verb == "reopen" else "changed meanwhile"
            console.warn(f"Failure group {key} {why}.")


def _decided(verb: str, keys: list[UUID], options: dict[str, Any]) -> list[UUID]:
    """Decide; returns the groups that were changed. Raises CommandError."""
    match verb:
        case "resolve":
            release = options["in_release"] or ""
            return operations.resolve(keys, in_release=release, by=by())
        case "ignore":
            return operations.ignore(keys, until=_until(options), by=by())
        case "assign":
            return operations.assign(keys, _required(options, "to", "who"), by=by())
        case "note":
            return operations.note(keys, _required(options, "text", "what"), by=by())
        case _:
            return operations.reopen(keys, by=by())


def _required(options: dict[str, Any], name: str, what: str) -> str:
    """The value of a flag that the verb needs. Raises CommandError."""
    value: str | None = options[name]
    if value is None:
        raise CommandError(f"Say {what}: --{name}.")
    return value


def _until(options: dict[str, Any]) -> datetime | None:
    now = database_now()
    text = options["until"]
    until = text and moment("--until", text, now=now)
    if until and until <= now:
        raise CommandError("--until: this moment is past.")
    return until or None
