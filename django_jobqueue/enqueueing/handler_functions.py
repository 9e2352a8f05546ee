"""Which functions can be handlers, and what to write instead of those that cannot."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any, Final, get_origin

SELF: Final = ("self", "cls")
BUILT_IN: Final = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)


def where(function: object) -> str:
    """The function's place, for messages: ``shop.jobs.send_receipt``."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    return f"{module}.{name}" if module and name else repr(function)


def handler_problem(function: object) -> str | None:
    """Why no job can call this, and what to write instead; None if jobs can.

    Each of these would be accepted by Python and fail in every attempt.
    """
    if inspect.isclass(function) or get_origin(function) is not None:
        return (
            "a class cannot be a handler: a job would make an object, and its work "
            "would not be done. Write a function that makes the object and calls it."
        )
    if isinstance(function, staticmethod | classmethod):
        return (
            f"a {type(function).__name__} cannot be a handler: a job has no class to "
            "call it on. Write a function of the module."
        )
    if isinstance(function, functools.partial | functools.partialmethod):
        return (
            "the arguments of a partial are in no job's data. Write a function that "
            "passes them on: def …"
        )
    if inspect.ismethod(function) or _takes_self(function):
        return (
            "a method cannot be a handler: a worker does not have its object. Write a "
            "function of the module that takes a key and gets the object by it."
        )
    if isinstance(function, BUILT_IN):
        return "what is built in cannot be a handler. Write a function that calls it."
    if getattr(function, "__name__", "") == "<lambda>":
        return "a lambda has no name to find it by. Write a function: def …"
    if first := _self_of_function(function):
        return (
            f"its first parameter is {first!r}, which no job gives to a function. For "
            "the job itself name it 'context' and say takes_context=True, or call "
            "current_job()."
        )
    return _generator_problem(function)


def _generator_problem(function: object) -> str | None:
    generates = inspect.isgeneratorfunction(function)
    if not generates and not inspect.isasyncgenfunction(function):
        return None
    kind = "a generator" if generates else "an async generator"
    return (
        f"{kind} function cannot be a handler: calling it makes {kind}, and none of "
        "its code runs. Do the work in a loop, without yield; a job for each step is "
        "an enqueue_many."
    )


def _takes_self(function: object) -> bool:
    """Whether this is a function in the body of a class, to be called on objects."""
    outer, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    if not outer or outer.endswith("<locals>") or not inspect.isfunction(function):
        return False
    return _first(function) in SELF


def _self_of_function(function: object) -> str | None:
    """The first parameter of a plain function, if it is what methods begin with."""
    found = _first(function) if inspect.isfunction(function) else None
    return found if found in SELF else None


def _first(function: Any) -> str | None:
    return next(iter(inspect.signature(function).parameters), None)
