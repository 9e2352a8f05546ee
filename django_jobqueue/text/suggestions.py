"""Guesses what somebody meant who wrote another name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

MOST: Final = 3
NO_WORDS: Final[Mapping[str, str]] = {}


def no_argument(
    callee: str, name: str, known: Iterable[str], words: Mapping[str, str] = NO_WORDS
) -> str:
    """The message for an argument that there is not: with what ``words`` have for it,
    else the most similar one, else all of them."""
    names = list(known)
    meant = f" {words[name]}." if name in words else did_you_mean(name, names)
    hint = meant or f" Its arguments are {', '.join(names)}."
    return f"{callee} has no argument {name!r}.{hint}"


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """The known name that is most like this value, as a sentence that follows another
    one; nothing if none is."""
    near = get_close_matches(str(value), list(known), 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Names most like this one, the nearest first, out of names with dots: those that
    end with it, then those that are like it as a whole, then those whose end is."""
    names = sorted(known)
    found = [full for full in names if full.endswith(f".{name}")]
    found += get_close_matches(name, names, MOST)
    if "." not in name:
        ends: dict[str, list[str]] = {}
        for full in names:
            ends.setdefault(full.rpartition(".")[2], []).append(full)
        for end in get_close_matches(name, ends, MOST):
            found += ends[end]
    return list(dict.fromkeys(found))[:MOST]
