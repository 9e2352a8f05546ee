"""Durations as people write them: ``500ms``, ``20s``, ``1h30m``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

# What can be written, for a help.
DURATIONS: Final = "30s, 10m, 2h, 7d, 1h30m, or a plain number of seconds"
TIMES: Final = f"a duration ({DURATIONS}) or an ISO time such as 2026-11-20T14:30"

_UNITS: Final = {
    "ms": 0.001,
    "s": 1,
    "m": 60,
    "h": 3_600,
    "d": 86_400,
    "w": 604_800,
}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhdw])")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def duration_of(text: str) -> timedelta | None:
    """The duration, or a plain number of seconds; None if it is none.

    What is too long for Python is its longest one.
    """
    text = text.strip().lower()
    try:
        if _SECONDS.fullmatch(text):
            return timedelta(seconds=float(text))
        if _DURATION.fullmatch(text):
            parts = _PART.findall(text)
            return timedelta(seconds=sum(float(n) * _UNITS[unit] for n, unit in parts))
    except OverflowError:
        return timedelta.max
    return None
