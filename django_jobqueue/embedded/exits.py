"""What happens to embedded workers when their process forks, or ends."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Final, Protocol


class Stoppable(Protocol):
    """Something that runs in this process."""

    def ask_to_stop(self) -> None:
        """Begin to end; do not wait for it."""
        ...

    def stop(self) -> None:
        """End, and wait for it."""
        ...

    def forget(self) -> None:
        """This is a child of the process in which it runs: nothing of it is here."""
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
# that an async handler that ends meanwhile could not use the database any more. These
# run before, in the reverse order of their registration; concurrent.futures uses the
# same.
getattr(threading, "_register_atexit", atexit.register)(_stop_all)
