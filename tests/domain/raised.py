"""Exceptions that were really raised, so that they have a traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """The same exception, raised in this function and caught."""
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def caught(call: Callable[[], Any]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def call_in(path: str, module: str, call: Callable[[], Any]) -> Any:
    """Make a call from ``place()``, a function of a file with this path."""
    names: dict[str, Any] = {"__name__": module}
    exec(compile("def place(call):\n    return call()\n", path, "exec"), names)
    return names["place"](call)
