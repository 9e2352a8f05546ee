"""The verbs of failure groups: what is decided about them."""

from __future__ import annotations

from typing import Final

from django_jobqueue import operations
from django_jobqueue.text.durations import TIMES
from django_jobqueue.verbs.declarations import Argument, On, Takes, Verb

RESOLVE: Final = Verb(
    "resolve",
    operations.resolve,
    on=On.FAILURE_GROUP,
    right="change_failuregroup",
    summary="It is fixed: the next failure reopens the group as regressed; with "
    "--in-release, failures of the other releases running now do not.",
    done="resolved",
    audit="{name} failures",
    arguments=(Argument("in_release", "The release that has the fix.", default=""),),
)
IGNORE: Final = RESOLVE._replace(
    name="ignore",
    function=operations.ignore,
    summary="It is known: failures are counted, but not announced.",
    done="ignored",
    arguments=(
        Argument(
            "until", f"Ignore until then: {TIMES}.", Takes.MOMENT, is_to_come=True
        ),
    ),
)
REOPEN: Final = RESOLVE._replace(
    name="reopen",
    function=operations.reopen,
    summary="It is open again: neither resolved nor ignored.",
    done="reopened",
    not_done="was open already",
    arguments=(),
)
ASSIGN: Final = RESOLVE._replace(
    name="assign",
    function=operations.assign,
    summary='Assign it: --to NAME; --to "" is nobody.',
    done="assigned",
    arguments=(
        Argument(
            "assignee",
            "The assignee.",
            "NAME",
            flag="--to",
            required="Say who: --to.",
        ),
    ),
)
NOTE: Final = RESOLVE._replace(
    name="note",
    function=operations.note,
    summary="Add --text TEXT to its notes.",
    done="noted",
    arguments=(Argument("text", "The note.", required="Say what: --text."),),
)
VERBS: Final = {one.name: one for one in (RESOLVE, IGNORE, REOPEN, ASSIGN, NOTE)}
