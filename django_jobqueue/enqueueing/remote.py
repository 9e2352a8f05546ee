"""``remote_job`` declares a job type whose jobs other programs do."""

from __future__ import annotations

import sys
from typing import Any, Final, Unpack

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain import key_limits, unique_keys
from django_jobqueue.domain.arguments import Parameters
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.policy import name_problem
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.enqueueing.options import HandlerOptions, follower_problem

# They say how a function is called, and there is none.
OF_FUNCTIONS: Final = ("takes_context", "atomic", "middleware")


def remote_job(name: str, **options: Unpack[HandlerOptions]) -> Handler[..., Any]:
    """Declare a job type that remote workers do, over the HTTP API.

    ``remote_job("shop.resize").enqueue(image=7)`` enqueues as a handler of ``@job``
    does. The options are those of ``@job``, but for those that need a function. Raises
    ImproperlyConfigured, also if another module has declared that name.
    """
    where = f"remote_job({name!r})"
    module = sys._getframe(1).f_globals["__name__"]  # who declares it
    declaration = remote_declaration(where, name, dict(options), module=module)
    registry.add(declaration)
    handler: Handler[..., Any] = Handler(declaration.function, declaration)
    registry.send_as(name, handler)
    return handler


def remote_declaration(
    where: str,
    name: str,
    options: dict[str, Any],
    *,
    module: str = "",
    description: str = "",
) -> Declaration:
    """The declaration of a job type that remote workers do.

    ``where`` begins the messages of the errors. Raises ImproperlyConfigured.
    """
    for option in OF_FUNCTIONS:
        if option in options:
            raise ImproperlyConfigured(f"{where}: {option} needs a handler, use @job.")
    if problem := name_problem(name):
        raise ImproperlyConfigured(f"{where}: name {problem}")
    policy = policy_of(where, options)

    def not_here(**data: Any) -> None:
        raise NotImplementedError(f"Jobs of {name} are done by remote workers only.")

    not_here.__name__ = not_here.__qualname__ = name
    not_here.__module__ = module
    not_here.__doc__ = description
    declaration = Declaration(
        name=name,
        function=not_here,
        policy=policy,
        parameters=Parameters.of(not_here, takes_context=False),
        is_remote=True,
    )
    unique_keys.check(declaration, where)
    key_limits.check(declaration, where)
    if problem := follower_problem(name, policy):
        raise ImproperlyConfigured(f"{where}: {problem}")
    return declaration
