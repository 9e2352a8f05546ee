"""Stops embedded workers when their process ends, and forgets them when it forks."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Final, Protocol


class Stoppable(Protocol):
    """A worker of this process."""

    def ask_to_stop(self) -> None:
        """Begin to stop; do not wait for the end."""
        ...

    def stop(self) -> None:
        """Stop, and wait for the end."""
        ...

    def forget(self) -> None:
        """Forget that it runs: it does so in the parent of this process."""
        ...


_running: Final[list[Stoppable]] = []


def watch(one: Stoppable) -> None:
    """Look after this one from now on."""
    _running.append(one)


def unwatch(one: Stoppable) -> None:
    """It has ended."""
    if one in _running:
        _running.remove(one)


def _stop_all() -> None:
    for one in list(_running):
        one.ask_to_stop()
    for one in list(_running):
        one.stop()


def _forget_all() -> None:
    for one in _running:
        one.forget()
    _running.clear()


os.register_at_fork(after_in_child=_forget_all)

# Functions of atexit run when the thread pools of concurrent.futures refuse to work, so
# an async handler that ends meanwhile could no longer use the database. Threading's own
# run before that, in the reverse order of their registration; concurrent.futures uses
# them, too.
getattr(threading, "_register_atexit", atexit.register)(_stop_all)
