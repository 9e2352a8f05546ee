"""Guesses what somebody meant who wrote another name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """The known name that is most like this value, as a sentence that follows another
    one; nothing if none is."""
    near = get_close_matches(str(value), list(known), 1)
    return f" Did you mean {near[0]!r}?" if near else ""
