"""``remote_job`` declares a job type whose jobs other programs do: they claim them, or
are sent them."""

from __future__ import annotations

import sys
from string import Formatter
from typing import Any, Final, Unpack

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.conf import conf
from django_jobqueue.domain import key_limits, unique_keys, weights
from django_jobqueue.domain.arguments import Parameters
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.policy import name_problem
from django_jobqueue.domain.registry import BY_ENDPOINTS, Declaration, registry
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.enqueueing.options import HandlerOptions, follower_problem
from django_jobqueue.rooms import offer

# They say how a function is called, and there is none.
OF_FUNCTIONS: Final = ("takes_context", "atomic", "middleware")
PATH: Final = "/v1/jobs/{type}/{id}"
TIMEOUT: Final = 300.0  # seconds, until an endpoint has called back
ROOM: Final = "django_jobqueue.contrib.remote"


def remote_job(
    name: str,
    *,
    endpoint: str | None = None,
    path: str = PATH,
    **options: Unpack[HandlerOptions],
) -> Handler[..., Any]:
    """Declare a job type whose jobs other programs run.

    ``remote_job("shop.resize").enqueue(image=7)`` enqueues like a handler of ``@job``.
    It takes the options of ``@job``, except those that need a function.

    :param endpoint: the entry of the setting ENDPOINTS that jobs are sent to, with a
        timeout of five minutes unless you give another; without it, remote workers
        claim the jobs over the HTTP API.
    :param path: a job's path below the address of the endpoint.

    Raises ImproperlyConfigured, also if another module has declared that name.
    """
    where = f"remote_job({name!r})"
    module = sys._getframe(1).f_globals["__name__"]  # who declares it
    declaration = remote_declaration(
        where, name, dict(options), endpoint=endpoint, path=path, module=module
    )
    registry.add(declaration)
    handler: Handler[..., Any] = Handler(declaration.function, declaration)
    registry.send_as(name, handler)
    return handler


def remote_declaration(
    where: str,
    name: str,
    options: dict[str, Any],
    *,
    endpoint: str | None = None,
    path: str = PATH,
    module: str = "",
    description: str = "",
) -> Declaration:
    """The declaration of a job type that other programs do.

    ``where`` begins the messages of the errors. Raises ImproperlyConfigured.
    """
    for option in OF_FUNCTIONS:
        if option in options:
            raise ImproperlyConfigured(f"{where}: {option} needs a handler, use @job.")
    if problem := name_problem(name):
        raise ImproperlyConfigured(f"{where}: name {problem}")
    if endpoint is None and path != PATH:
        raise ImproperlyConfigured(f"{where}: path needs an endpoint.")
    if endpoint is not None:
        _complete(where, endpoint, path, options)
    policy = policy_of(where, options)

    async def deliver(**data: Any) -> Any:
        if (send := offer("handlers", BY_ENDPOINTS)) is None:
            raise ImproperlyConfigured(f"{where}: add {ROOM!r} to INSTALLED_APPS.")
        return await send(declaration)

    def not_here(**data: Any) -> None:
        raise NotImplementedError(f"Jobs of {name} are done by remote workers only.")

    function = not_here if endpoint is None else deliver
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = description
    declaration = Declaration(
        name=name,
        function=function,
        policy=policy,
        parameters=Parameters.of(function, takes_context=False),
        is_remote=endpoint is None,
        endpoint=endpoint or "",
        endpoint_path=path,
    )
    unique_keys.check(declaration, where)
    key_limits.check(declaration, where)
    weights.check(declaration, where)
    if problem := follower_problem(name, policy):
        raise ImproperlyConfigured(f"{where}: {problem}")
    return declaration


def _complete(where: str, endpoint: str, path: str, options: dict[str, Any]) -> None:
    """Check what is said of the endpoint, and add its defaults to the options. Raises
    ImproperlyConfigured. That ENDPOINTS has it is a system check's business."""
    if not isinstance(endpoint, str) or not endpoint:
        raise ImproperlyConfigured(
            f"{where}: endpoint must be a name in JOBQUEUE['ENDPOINTS'], not "
            f"{endpoint!r}."
        )
    if problem := _path_problem(path):
        raise ImproperlyConfigured(f"{where}: path {problem}")
    if options.setdefault("timeout", TIMEOUT) is None:
        raise ImproperlyConfigured(
            f"{where}: timeout must not be None. A job whose endpoint never calls back "
            "would run forever."
        )
    if (known := conf.endpoints.get(endpoint)) is not None:
        options.setdefault("concurrency", known.concurrency)


def _path_problem(path: object) -> str | None:
    """Why this is no path of a job, in words that follow "path"."""
    example = f"such as {PATH!r}."
    if not isinstance(path, str) or not path.startswith("/") or path.startswith("//"):
        return f"must begin with one slash, {example}"
    if not path.isascii() or not path.isprintable() or set(" ?#\\") & set(path):
        return f"must have no space, ?, #, backslash or other letters, {example}"
    try:
        fields = {name for _, name, *_ in Formatter().parse(path) if name is not None}
        path.format(type="", id="")
    except (ValueError, LookupError, AttributeError):
        return f"may have the fields {{type}} and {{id}}, {example}"
    if "id" not in fields or not fields <= {"id", "type"}:
        return f"must have the field {{id}}, and may have {{type}}, {example}"
    return None
