"""``@job`` makes a handler of a function, and checks what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain import key_limits, unique_keys, weights
from django_jobqueue.domain.arguments import Parameters
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.policy import name_problem
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.schedule_rules import ScheduleRule
from django_jobqueue.enqueueing import handler_functions
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.enqueueing.handler_functions import default_name
from django_jobqueue.enqueueing.options import HandlerOptions, follower_problem
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.text.data_summary import keys_of

P = ParamSpec("P")
R = TypeVar("R")


@overload
def job(function: Callable[P, R], /) -> Handler[P, R]: ...
@overload
def job(
    *,
    takes_context: Literal[True],
    name: str = ...,
    schedule: ScheduleRule | None = ...,
    **options: Unpack[HandlerOptions],
) -> Callable[[Callable[Concatenate[Context, P], R]], Handler[P, R]]: ...
@overload
def job(
    *,
    takes_context: Literal[False] = ...,
    name: str = ...,
    schedule: ScheduleRule | None = ...,
    **options: Unpack[HandlerOptions],
) -> Callable[[Callable[P, R]], Handler[P, R]]: ...
def job(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    schedule: ScheduleRule | None = None,
    **options: Any,
) -> Any:
    """Declare the handler of a job type: ``@job``, or ``@job(option=…)``.

    :param name: of the job type; by default ``shop.send`` for ``shop.jobs.send``.
    :param takes_context: whether the handler's first argument is a ``Context``.
    :param schedule: the rule of a schedule that is named as the job type and calls the
        handler without arguments: ``every(minutes=5)``, ``cron("30 2 * * *")``.

    The other options are those of ``HandlerOptions``. Raises ImproperlyConfigured for
    options that are wrong or contradict each other.
    """
    declare = partial(_declare, name=name, schedule=schedule, options=options)
    return declare if function is None else declare(function)


def _declare(
    function: Callable[..., Any],
    *,
    name: str | None,
    schedule: ScheduleRule | None,
    options: dict[str, Any],
) -> Handler[..., Any]:
    where = _path_of_handler(function)
    policy = policy_of(where, options)
    chosen = default_name(function) if name is None else name
    if problem := name_problem(chosen):
        raise ImproperlyConfigured(f"@job on {where}: name {problem}")
    declaration = Declaration(
        name=chosen,
        function=function,
        policy=policy,
        parameters=Parameters.of(function, takes_context=policy.takes_context),
    )
    if policy.atomic and declaration.is_async:
        raise ImproperlyConfigured(
            f"@job on {where}: atomic=True needs a sync handler; Django has no async "
            "transactions."
        )
    unique_keys.check(declaration, where)
    key_limits.check(declaration, where)
    weights.check(declaration, where)
    _check_names("summary", keys_of(declaration.policy.summary), declaration, where)
    indexed = {path.partition(".")[0] for path in declaration.policy.indexed}
    _check_names("indexed", indexed, declaration, where)
    if problem := follower_problem(chosen, policy):
        raise ImproperlyConfigured(f"@job on {where}: {problem}")
    registry.add(declaration)
    handler: Handler[..., Any] = Handler(function, declaration)
    registry.send_as(chosen, handler)
    if schedule is not None:
        _schedule(handler, schedule, where)
    return handler


def _check_names(
    option: str, names: Iterable[str], declaration: Declaration, where: str
) -> None:
    """Raises ImproperlyConfigured for an option that names what the handler does not
    take."""
    parameters = declaration.parameters
    for name in sorted(names):
        if not parameters.open_ended and name not in parameters.names:
            raise ImproperlyConfigured(
                f"@job on {where}: {option} names {name!r}, which is no parameter."
                f"{parameters.near(name)}"
            )


def _schedule(handler: Handler[..., Any], rule: ScheduleRule, where: str) -> None:
    try:
        handler.at(rule)()
    except InvalidArguments as error:
        raise ImproperlyConfigured(
            f"@job on {where}: schedule= calls it without arguments. {error} Give them "
            f"to a schedule of its own: {handler.function.__name__}.at(…)(…)."
        ) from None


def _path_of_handler(function: object) -> str:
    """The path of a function that can be a handler, for messages. Raises
    ImproperlyConfigured."""
    where = handler_functions.where(function)
    if isinstance(function, Handler):
        raise ImproperlyConfigured(
            f"@job on {where}: it is already the handler of {function.name!r}. "
            "Declare it once; using(…) gives its jobs other options."
        )
    if problem := handler_functions.handler_problem(function):
        raise ImproperlyConfigured(f"@job on {where}: {problem}")
    if not callable(function) or not hasattr(function, "__qualname__"):
        raise ImproperlyConfigured(
            f"@job decorates a function, not {function!r}. Give options by name: "
            "@job(queue=…)."
        )
    return where
