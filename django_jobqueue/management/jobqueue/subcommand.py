"""What every subcommand of ``jobqueue`` is, and how its arguments are read."""

from __future__ import annotations

import argparse
import getpass
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar, Final, NoReturn

from django.core.management.base import CommandParser, DjangoHelpFormatter

from django_jobqueue import rooms
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.text.suggestions import did_you_mean

# Fits the columns enqueued_by and paused_by.
LONGEST_NAME = 130

WRONG_USE: Final = 2  # the exit code of argparse

# Flags that no likeness leads from to those that there are.
OTHER_FLAGS: Final = {
    "--cancelled": "--status cancelled",
    "--countdown": "--run-after 10m",
    "--delay": "--run-after 10m",
    "--eta": "--run-after 2026-11-20T14:30",
    "--expired": "--status expired",
    "--failed": "--status failed",
    "--filter": "--where 'state:retrying'",
    "--force": "--yes",
    "--json": "--format json",
    "--query": "--where 'state:retrying'",
    "--queued": "--status queued",
    "--running": "--status running",
    "--search": "--where 'state:retrying'",
    "--succeeded": "--status succeeded",
}


class HelpFormatter(DjangoHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Django's order of options; descriptions keep their lines."""


class Parser(CommandParser):
    """Reads the arguments of one subcommand, options and the rest in any order."""

    positionals: str = ""  # the destination of those that follow an option
    siblings: Mapping[str, Parser] = {}  # the parsers of all subcommands, by name
    verbs: Sequence[str] = ()  # that its first word can be
    wrong_use: int = WRONG_USE  # exit code

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """argparse itself gives up at ``TYPE --queue mail key=value``."""
        parsed, extras = super().parse_known_args(args, namespace)
        unknown = [e for e in extras if e.startswith("-") and e != "-"]
        if unknown:
            # Said here, as argparse would print the usage of the command above.
            self.error(self._no_option(unknown[0].partition("=")[0]))
        if self.positionals:
            setattr(
                parsed,
                self.positionals,
                [*(getattr(parsed, self.positionals) or ()), *extras],
            )
            extras = []
        return parsed, extras

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End, with the subcommand's own exit code if it is used wrongly."""
        super().exit(self.wrong_use if status == WRONG_USE else status, message)

    def _no_option(self, flag: str) -> str:
        known = {name[2:]: name for name in self._option_string_actions}
        meant = OTHER_FLAGS.get(flag, "")
        if meant.partition(" ")[0] in known.values():
            hint = f" Write {meant}."
        else:  # without their dashes, which make all of them alike
            near = get_close_matches(flag.lstrip("-"), known, 1)
            hint = f" Did you mean {known[near[0]]!r}?" if near else ""
            hint = hint or self._of_others(flag)
        return f"There is no option {flag!r}.{hint}"

    def _of_others(self, flag: str) -> str:
        """Which other subcommands have this option, as a sentence, or nothing."""
        others = [
            name
            for name, parser in self.siblings.items()
            if flag in parser._option_string_actions
        ]
        return f" It is an option of {' and '.join(others)}." if others else ""


class Names(dict[str, Any]):
    """The parsers of the subcommands; asked for another name, it says which there
    are."""

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        hint = did_you_mean(name, self)
        for room in rooms.absent():
            if name in room.subcommands:
                hint = f" Add {room.name!r} to INSTALLED_APPS."
        raise argparse.ArgumentError(
            None,
            f"There is no subcommand {name!r}.{hint} The subcommands are "
            f"{', '.join(self)}.",
        )


class Subcommand(ABC):
    """One subcommand."""

    name: ClassVar[str]
    summary: ClassVar[str]  # one line, in the list of subcommands
    description: ClassVar[str]
    epilog: ClassVar[str] = ""
    positionals: ClassVar[str] = ""  # their destination, if there may be many
    verbs: ClassVar[tuple[str, ...]] = ()  # that its first word can be
    wrong_use: ClassVar[int] = WRONG_USE  # exit code for a wrong command line
    reads_jobs: ClassVar[bool] = True  # so that it needs PostgreSQL in every mode

    @abstractmethod
    def add_arguments(self, parser: CommandParser) -> None:
        """Add its own arguments."""

    @abstractmethod
    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Do it. Raises CommandError."""


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least 1, not {text!r}"
        )
    return number


def by() -> str:
    """Who acts, for the audit log."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # no name is known for this user id
        user = f"user {os.getuid()}"
    return f"command line ({user[:LONGEST_NAME]})"
