"""Refuses sync functions in async code, and names the async way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

from django.core.exceptions import SynchronousOnlyOperation

P = ParamSpec("P")
R = TypeVar("R")


def sync_only(twin: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of a function that async code cannot call. The error says to call
    its async ``twin``, or ``sync_to_async`` where there is none."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except SynchronousOnlyOperation as error:
                explain(error, function.__name__, twin)

        return call

    return decorate


def explain(
    error: SynchronousOnlyOperation, name: str, twin: str | None = None
) -> NoReturn:
    """Raise this error of the function ``name`` again, with the async way.

    An error that a handler raised in an event loop of its own stays as it is.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise error from None
    instead = (
        f"await sync_to_async({name})(…), with sync_to_async of asgiref.sync"
        if twin is None
        else f"await {twin}(…), which takes the same arguments"
    )
    raise SynchronousOnlyOperation(
        f"{name}() cannot be called in async code, such as an async view. Write "
        f"{instead}."
    ) from error
