"""Calls servers and code that may take forever, and waits for a bounded time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from django.db import connections

from django_jobqueue.contrib.alerts.http_post import NotSent, reason_of
from django_jobqueue.processes.forking import end_if_forked, guard_this_thread

WITHIN: Final = 20.0  # seconds; the holder's lease lasts twice as long


class BoundedCalls:
    """Each in a thread. A server that sends a byte now and then passes every timeout of
    a socket, and nothing else bounds a callable of the project.

    A call that does not come back is left to itself; of each name there is one.
    """

    def __init__(self) -> None:
        self._threads: dict[str, threading.Thread] = {}

    def call(self, name: str, function: Callable[[], object]) -> None:
        """Call this, and raise the Exception that it raises. Raises NotSent if it takes
        too long, if the last one of this name still does, or for what is no Exception,
        such as a SystemExit: that would end the round of all channels."""
        last = self._threads.get(name)
        if last is not None and last.is_alive():
            raise NotSent("the previous call has not ended yet")
        errors: list[BaseException] = []

        def run() -> None:
            guard_this_thread()
            try:
                function()
            except BaseException as error:
                errors.append(error)
            finally:
                end_if_forked()
                connections.close_all()  # a callable may have used them

        thread = threading.Thread(target=run, name=f"alerts-{name}", daemon=True)
        self._threads[name] = thread
        thread.start()
        thread.join(WITHIN)
        if thread.is_alive():
            raise NotSent(f"it takes longer than {WITHIN:g} s")
        for error in errors:
            if isinstance(error, Exception):
                raise error
            raise NotSent(reason_of(error)) from error
