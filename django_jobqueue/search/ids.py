"""Finds ids in a search: whole ones, their beginnings, and the short form of lists."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from uuid import UUID

SHORTEST: Final = 6  # hexadecimal digits
DIGITS: Final = 32

SEPARATOR: Final = "…"  # of the short ids in lists

_HEX = re.compile(r"[0-9a-f]+")
_DASHES = re.compile(r"[-{}\s]")


class IdSearch(NamedTuple):
    """The ids from ``first`` to ``last`` that end so; one id if they are the same."""

    first: UUID
    last: UUID
    ending: str = ""

    @property
    def is_exact(self) -> bool:
        """True if a whole id was given."""
        return self.first == self.last


def id_search(term: str) -> IdSearch | None:
    """The ids that this search term means; None if it is no id."""
    text = _DASHES.sub("", term.strip().lower().removeprefix("job_"))
    text, dots, ending = text.partition(SEPARATOR)
    if not _HEX.fullmatch(text) or not SHORTEST <= len(text) <= DIGITS:
        return None
    if dots and not _HEX.fullmatch(ending):
        return None
    first, last = UUID(text.ljust(DIGITS, "0")), UUID(text.ljust(DIGITS, "f"))
    return IdSearch(first, last, ending)
