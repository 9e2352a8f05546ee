"""Output for operators: text for a terminal, or plain text for a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from django.core.management.base import CommandError, OutputWrapper
from django.core.management.color import Style

from django_jobqueue.domain.followers import described
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue import rich_output
from django_jobqueue.management.jobqueue.text_tables import (
    Part,
    Row,
    plain,
    plain_table,
)
from django_jobqueue.text import numbers
from django_jobqueue.verbs.columns import Column, Listing, local

GAP: Final = "  "


class Console:
    """The streams of a command, its colours, and how much it is to say."""

    def __init__(
        self,
        stdout: OutputWrapper,
        stderr: OutputWrapper,
        style: Style,
        verbosity: int,
        *,
        is_json: bool = False,
    ) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.style: Any = style
        self.verbosity = verbosity
        self.is_json = is_json  # a program reads the output

    def print(self, text: str = "", ending: str = "\n") -> None:
        """Write what was asked for."""
        self.stdout.write(_encodable(text, self.stdout), ending=ending)

    def info(self, text: str) -> None:
        """Write what was done, unless it is to be quiet."""
        if self.verbosity:
            self.print(text)

    def warn(self, text: str) -> None:
        """Write what the operator should know beside the result."""
        if self.verbosity:
            self.stderr.write(self.style.WARNING(_encodable(text, self.stderr)))

    def step(self, text: str) -> None:
        """Write what is done now, where it takes a while."""
        if self.verbosity:
            line = _encodable(f"{text}…", self.stderr)
            self.stderr.write(line, style_func=str)

    @property
    def is_terminal(self) -> bool:
        """True if somebody sees the output as it is written."""
        return self.stdout.isatty()

    @cached_property
    def rich(self) -> Any:
        """A console of rich to draw on; None in a file, on a terminal that has not all
        characters, or where rich is not installed."""
        encoding = getattr(self.stdout, "encoding", None) or "utf-8"
        is_able = self.is_terminal and encoding.lower().startswith("utf")
        if not is_able or not rich_output.IS_INSTALLED:
            return None
        has_colour: bool = self.style.ERROR("") != ""
        return rich_output.console(self.stdout, has_colour=has_colour)

    def json(self, value: Any, **how: Any) -> None:
        """Print it for a program; moments are in ISO 8601."""
        self.print(as_json(value, **how))

    def rows(self, listing: Listing, rows: Iterable[Any]) -> None:
        """Print a list, for a program or as a table."""
        shown = [*rows]
        if self.is_json:
            self.json([listing.as_object(row) for row in shown])
        elif shown:
            cells = [Row(listing.cells(row), listing.color(row)) for row in shown]
            self.table(listing.shown, cells)
        else:
            self.print(listing.empty)

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Print each fact; one without a value is left out. Further lines of a value
        stand below its first one, so that none looks like another fact."""
        shown = [(name, text) for name, text in facts if text]
        width = max((len(name) for name, _ in shown), default=0)
        for name, text in shown:
            first, *others = text.rstrip("\n").split("\n")
            self.print(f"{name:{width}}{GAP}{one_line(first)}")
            for line in others:
                self.print(f"{'':{width}}{GAP}{one_line(line)}".rstrip())

    def section(self, title: str, text: str) -> None:
        """Print a longer text below its title, if there is one; its lines stay."""
        if not text:
            return
        self.print()
        self.print(self.style.MIGRATE_HEADING(title))
        for line in text.rstrip("\n").split("\n"):
            self.print(one_line(line))

    def table(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        """Print a table."""
        if self.rich is not None:
            self.rich.print(rich_output.table(columns, rows))
        else:
            self.print("\n".join(plain_table(columns, rows)))

    def show(self, parts: Sequence[Part]) -> None:
        """Print several of them, with their titles."""
        if self.rich is not None:
            self.rich.print(rich_output.group(parts))
        else:
            self.print("\n".join(plain(parts)))

    @property
    def can_ask(self) -> bool:
        """True if somebody is there to answer."""
        return sys.stdin.isatty()

    def make_sure(
        self,
        question: str,
        nothing: str,
        nobody: str = "No terminal to confirm on; pass --yes.",
    ) -> None:
        """Ask. Raises CommandError with ``nobody`` if nobody is there, or with
        ``nothing`` if the answer is no."""
        answer = self.confirm(one_line(question))
        if answer is None:
            raise CommandError(nobody)
        if not answer:
            raise CommandError(nothing)

    def confirm(self, question: str) -> bool | None:
        """Ask; None if nobody is there to answer."""
        if not self.can_ask:
            return None
        # Not into the output, which may be a file.
        text = _encodable(f"{question} [y/N] ", self.stderr)
        self.stderr.write(text, style_func=str, ending="")
        self.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def _encodable(text: str, stream: OutputWrapper) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def counted(number: int, singular: str, plural: str = "") -> str:
    """``1 job``, ``2,000 jobs``."""
    name = singular if number == 1 else plural or f"{singular}s"
    return f"{numbers.number(number)} {name}"


def were(number: int, singular: str, done: str) -> str:
    """``1 job was cancelled``, ``3 jobs were cancelled``."""
    return f"{counted(number, singular)} {'was' if number == 1 else 'were'} {done}"


def as_json(value: Any, *, ascii: bool = False, indent: int | None = 2) -> str:
    """A value as JSON text that programs and people read; moments are in ISO 8601."""
    return json.dumps(value, indent=indent, ensure_ascii=ascii, default=_written)


def moment_text(moment: datetime | None) -> str:
    """A moment in the current time zone; empty for none."""
    return "" if moment is None else local(moment)


def listed(texts: Iterable[object]) -> str:
    """Texts in one line."""
    return ", ".join(map(str, texts))


def lines_of(rows: Iterable[Iterable[object]]) -> str:
    """Rows of few texts, each in a line; further lines of a text are indented."""
    lines = (GAP.join(filter(None, map(str, row))) for row in rows)
    return "\n".join(line.replace("\n", f"\n{3 * GAP}") for line in lines)


def followers_text(followers: object) -> Iterator[tuple[str, str]]:
    """The job types of followers, by the option that names them."""
    for option, names in described(followers):
        yield option.replace("_", " ").capitalize(), listed(names)


def _written(value: object) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
