"""Which functions can be handlers: whatever would fail in every attempt is refused
where it is declared, with what to write instead."""

from __future__ import annotations

import functools
import types
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue import job
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler_functions import handler_problem
from tests.support.tables import differing, refusal


def send(order_id: int) -> None: ...


async def asend(order_id: int) -> None: ...


def steps(count: int) -> Iterator[int]:
    yield from range(count)


async def asteps(count: int) -> AsyncIterator[int]:
    yield count


class Sender:
    def __init__(self, order_id: int) -> None: ...

    def send(self) -> None: ...

    @classmethod
    def send_all(cls) -> None: ...

    @staticmethod
    def send_one(order_id: int) -> None: ...

    def __call__(self) -> None: ...


def bound(self: Any, order_id: int) -> None: ...  # as with bind=True of Celery


async def abound(self: Any, order_id: int) -> None: ...


def bound_to_class(cls: Any) -> None: ...


FUNCTION = "Write a function"
OF_SENDER = vars(Sender)
REFUSED: dict[str, tuple[Any, str, str]] = {
    "a class": (Sender, "a class cannot be a handler", FUNCTION),
    "a class of something": (list[int], "a class cannot be a handler", FUNCTION),
    "a generator": (steps, "a generator function cannot be", "without yield"),
    "an async generator": (asteps, "an async generator function", "without yield"),
    "a staticmethod": (OF_SENDER["send_one"], "a staticmethod cannot be a", FUNCTION),
    "a classmethod": (OF_SENDER["send_all"], "a classmethod cannot be a", FUNCTION),
    "a partial": (functools.partial(send, 7), "the arguments of a partial", FUNCTION),
    "a partial of a generator": (functools.partial(steps, 7), "of a partial", FUNCTION),
    "a method of a class": (Sender.send, "a method cannot be a handler", FUNCTION),
    "a bound method": (Sender(7).send, "a method cannot be a handler", FUNCTION),
    "a bound classmethod": (Sender.send_all, "a method cannot be", FUNCTION),
    "a lambda": (lambda order_id: None, "a lambda has no name", FUNCTION),
    "a function of self": (bound, "'self', for which jobs", "takes_context=True"),
    "an async one": (abound, "'self', for which jobs have no value", "current_job()"),
    "a function of cls": (bound_to_class, "'cls', for which jobs", "current_job()"),
    **{
        repr(builtin): (builtin, "a built-in cannot be a handler", FUNCTION)
        for builtin in (
            *(print, str.upper, "a".upper, dict.fromkeys, vars(dict)["fromkeys"]),
            *(object.__init__, (5).__add__),
        )
    },
}


def test_what_fails_in_every_attempt_is_refused_with_what_to_write() -> None:
    def fits(said: str, problem: tuple[str, str]) -> bool:
        return said.startswith("@job on ") and all(part in said for part in problem)

    for options in ({}, {"name": "words.refused"}):
        rows = [
            (ImproperlyConfigured, job(**options), function, problem)
            for function, *problem in REFUSED.values()
        ]
        assert differing(rows, refusal, fits) == []
    assert registry.get("words.refused") is None


@functools.cache
def remembered(order_id: int) -> None: ...


@functools.wraps(send)
def wrapped(*args: Any, **kwargs: Any) -> None:
    send(*args, **kwargs)


def test_what_can_be_called_by_name_can_be_a_handler_once() -> None:
    functions = (send, asend, remembered, wrapped, Sender.send_one)
    assert [handler_problem(function) for function in functions] == [None] * 5
    marked = markcoroutinefunction(lambda order_id: None)
    marked.__name__ = marked.__qualname__ = "later"
    try:
        handler = job(name="words.once")(send)
        assert refusal(ImproperlyConfigured, job(name="words.twice"), handler) == (
            f"@job on {__name__}.send: it is already the handler of 'words.once'. "
            "Declare it once; using(…) gives its jobs other options."
        )
        assert job(name="words.marked")(marked).declaration.is_async
    finally:
        registry.remove("words.once")
        registry.remove("words.marked")


def test_every_kind_of_callable_that_python_names_is_in_the_table() -> None:
    """A kind that Python has, and nobody thought of, would be missed here."""
    kinds = [
        kind
        for name in types.__all__
        if isinstance(kind := getattr(types, name), type) and "__call__" in vars(kind)
    ]
    allowed = (send, asend, remembered)
    for kind in kinds:
        given = [function for function, _, _ in REFUSED.values()]
        assert any(isinstance(one, kind) for one in (*given, *allowed)), kind
