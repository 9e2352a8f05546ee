"""Calls the callbacks that wait for the commit of a test's transaction, which never
comes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.db import connections

logger = logging.getLogger("django_jobqueue.testing")


def run_commits() -> None:
    """Call what ``on_commit`` was given, in open transactions, until nothing waits.

    Each is called once, and stays in Django's list as one that does nothing, so that
    whoever counts on positions there, as ``captureOnCommitCallbacks`` does, is right.
    """
    while callback := _next():
        function, robust = callback
        if not robust:
            function()
            continue
        try:
            function()
        except Exception:
            logger.exception("A robust on_commit callback failed")


def waiting() -> int:
    """The number of callbacks that wait."""
    return sum(
        function is not _done
        for connection in connections.all(initialized_only=True)
        for function in [callback[1] for callback in connection.run_on_commit]
    )


def _next() -> tuple[Callable[[], Any], bool] | None:
    """The callback that waits longest, and whether its errors are only logged."""
    for connection in connections.all(initialized_only=True):
        callbacks: Any = connection.run_on_commit
        for index, (savepoints, function, robust) in enumerate(callbacks):
            if function is not _done:
                callbacks[index] = (savepoints, _done, robust)
                return function, robust
    return None


def _done() -> None:
    """It was called already."""
