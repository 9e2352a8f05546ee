"""Log handlers that write to the terminal, which would write over the screen."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def no_log_on_terminal() -> Iterator[None]:
    """Let those handlers write nothing until the block ends; files are written."""
    handlers = [
        handler
        for handler in _handlers()
        if not handler.stream.closed and handler.stream.isatty()
    ]
    with open(os.devnull, "w") as nowhere:
        streams = [handler.setStream(nowhere) for handler in handlers]
        try:
            yield
        finally:
            for handler, stream in zip(handlers, streams, strict=True):
                handler.setStream(stream)


def _handlers() -> list[logging.StreamHandler[Any]]:
    loggers = [logging.root, *logging.Logger.manager.loggerDict.values()]
    handlers = {
        handler
        for logger in loggers
        if isinstance(logger, logging.Logger)
        for handler in logger.handlers
    }
    return [one for one in handlers if type(one) is logging.StreamHandler]
