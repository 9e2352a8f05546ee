"""Exceptions that a test raises in a handler and the queue must not catch."""

from __future__ import annotations

import asyncio
from typing import Final

OF_HANDLERS: Final = (Exception, SystemExit, GeneratorExit, asyncio.CancelledError)


def let_through(error: BaseException | None) -> None:
    """Raise what only stops a worker that is no test, such as KeyboardInterrupt, or
    what ``pytest.fail`` raises."""
    if error is not None and not isinstance(error, OF_HANDLERS):
        raise error
