"""Guesses what somebody meant who wrote another name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from heapq import nlargest
from os.path import commonprefix
from typing import Final

MOST: Final = 3
MOST_COMPARED: Final = 200  # names: difflib takes up to 0.5 ms for one
LIKE_END: Final = 0.66  # of difflib: "sya" and "say" have 0.67, "sendreceipt" and
# "send_invoice" have 0.61
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
    end with it, then those that are like it as a whole, then those whose end is.

    Names of one app share their beginning, so their ends must be alike, too.
    """
    names = sorted(known)
    nearest = [full for full in names if full.endswith(f".{name}")]
    alike = get_close_matches(name, _likeliest(name, names), MOST)
    nearest += [full for full in alike if _have_like_ends(name, full)]
    if "." not in name:
        ends: dict[str, list[str]] = {}
        for full in names:
            ends.setdefault(full.rpartition(".")[2], []).append(full)
        for end in get_close_matches(name, _likeliest(name, [*ends]), MOST):
            nearest += ends[end]
    return list(dict.fromkeys(nearest))[:MOST]


def _likeliest(name: str, names: Sequence[str]) -> Sequence[str]:
    """All of them; of very many those that share most letters with this one from both
    sides, as names do that differ by a slip."""
    if len(names) <= MOST_COMPARED:
        return names
    return nlargest(MOST_COMPARED, names, key=partial(_shared_letters, name))


def _shared_letters(one: str, other: str) -> int:
    ends = one[::-1], other[::-1]
    return len(commonprefix((one, other))) + len(commonprefix(ends))


def _have_like_ends(name: str, full: str) -> bool:
    """True if the parts after the last dots are alike, or one is the start of the
    other's."""
    meant, end = name.rpartition(".")[2], full.rpartition(".")[2]
    return end.startswith(meant) or bool(get_close_matches(meant, [end], 1, LIKE_END))
