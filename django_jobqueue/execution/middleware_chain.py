"""Builds the middleware around a handler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from asgiref.sync import async_to_sync, sync_to_async
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed
from django.utils.module_loading import import_string

from django_jobqueue.conf import conf
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.processes.forking import end_if_forked
from django_jobqueue.store.work_rows import JOB_TYPE

GetResult = Callable[[Context], Any]  # a coroutine function, if it is async
Named = str | Callable[..., Any]  # a dotted path, or the factory itself
# What restores that which a job type captures.
RESTORES: Final = {
    "language": "django_jobqueue.middleware.localize",
    "time_zone": "django_jobqueue.middleware.localize",
    "tenant": "django_jobqueue.middleware.in_tenant",
}


def chain_of(declaration: Declaration) -> GetResult | None:
    """Return the function to call with the context, or None to call the handler itself.

    Raises ImproperlyConfigured, and ImportError, for invalid middleware.
    """
    named = middleware_of(declaration)
    return build(declaration, named) if named else None


def middleware_of(declaration: Declaration) -> list[Named]:
    """The middleware of this handler, the outermost first."""
    if declaration.name == JOB_TYPE:  # ours; it knows nothing of the project's
        return []
    named: list[Named] = [*conf.middleware, *declaration.policy.middleware]
    restoring = dict.fromkeys(RESTORES[name] for name in declaration.policy.captured)
    return [*(one for one in restoring if one not in named), *named]


def build(declaration: Declaration, named: Sequence[Named]) -> GetResult | None:
    """Put these around the handler; None if none of them is used."""
    handler = call = _innermost(declaration)
    is_async = declaration.is_async
    for one in reversed(named):
        factory = load(one)
        wants_async = _runs_async(factory, inside=is_async)
        try:
            made = factory(_adapted(call, is_async, wants_async))
        except MiddlewareNotUsed:
            continue
        if not callable(made):
            raise ImproperlyConfigured(
                f"The middleware factory {one!r} must return a function of the "
                f"context; it returned {made!r}."
            )
        call, is_async = made, wants_async
    if call is handler:
        return None
    return _adapted(call, is_async, declaration.is_async)


def load(named: Named) -> Callable[[GetResult], Any]:
    """The factory. Raises ImproperlyConfigured, and ImportError."""
    factory = import_string(named) if isinstance(named, str) else named
    if not callable(factory):
        raise ImproperlyConfigured(f"The middleware {named!r} is not a factory.")
    if not (_is_sync_capable(factory) or is_async_capable(factory)):
        raise ImproperlyConfigured(
            f"The middleware {named!r} must be capable of sync or of async calls."
        )
    return factory


def is_async_capable(factory: Any) -> bool:
    """True if it declares that it can wrap async handlers as they are."""
    return bool(getattr(factory, "async_capable", False))


def _is_sync_capable(factory: Any) -> bool:
    return bool(getattr(factory, "sync_capable", True))


def _runs_async(factory: Any, *, inside: bool) -> bool:
    """True if this runs async around such a call: as Django decides."""
    if not inside and _is_sync_capable(factory):
        return False
    return is_async_capable(factory)


def _adapted(call: GetResult, is_async: bool, wanted: bool) -> GetResult:
    if is_async is wanted:
        return call
    return sync_to_async(call) if wanted else async_to_sync(call)


def _innermost(declaration: Declaration) -> GetResult:
    """The handler as a function of the context."""
    function, takes_context = declaration.function, declaration.policy.takes_context

    def call(context: Context) -> Any:
        first = (context,) if takes_context else ()
        end_if_forked()  # by middleware
        try:
            return function(*first, **context.data)
        finally:
            end_if_forked()

    async def acall(context: Context) -> Any:
        first = (context,) if takes_context else ()
        end_if_forked()
        try:
            return await function(*first, **context.data)
        finally:
            end_if_forked()

    return acall if declaration.is_async else call
