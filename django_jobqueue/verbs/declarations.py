"""Declares what operators do, once for every surface that lets them.

A ``Verb`` is a function of ``operations`` with all that a surface has to know of it.
The command line makes its parser, its help, its questions and its answers of it, and
nothing in these files knows how: HTTP routes and buttons can be made of the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from django_jobqueue.domain.states import BulkKind
    from django_jobqueue.search.selection import Term

ASK: Final = "{rows} will be {done}. Go on?"


class Takes(Enum):
    """The type of the value that an argument takes."""

    FLAG = "flag"
    TEXT = "text"
    NUMBER = "whole number"
    POSITIVE = "whole number of at least 1"
    DURATION = "duration"
    MOMENT = "moment, or a duration from now"
    END = "moment to come, or a duration from now"  # --until and --for


class On(StrEnum):
    """The rows that a verb is about."""

    JOB_TYPE = "job type"
    QUEUE = "queue"
    QUEUED_JOB = "job"
    ARCHIVED_JOB = "archived job"
    WORKER = "worker"
    HOST = "host"
    LEASE = "lease"
    SCHEDULE = "schedule"
    FAILURE_GROUP = "failure group"
    BULK_OPERATION = "bulk operation"
    DATABASE = "database"


class Argument(NamedTuple):
    """A value that a verb takes: an option, a field of a body or of a form."""

    name: str  # of the parameter
    help: str
    takes: Takes | str = Takes.TEXT  # or a text, and what stands for it in a help
    default: Any = None
    choices: Sequence[str] | None = None
    is_list: bool = False  # may be given again
    words: str = ""  # it is no option; how many words it has: 1, ?, * or +
    flag: str = ""  # another one than that of its name
    only: str = ""  # these verbs, of those that one name on the command line has
    group: str = ""  # the title of the options that it stands with
    either: str = ""  # at most one of those with the same text is given
    parse: Callable[[str], Any] | None = None  # another reader of its text
    or_else: str | None = None  # its value where only its option is given
    required: str = ""  # what to answer where it is not given
    is_to_come: bool = False  # a moment that is past is refused


class Verb(NamedTuple):
    """Operators' actions on rows, on the command line, by HTTP and in the admin."""

    name: str
    function: Callable[..., Any]  # of operations, called with keys, arguments and by
    on: On
    right: str  # of the app, in the admin
    summary: str
    done: str  # to the rows: paused
    description: str = ""
    of_one: str = ""  # the summary of its HTTP route, which does it to one row
    doing: str = ""  # the title of a progress bar: Pausing
    arguments: Sequence[Argument] = ()
    scope: str = "operate"  # of a token of the HTTP API
    ask: str = ASK
    audit: str = "{name}"  # what the audit calls it
    needs: str = ""  # what to answer if no argument is given
    not_done: str = ""  # about a row that was left alone
    # Of jobs:
    bulk: BulkKind | None = None  # the bulk operation that does it with many
    applies: Sequence[Term] = ()  # the jobs of a selection that it can change at all
    filters: Sequence[str] = ()  # what chooses jobs


def flag(name: str, help: str, **more: Any) -> Argument:
    """An argument that is given, or not."""
    return Argument(name, help, Takes.FLAG, **more)


def only(verbs: str, *arguments: Argument) -> tuple[Argument, ...]:
    """These, for these verbs alone."""
    return tuple(argument._replace(only=verbs) for argument in arguments)


def group(title: str, arguments: Iterable[Argument]) -> tuple[Argument, ...]:
    """These, below this title."""
    return tuple(argument._replace(group=title) for argument in arguments)
