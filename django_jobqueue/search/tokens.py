"""Splits a search into tokens: ``type:x``, ``ran:>20s``, ``data.customer.name:"Ann
Lee"``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from django.utils.translation import gettext as _

from django_jobqueue.search.errors import SearchError
from django_jobqueue.text.sanitizing import storable

LONGEST: Final = 1_000  # characters of a search

_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_TOKEN: Final = re.compile(rf'(?:[^\s"]|{_QUOTED})+')
_QUALIFIED: Final = re.compile(
    rf'(-?[A-Za-z_][\w-]*)((?:\.(?:{_QUOTED}|[^\s.":]+))*):(>=|<=|>|<|=)?(.*)',
    re.DOTALL,
)
_KEY: Final = re.compile(rf'\.({_QUOTED}|[^\s.":]+)')
_ESCAPE: Final = re.compile(r"\\(.)")


class Token(NamedTuple):
    """A part of a search between spaces."""

    text: str  # as it was typed
    name: str = ""  # before the colon; empty if there is none
    path: tuple[str, ...] = ()
    operator: str = "="
    value: str = ""
    is_quoted: bool = False


def quoted(text: str) -> str:
    """The text as a search takes it whole, whatever is in it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a search. Raises SearchError."""
    if len(text) > LONGEST:
        error = _("A search has at most %(most)d characters.")
        raise SearchError(error % {"most": LONGEST})
    if storable(text) != text:
        raise SearchError(_("The search has characters that no job can have."))
    position = 0
    while (position := _after_spaces(text, position)) < len(text):
        matched = _TOKEN.match(text, position)
        end = matched.end() if matched else position
        if matched is None or text[end : end + 1] == '"':
            raise SearchError(_("The search has an unclosed quotation mark."))
        yield _token(matched.group())
        position = end


def _after_spaces(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _token(text: str) -> Token:
    matched = _QUALIFIED.fullmatch(text)
    if matched is None:
        return Token(text, value=_plain(text))
    name, path, operator, value = matched.groups()
    is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
    keys = tuple(_plain(key) for key in _KEY.findall(path))
    return Token(text, name.lower(), keys, operator or "=", _plain(value), is_quoted)


def _plain(text: str) -> str:
    """Without the quotation marks around it."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _ESCAPE.sub(r"\1", text[1:-1])
    return text
