"""Subcommands that have verbs of their own: ``jobqueue workers drain …``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from django.core.management.base import CommandError, CommandParser

from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import Subcommand
from django_jobqueue.text.suggestions import did_you_mean


class SubcommandWithVerbs(Subcommand):
    """A subcommand whose first word says what to do; without words it lists."""

    positionals = "words"
    verbs: ClassVar[tuple[str, ...]]  # the first one lists
    wanted: ClassVar[str]  # what follows a verb, for the usage
    # Flags that go with some verbs alone, by their destination.
    only_with: ClassVar[Mapping[str, Collection[str]]] = {}

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the words, and --format."""
        parser.add_argument(
            "words",
            metavar=f"VERB [{self.wanted}]",
            nargs="*",
            help=f"{', '.join(self.verbs[:-1])} or {self.verbs[-1]} "
            f"(default: {self.verbs[0]}), then names.",
        )
        add_format(parser)

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Do what the first word says. Raises CommandError."""
        verb, *words = options["words"] or [self.verbs[0]]
        if verb not in self.verbs:
            hint = did_you_mean(verb, self.verbs)
            raise CommandError(
                f"{self.name} has no verb {verb!r}.{hint} Its verbs are "
                f"{', '.join(self.verbs)}."
            )
        for destination, verbs in self.only_with.items():
            if options[destination] not in (None, False) and verb not in verbs:
                flag = "--" + destination.rstrip("_").replace("_", "-")
                raise CommandError(f"{flag} goes with {' and '.join(verbs)} alone.")
        self.do(verb, words, console, options)

    @abstractmethod
    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """Do it with these words. Raises CommandError."""


def no_words(words: Sequence[str]) -> None:
    """Raises CommandError for a name where all are listed."""
    if words:
        raise CommandError(f"list takes no name. Did you mean 'show {words[0]}'?")


def add_format(parser: CommandParser) -> None:
    """Add --format."""
    parser.add_argument(
        "--format",
        choices=["text", "json"],
        default="text",
        help="text is for people, json for programs (default: text).",
    )
