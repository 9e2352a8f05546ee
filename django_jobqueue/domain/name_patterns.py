"""Patterns of names: ``*`` is any characters, everything else is itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

EVERY: Final = "*"


def fits(name: str | None, patterns: Sequence[str]) -> bool:
    """True if one of these patterns fits the name; without patterns every name fits.

    None stands for some name, and ``*`` for every name.
    """
    if name is None or not patterns:
        return True
    if name == EVERY:
        return EVERY in patterns
    return any(_compiled(pattern).fullmatch(name) for pattern in patterns)


def like_pattern(pattern: str) -> str:
    """The same pattern for LIKE in SQL."""
    escaped = re.sub(r"([\\%_])", r"\\\1", pattern)
    return escaped.replace(EVERY, "%")


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = map(re.escape, pattern.split(EVERY))
    return re.compile(".*".join(parts), re.DOTALL)
