"""The parsers of ``jobqueue`` and its subcommands, made of what they declare."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from textwrap import fill
from typing import Any, Final, NoReturn

from django.core.management.base import CommandParser, DjangoHelpFormatter

from django_jobqueue import rooms
from django_jobqueue.management.jobqueue.subcommand import (
    WRONG_USE,
    Subcommand,
    Table,
    flag_of,
)
from django_jobqueue.text.durations import DURATIONS
from django_jobqueue.text.suggestions import did_you_mean
from django_jobqueue.verbs.declarations import Argument, Takes

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
        """A sentence about the other subcommands that have this option, or nothing."""
        parsers = self.siblings.items()
        others = [name for name, one in parsers if flag in one._option_string_actions]
        return f" It is an option of {' and '.join(others)}." if others else ""


class Parsers(Mapping[str, Any]):
    """The parsers of the subcommands, of which each is made when it is asked for. Asked
    for another name, it says which there are."""

    def __init__(
        self, table: Table, prog: str, parser_class: Callable[..., Parser]
    ) -> None:
        self._table = table
        self._parser_class = parser_class
        self._prog = prog
        self._made: dict[str, Parser] = {}

    def __getitem__(self, name: str) -> Parser:
        if name not in self._made:
            self._made[name] = self._parser(self._table[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and name in self._table:
            return True
        hint = did_you_mean(name, self._table)
        for room in rooms.absent():
            if name in room.subcommands:
                hint = f" Add {room.name!r} to INSTALLED_APPS."
        raise argparse.ArgumentError(
            None,
            f"There is no subcommand {name!r}.{hint} The subcommands are "
            f"{', '.join(self._table)}.",
        )

    def _parser(self, subcommand: Subcommand) -> Parser:
        own = self._parser_class(
            prog=f"{self._prog} {subcommand.name}",
            description=subcommand.description,
            epilog=epilog_of(subcommand),
            formatter_class=HelpFormatter,
            allow_abbrev=False,
        )
        arguments = list(subcommand.all_arguments())
        many = [one.name for one in arguments if one.words in ("*", "+")]
        own.positionals = "".join(many)
        own.siblings = self
        own.verbs = subcommand.verbs
        own.wrong_use = subcommand.wrong_use
        add_arguments(own, arguments)
        subcommand.parser = own
        add_general_arguments(own)
        return own


class Subparsers(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Parsers that are made when they are asked for."""

    table: Table

    def use(self, table: Table) -> None:
        """Have these subcommands."""
        self.table = table
        parsers: Any = Parsers(table, self._prog_prefix, self._parser_class)
        self.choices = self._name_parser_map = parsers

    def _get_subactions(self) -> list[argparse.Action]:
        """The lines of the help that lists them."""
        return [
            self._ChoicesPseudoAction(name, (), one.summary)
            for name, one in self.table.items()
        ]


def epilog_of(subcommand: Subcommand) -> str:
    """The text below its options."""
    if not subcommand.json:
        return subcommand.epilog
    first, *others = f"--format json prints {subcommand.json}".split("\n\n")
    return "\n\n".join(
        [fill(" ".join(first.split()), 80, break_on_hyphens=False), *others]
    )


TIME: Final = "an ISO time such as 2026-11-20T14:30"
YES_FLAGS: Final = ("--yes", "-y", "--no-input", "--noinput")


def add_arguments(parser: CommandParser, arguments: Sequence[Argument]) -> None:
    """Let the parser take them."""
    places: dict[str, Any] = {"": parser}
    for one in arguments:
        title = one.group or one.either
        if title not in places:
            places[title] = (
                parser.add_mutually_exclusive_group()
                if one.either
                else parser.add_argument_group(one.group)
            )
        _add(places[title], one)


def _add(place: Any, one: Argument) -> None:
    metavar, parse = (
        METAVARS[one.takes] if isinstance(one.takes, Takes) else (one.takes, one.parse)
    )
    if one.words:
        nargs = None if one.words == "1" else one.words
        place.add_argument(one.name, nargs=nargs, metavar=metavar, help=one.help)
        return
    if one.takes is Takes.END:
        end = place.add_mutually_exclusive_group()
        for_, until = f"after this: {DURATIONS}", f"then: {TIME}"
        end.add_argument(
            "--for", dest="for_", metavar="DURATION", help=f"{one.help} {for_}."
        )
        end.add_argument("--until", metavar="TIME", help=f"{one.help} {until}.")
        return
    how: dict[str, Any] = {"dest": one.name, "help": one.help}
    if one.takes is Takes.FLAG:
        how["action"] = "store_true"
    else:
        how |= {"metavar": metavar, "default": one.default, "choices": one.choices}
        if parse is not None:
            how["type"] = parse
        if one.or_else is not None:
            how |= {"nargs": "?", "const": one.or_else}
        if one.is_list:
            how["action"] = "append"
    place.add_argument(*(YES_FLAGS if one.name == "yes" else [flag_of(one)]), **how)


def add_general_arguments(parser: CommandParser) -> None:
    """Django's own options, so that they are understood after the subcommand, too."""
    general = parser.add_argument_group("general options")
    general.add_argument(
        "-v",
        "--verbosity",
        type=int,
        choices=[0, 1, 2, 3],
        default=argparse.SUPPRESS,
        help="0 prints only results: no bar, no summary, no remarks.",
    )
    general.add_argument(
        "--database",
        metavar="ALIAS",
        help="Alias of the database that holds the jobs, instead of "
        "JOBQUEUE['DATABASE'].",
    )
    hidden: dict[str, Any] = {"default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    for flag in ("--settings", "--pythonpath"):
        general.add_argument(flag, **hidden)
    for flag in ("--traceback", "--no-color", "--force-color", "--skip-checks"):
        general.add_argument(flag, action="store_true", **hidden)


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


# What stands for the value in a help, and how argparse reads it.
METAVARS: Final[Mapping[Takes, tuple[str | None, Any]]] = {
    Takes.FLAG: (None, None),
    Takes.TEXT: (None, None),
    Takes.NUMBER: (None, int),
    Takes.POSITIVE: ("N", positive),
    Takes.DURATION: ("DURATION", None),
    Takes.MOMENT: ("WHEN", None),
    Takes.END: ("TIME", None),
}
