"""Job types by a part of their names: ``type:receipt`` is the only one that has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.utils.translation import gettext as _

from django_jobqueue.search.errors import SearchError
from django_jobqueue.search.selection import Term

MOST_NAMES: Final = 10  # of job types that may be meant


def types_named(text: str, names: Iterable[str]) -> list[str]:
    """The job type of this name, or those whose last part it is."""
    known, wanted = sorted(names), text.lower()
    if text in known:
        return [text]
    return [name for name in known if name.lower().endswith(f".{wanted}")]


def types_like(text: str, names: Iterable[str]) -> list[str]:
    """The same, or else those that have it in their names."""
    known = sorted(names)
    named = types_named(text, known)
    return named or [name for name in known if text.lower() in name.lower()]


def with_whole_type(term: Term, names: Iterable[str]) -> Term:
    """``type:receipt`` is the only job type whose name has that. A word alone is a job
    type only if it is its name, or the last part of it; else it is looked for in all
    texts, since "not" may be in one name and in many errors. Raises SearchError."""
    if term.field == "text":
        named = types_named(term.value, names)
        return Term("type", named[0]) if len(named) == 1 else term
    if term.field != "type":
        return term
    matches = types_like(term.value, names)
    if len(matches) == 1:
        return Term("type", matches[0])
    if not matches:
        return term
    error = _("More than one job type has “%(name)s” in its name: %(names)s.")
    shown = ", ".join(matches[:MOST_NAMES]) + (" …" if matches[MOST_NAMES:] else "")
    raise SearchError(error % {"name": term.value, "names": shown})
