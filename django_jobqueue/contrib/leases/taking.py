"""Takes leases: at once, or with a wait, in sync and in async code.

Who waits tries again when it is notified that the lease is free, when it would lapse,
and every second where nothing is heard, as behind a pooler.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Final, TypeGuard, TypeVar

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.asyncio import async_unsafe

from django_jobqueue.contrib.leases.attempts import (
    Attempts,
    DatabaseAttempts,
    MemoryAttempts,
)
from django_jobqueue.contrib.leases.held_lease import HeldLease, is_in_memory
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.lease_names import name_problem
from django_jobqueue.exceptions import InvalidArguments

T = TypeVar("T")

APP: Final = "django_jobqueue.contrib.leases"
SHORTEST: Final = 2.0  # seconds, of a lease
LONGEST: Final = 86_400.0
TTL: Final = 15.0


@sync_only("alease")
def lease(
    name: str, *, ttl: float = TTL, wait: float | None = None
) -> AbstractContextManager[HeldLease]:
    """Hold the lease of this name in a ``with`` block, as the only process, thread and
    task that does. Its value is a ``HeldLease``.

    ``ttl`` is in seconds, from 2 to 86,400: others may have the lease this long after
    its holder died or lost the database. A thread renews it after every third of that
    time, on its own connection. ``wait`` is the longest wait in seconds until the lease
    is free; None waits forever.

    Raises LeaseUnavailable if it is not free within that time, InvalidArguments,
    StoreUnavailable if the database cannot be used when the wait is over, and
    RuntimeError if this thread or task already holds it: it would wait for itself.
    """
    _refuse_in_async_code()
    check_lease(name, ttl, wait)
    return _leased(name, ttl, wait)


@sync_only()
def try_lease(name: str, *, ttl: float = TTL) -> HeldLease | None:
    """Take the lease of this name if it is free, without waiting; None if it is not.

    The lease is held until ``release()``, or the end of a ``with`` block, or of the
    process. ``ttl`` is as for ``lease``. Raises InvalidArguments, and StoreUnavailable
    if the database cannot be used.
    """
    _refuse_in_async_code()
    check_lease(name, ttl, 0)
    attempts = _attempts(is_in_memory(), name, ttl, 0)
    try:
        return attempts.attempt()
    except BaseException:
        attempts.give_up()
        raise
    finally:
        attempts.close()


def alease(
    name: str, *, ttl: float = TTL, wait: float | None = None
) -> AbstractAsyncContextManager[HeldLease]:
    """``lease`` for ``async with``; many can wait in one event loop.

    ``check()`` of the lease can be called in async code. ``atomic()`` cannot, like
    Django's own transactions.
    """
    check_lease(name, ttl, wait)
    return _aleased(name, ttl, wait)


@async_unsafe
def _refuse_in_async_code() -> None:
    """Raises SynchronousOnlyOperation where it would hold up an event loop."""


def _attempts(in_memory: bool, name: str, ttl: float, wait: float | None) -> Attempts:
    return (MemoryAttempts if in_memory else DatabaseAttempts)(name, ttl, wait)


@contextmanager
def _leased(name: str, ttl: float, wait: float | None) -> Iterator[HeldLease]:
    attempts = _attempts(is_in_memory(), name, ttl, wait)
    try:
        held = attempts.attempt()
        if held is None:
            held = _wait(attempts)
    except BaseException:
        attempts.give_up()
        raise
    finally:
        attempts.close()
    with held:
        yield held


def _wait(attempts: Attempts) -> HeldLease:
    attempts.check_wait()
    woken = threading.Event()
    with attempts.listening(woken.set):
        while True:
            woken.wait(attempts.seconds_until_next())
            woken.clear()
            if (held := attempts.attempt()) is not None:
                return held
            attempts.check_wait()


@asynccontextmanager
async def _aleased(
    name: str, ttl: float, wait: float | None
) -> AsyncIterator[HeldLease]:
    attempts = _attempts(await sync_to_async(is_in_memory)(), name, ttl, wait)
    try:
        held = await _in_thread(attempts.attempt)
        if held is None:
            held = await _await(attempts)
    except BaseException:  # an attempt may go on in its thread
        await asyncio.shield(_in_thread(attempts.give_up))
        raise
    finally:
        attempts.close()
    try:
        yield held
    finally:
        await asyncio.shield(_in_thread(held.release))


async def _await(attempts: Attempts) -> HeldLease:
    attempts.check_wait()
    woken, loop = asyncio.Event(), asyncio.get_running_loop()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(woken.set)

    with attempts.listening(wake):
        while True:
            await _wait_for(woken, await _in_thread(attempts.seconds_until_next))
            woken.clear()
            if (held := await _in_thread(attempts.attempt)) is not None:
                return held
            attempts.check_wait()


async def _wait_for(woken: asyncio.Event, seconds: float) -> None:
    """Wait until it is set, but no longer than this."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()


async def _in_thread(function: Callable[[], T]) -> T:
    """Call this in a thread of its own: it uses no connection of Django's."""
    return await sync_to_async(function, thread_sensitive=False)()


def check_name(name: object) -> None:
    """Raises InvalidArguments for what is no name of a lease."""
    if problem := name_problem(name):
        raise InvalidArguments(f"The name of a lease {problem}")


def check_lease(name: object, ttl: object, wait: object) -> None:
    """Raises InvalidArguments for what no lease can have, and ImproperlyConfigured."""
    if not apps.is_installed(APP):
        raise ImproperlyConfigured(f"Leases need {APP!r} in INSTALLED_APPS.")
    check_name(name)
    if not _is_number(ttl) or not SHORTEST <= ttl <= LONGEST:
        raise InvalidArguments(
            f"ttl must be a number of seconds from {SHORTEST:g} to {LONGEST:,.0f}, "
            f"not {ttl!r}."
        )
    if wait is not None and (not _is_number(wait) or wait < 0):
        raise InvalidArguments(
            "wait must be a number of seconds that is not negative, or None to wait "
            f"forever, not {wait!r}."
        )


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value == value  # so is no NaN; isnan() knows no great whole numbers
