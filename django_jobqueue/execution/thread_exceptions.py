"""Raises an exception in another thread, as CPython lets one do."""

from __future__ import annotations

import ctypes

_set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc


class _Superseded(BaseException):
    """Takes the place of an exception that was not raised in time."""


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise this in a thread, at its next step in Python code."""
    _set_exception(ctypes.c_ulong(thread), ctypes.py_object(error))


def drop_pending(thread: int) -> None:
    """Drop what was to be raised in this thread, the caller's, and was not yet.

    None in its place would drop it, too, but before 3.13 CPython would go on looking
    for it: calls of functions take 1.5 times as long (3.12), and a profiler hangs
    (3.11), until another exception is raised like this one.
    """
    try:
        raise_in(thread, _Superseded)
        for _ in range(1_000):  # it is raised here, or in a finalizer, which drops it
            pass
    except _Superseded:
        pass
