"""Waiting for an event, with a bound that only a hang exceeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def eventually(
    condition: Callable[[], Any],
    *,
    within: float = 20.0,
    what: str | Callable[[], Any] = "",
) -> Any:
    """Wait until the condition holds, and return what it returned."""
    deadline, pause = time.monotonic() + within, 0.0005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            seen = what() if callable(what) else what
            raise AssertionError(f"not within {within} s: {seen or condition}")
        time.sleep(pause)
        pause = min(2 * pause, 0.005)
