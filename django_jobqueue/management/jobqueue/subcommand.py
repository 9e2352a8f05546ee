"""The subcommands of ``jobqueue``, as their files declare them."""

from __future__ import annotations

import getpass
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any, Final

from django.core.management.base import CommandError

from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.rooms import load
from django_jobqueue.text.suggestions import did_you_mean
from django_jobqueue.verbs.declarations import Argument, Verb, flag

# Fits the columns enqueued_by and paused_by.
LONGEST_NAME = 130

WRONG_USE: Final = 2  # the exit code of argparse

FORMAT: Final = Argument(
    "format",
    "text is for people, json for programs (default: text).",
    choices=("text", "json"),
    default="text",
)
YES: Final = flag("yes", "Do not ask before more than one job is changed.")


class Subcommand(ABC):
    """One subcommand."""

    name: str
    summary: str  # one line, in the list of subcommands
    description: str
    epilog: str = ""
    json: str = ""  # what --format json prints; empty: there is no --format
    arguments: Sequence[Argument] = ()
    verbs: Sequence[str] = ()  # that its first word can be
    wrong_use: int = WRONG_USE  # exit code for a wrong command line
    reads_jobs: bool = True  # so that it needs PostgreSQL in every mode

    parser: Any = None  # made of it

    def all_arguments(self) -> Iterator[Argument]:
        """Its arguments."""
        yield from self.arguments
        if self.json and all(one.name != "format" for one in self.arguments):
            yield FORMAT

    @abstractmethod
    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Do it. Raises CommandError."""


def sentences(verbs: Iterable[Verb], width: int) -> str:
    """Describe each of them in a help; their names have this width."""
    texts = {v.name: v.summary[0].lower() + v.summary[1:].rstrip(".") for v in verbs}
    return "\n".join(
        fill(
            text,
            80,
            initial_indent=f"  {n:{width}}  ",
            subsequent_indent=" " * (width + 4),
        )
        for n, text in texts.items()
    )


class VerbCommand(Subcommand):
    """A subcommand that does one verb."""

    def __init__(self, verb: Verb) -> None:
        self.verb = verb
        self.name, self.summary = verb.name, verb.summary
        self.description = verb.description


Words = list[str]
Options = dict[str, Any]


class SubcommandWithVerbs(Subcommand):
    """A subcommand whose first word says what to do; without words it lists. The method
    of a verb has its name."""

    verbs: Sequence[str]  # the first one lists
    wanted: str  # what follows a verb, for the usage

    def all_arguments(self) -> Iterator[Argument]:
        names = f"{', '.join(self.verbs[:-1])} or {self.verbs[-1]}"
        yield Argument(
            "words",
            f"{names} (default: {self.verbs[0]}), then names.",
            f"VERB [{self.wanted}]",
            words="*",
        )
        yield from super().all_arguments()

    def run(self, console: Console, options: dict[str, Any]) -> None:
        verb, *words = options["words"] or [self.verbs[0]]
        if verb not in self.verbs:
            hint = did_you_mean(verb, self.verbs)
            raise CommandError(
                f"{self.name} has no verb {verb!r}.{hint} Its verbs are "
                f"{', '.join(self.verbs)}."
            )
        for one in self.all_arguments():
            is_given = options[one.name] not in (None, False)
            verbs = one.only.split()
            if verbs and is_given and verb not in verbs:
                listed = " and ".join(verbs)
                raise CommandError(f"{flag_of(one)} goes with {listed} alone.")
        self.do(verb, words, console, options)

    @abstractmethod
    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
        """Do it with these words. Raises CommandError."""


def no_words(words: Sequence[str]) -> None:
    """Raises CommandError for a name where all are listed."""
    if words:
        raise CommandError(f"list takes no name. Did you mean 'show {words[0]}'?")


class Table(Mapping[str, Any]):
    """Subcommands by name, of which each is imported when it is asked for."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places  # dotted
        self._loaded: dict[str, Subcommand] = {}

    def __getitem__(self, name: str) -> Subcommand:
        if name not in self._loaded:
            made = load(self._places[name])
            self._loaded[name] = made() if isinstance(made, type) else made
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places


def flag_of(argument: Argument) -> str:
    """Its option on the command line."""
    name = argument.name.rstrip("_").replace("_", "-")
    return argument.flag or f"--{name}"


def by() -> str:
    """The acting person, for the audit log."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # no name is known for this user id
        user = f"user {os.getuid()}"
    return f"command line ({user[:LONGEST_NAME]})"
