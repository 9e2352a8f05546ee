"""What an operator sees: text for a terminal, or plain text for a file."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from typing import Any

from django.core.management.base import OutputWrapper
from django.core.management.color import Style

from django_jobqueue.text import numbers

CLEAR_LINE = "\r\x1b[K"


class Console:
    """The streams of a command, its colours, and how much it is to say."""

    def __init__(
        self, stdout: OutputWrapper, stderr: OutputWrapper, style: Style, verbosity: int
    ) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.style: Any = style
        self.verbosity = verbosity

    def print(self, text: str = "", ending: str = "\n") -> None:
        """Write what was asked for."""
        self.stdout.write(_encodable(text, self.stdout), ending=ending)

    def say(self, text: str) -> None:
        """Write what was done, unless it is to be quiet."""
        if self.verbosity:
            self.print(text)

    def warn(self, text: str) -> None:
        """Write what the operator should know beside the result."""
        if self.verbosity:
            self.stderr.write(self.style.WARNING(_encodable(text, self.stderr)))

    @property
    def is_terminal(self) -> bool:
        """Whether somebody sees the output as it is written."""
        return self.stdout.isatty()

    @property
    def width(self) -> int | None:
        """Columns that a line may have; None is any number, as in a file."""
        if not self.is_terminal and not os.environ.get("COLUMNS"):
            return None
        return shutil.get_terminal_size().columns

    @property
    def height(self) -> int:
        """Lines that can be seen at once."""
        return shutil.get_terminal_size().lines

    def can_write(self, text: str) -> bool:
        """Whether the terminal's encoding has these characters."""
        return _encodable(text, self.stdout) == text

    @property
    def can_ask(self) -> bool:
        """Whether somebody is there to answer."""
        return sys.stdin.isatty()

    def confirm(self, question: str) -> bool | None:
        """Ask; None if nobody is there to answer."""
        if not self.can_ask:
            return None
        # Not into the output, which may be a file.
        text = _encodable(f"{question} [y/N] ", self.stderr)
        self.stderr.write(text, style_func=str, ending="")
        self.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def columns_of(text: str) -> int:
    """How many columns of a terminal this text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _encodable(text: str, stream: OutputWrapper) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def counted(number: int, singular: str, plural: str = "") -> str:
    """``1 job``, ``2,000 jobs``."""
    name = singular if number == 1 else plural or f"{singular}s"
    return f"{numbers.number(number)} {name}"
