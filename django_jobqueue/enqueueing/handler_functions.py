"""Checks whether a function can be a handler, and says what to write instead."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, Final, get_origin

from django.core.exceptions import ImproperlyConfigured

SELF: Final = ("self", "cls")
BUILT_IN: Final = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)


def where(function: object) -> str:
    """The path of a function, for messages: ``shop.jobs.send_receipt``."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    return f"{module}.{name}" if module and name else repr(function)


def handler_problem(function: object) -> str | None:
    """Why no job can call this, and what to write instead; None if jobs can.

    Python would accept each of these, and every attempt would fail.
    """
    if inspect.isclass(function) or get_origin(function) is not None:
        return (
            "a class cannot be a handler: a job would only create an object. Write a "
            "function that creates the object and calls it."
        )
    if isinstance(function, staticmethod | classmethod):
        return (
            f"a {type(function).__name__} cannot be a handler: a job has no class to "
            "call it on. Write a function of the module."
        )
    if isinstance(function, functools.partial | functools.partialmethod):
        return (
            "the arguments of a partial are not in the data of a job. Write a function "
            "that passes them on: def …"
        )
    if inspect.ismethod(function) or _takes_self(function):
        return (
            "a method cannot be a handler: a worker does not have its object. Write a "
            "function of the module that takes a key and gets the object by it."
        )
    if isinstance(function, BUILT_IN):
        return "a built-in cannot be a handler. Write a function that calls it."
    if getattr(function, "__name__", "") == "<lambda>":
        return (
            "a lambda has no name by which a worker finds it. Write a function: def …"
        )
    if first := _self_of_function(function):
        return (
            f"its first parameter is {first!r}, for which jobs have no value. For the "
            "context of the job name it 'context' and give takes_context=True, or call "
            "current_job()."
        )
    return _generator_problem(function)


def _generator_problem(function: object) -> str | None:
    generates = inspect.isgeneratorfunction(function)
    if not generates and not inspect.isasyncgenfunction(function):
        return None
    generator = "a generator" if generates else "an async generator"
    return (
        f"{generator} function cannot be a handler: a call only creates {generator}, "
        "and runs none of its code. Do the work in a loop, without yield; for a job "
        "each use enqueue_many."
    )


def _takes_self(function: object) -> bool:
    """True if this is a method in the body of a class."""
    outer, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    if not outer or outer.endswith("<locals>") or not inspect.isfunction(function):
        return False
    return _first_parameter(function) in SELF


def _self_of_function(function: object) -> str | None:
    """The first parameter of a plain function, if it is ``self`` or ``cls``."""
    first = _first_parameter(function) if inspect.isfunction(function) else None
    return first if first in SELF else None


def _first_parameter(function: Any) -> str | None:
    return next(iter(inspect.signature(function).parameters), None)


def default_name(function: Callable[..., Any]) -> str:
    """``shop.jobs.send_receipt`` is the job type ``shop.send_receipt``.

    It depends on no setting: a web server and a worker with different MODULES must
    use the same name for a handler. Raises ImproperlyConfigured for a function that a
    worker cannot import.
    """
    if "<locals>" in function.__qualname__ or "<lambda>" in function.__qualname__:
        raise ImproperlyConfigured(
            f"@job on {function.__module__}.{function.__qualname__}: a handler must be "
            "a function of a module, so that workers can import it."
        )
    return f"{function.__module__.removesuffix('.jobs')}.{function.__qualname__}"
