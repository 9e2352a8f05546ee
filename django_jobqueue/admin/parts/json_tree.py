"""A JSON value as a page shows it: a line for each key, deep levels folded, bounded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from django_jobqueue.admin.parts.display import visible
from django_jobqueue.admin.parts.json_text import STEP, Number, Unreadable, scalar
from django_jobqueue.text import numbers
from django_jobqueue.text.redaction import Masking, mask_text

LONGEST: Final = 64 * 1024  # characters that the page has of a value
LONGEST_TEXT: Final = 2_000  # characters of a text before the rest folds
OPEN_LEVELS: Final = 2  # how deep objects are open
FOLD: Final = 60  # what the elements of a fold count against the bound

Piece = str  # a line; or, as SafeString, a block of its own


class JsonTree(NamedTuple):
    """A JSON value for people, and what to say about it."""

    html: SafeString | str = ""
    note: str = ""
    is_cut: bool = False
    hides: bool = False  # values are masked


def of_value(
    value: Any,
    sensitive: Iterable[str],
    *,
    secrets: Collection[str] = (),
    reveal: bool = False,
) -> JsonTree:
    """The value with its secrets masked, unless they are revealed: what is kept under
    ``sensitive`` keys, and ``secrets`` under any key."""
    if isinstance(value, Unreadable):
        return JsonTree(note=gettext("Python cannot read this value: see it with SQL."))
    try:
        masking = None if reveal else Masking(sensitive, secrets)
        writer = _Writer(masking)
        pieces = list(writer.pieces(value))
        # Of what is not written nobody knows.
        hides = masking is not None and (masking.has_masked or writer.is_full)
    except RecursionError:
        return JsonTree(note=gettext("Nested too deeply to be shown."))
    return _tree(pieces, writer)._replace(hides=hides)


def of_shape(value: Any, secrets: Collection[str] = ()) -> JsonTree:
    """Only keys and types, for users who may not see the values; ``secrets`` are masked
    also in keys."""
    hidden = gettext("Values are hidden: you may see only keys and types.")
    if isinstance(value, Unreadable):
        return JsonTree(note=hidden)
    try:
        writer = _Writer()
        pieces = list(writer.pieces(_shape(value, secrets)))
    except RecursionError:
        return JsonTree(type_of(value), hidden)
    tree = _tree(pieces, writer)
    return JsonTree(tree.html, f"{hidden} {tree.note}".strip())


def type_of(value: Any) -> str:
    """The type of this value, in words."""
    if value is None:
        return gettext("nothing")
    if isinstance(value, bool):
        return gettext("true or false")
    if isinstance(value, Number):
        return gettext("number")
    if isinstance(value, str):
        return gettext("text")
    return gettext("empty")


class _Writer:
    """Writes lines and blocks until it has written enough."""

    def __init__(self, masking: Masking | None = None) -> None:
        self.left = LONGEST
        self._masking = masking  # of what is written, which may be the least of it

    @property
    def is_full(self) -> bool:
        return self.left <= 0

    def pieces(
        self,
        value: Any,
        before: str = "",
        after: str = "",
        indent: str = "",
        depth: int = 0,
    ) -> Iterator[Piece]:
        """A value between what stands before and after it on its lines."""
        if isinstance(value, dict | list) and value:
            level = (before, after, indent, depth)
            yield from (self._folded if depth > OPEN_LEVELS else self._open)(
                value, *level
            )
        elif type(value) is str:
            yield from self._text(value, before, after)
        else:
            if self._masking is not None:
                value = self._masking.scalar(value, LONGEST)
            if isinstance(value, Number | _Word):
                yield from self._folding(str(value), before, after)
            else:
                yield self._line(f"{before}{scalar(value)}{after}")

    def _open(
        self, value: Any, before: str, after: str, indent: str, depth: int
    ) -> Iterator[Piece]:
        first, last = ("{", "}") if isinstance(value, dict) else ("[", "]")
        yield self._line(f"{before}{first}")
        yield from self._items(value, indent + STEP, depth + 1)
        yield self._line(f"{indent}{last}{after}")

    def _folded(
        self, value: Any, before: str, after: str, indent: str, depth: int
    ) -> Iterator[Piece]:
        first, last = ("{", "}") if isinstance(value, dict) else ("[", "]")
        self.left -= FOLD
        head = self._line(f"{before}{first} {_count(value)}")
        inside = [*self._items(value, indent + STEP, depth + 1)]
        inside.append(self._line(f"{indent}{last}{after}"))
        yield _fold(head, _joined(inside))

    def _items(self, value: Any, indent: str, depth: int) -> Iterator[Piece]:
        pairs = self._keyed(value)
        for number, (key, item) in enumerate(pairs, 1):
            if self.is_full:
                yield f"{indent}…"
                return
            comma = "," if number < len(value) else ""
            yield from self.pieces(item, f"{indent}{key}", comma, indent, depth)

    def _keyed(self, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, dict):
            masking = self._masking
            items = value.items() if masking is None else masking.items(value)
            for key, item in items:
                cut = key if len(key) <= LONGEST_TEXT else f"{key[:LONGEST_TEXT]}…"
                yield f"{scalar(cut)}: ", item
        else:
            for item in value:
                yield "", item

    def _text(self, value: str, before: str, after: str) -> Iterator[Piece]:
        hidden = 0  # characters that are not written anyway
        if self._masking is not None:
            shown = self._masking.scalar(value, LONGEST)
            hidden = max(0, len(value) - LONGEST)
            value = shown
        yield from self._folding(scalar(value), before, after, hidden)

    def _folding(
        self, text: str, before: str, after: str, hidden: int = 0
    ) -> Iterator[Piece]:
        if len(text) <= LONGEST_TEXT:
            yield self._line(f"{before}{text}{after}")
            return
        yield self._line(f"{before}{text[:LONGEST_TEXT]}")
        remainder = text[LONGEST_TEXT:]
        label = gettext("… and %(count)s more characters")
        label %= {"count": numbers.number(len(remainder) + hidden)}
        self.left -= FOLD
        if hidden:
            remainder, after = f"{remainder[:-1]}…", ""
        yield _fold(label, self._line(f"{remainder}{after}"))
        if hidden:
            self.left = 0

    def _line(self, text: str) -> str:
        """Fit to be shown, and counted as the page has it; the last one is cut."""
        whole = visible(text)
        size = len(escape(whole))
        shown = whole
        if size > self.left and len(whole) > LONGEST_TEXT:
            shown = f"{whole[: max(self.left, 0) * len(whole) // size]}…"
        self.left -= size + 1
        return shown


class _Word(str):
    """In place of a value: its type."""

    __slots__ = ()


def _count(value: Any) -> str:
    if isinstance(value, dict):
        text = ngettext("%(count)s key", "%(count)s keys", len(value))
    else:
        text = ngettext("%(count)s item", "%(count)s items", len(value))
    return text % {"count": numbers.number(len(value))}


def _shape(value: Any, secrets: Collection[str]) -> Any:
    """The same objects with types for values; of a list its first item."""
    if isinstance(value, dict) and value:
        return {mask_text(k, secrets): _shape(v, secrets) for k, v in value.items()}
    if isinstance(value, list) and value:
        inner = _shape(value[0], secrets)
        if isinstance(inner, _Word):
            return _Word(f"[{numbers.number(len(value))} × {inner}]")
        return [_Word(f"{numbers.number(len(value))} ×"), inner]
    return _Word(type_of(value))


def _tree(pieces: list[Piece], writer: _Writer) -> JsonTree:
    note = ""
    if writer.is_full:
        note = gettext("Only the first %(shown)s characters are shown.")
        note %= {"shown": numbers.number(LONGEST)}
    return JsonTree(_joined(pieces), note, writer.is_full)


def _fold(head: str, inside: str) -> SafeString:
    return format_html("<details><summary>{}</summary>{}</details>", head, inside)


def _joined(pieces: Iterable[Piece]) -> SafeString:
    """Lines in a row are one text."""
    runs = groupby(pieces, key=lambda piece: isinstance(piece, SafeString))
    return format_html_join(
        "",
        "{}",
        (
            (format_html_join("", "{}", ((one,) for one in run)),)
            if is_block
            else ("\n".join(run),)
            for is_block, run in runs
        ),
    )
