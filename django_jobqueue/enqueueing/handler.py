"""``@job`` makes a handler of a function: call it, enqueue it, ``using`` options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial, update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Unpack,
    overload,
)

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured, SynchronousOnlyOperation

from django_jobqueue.domain import key_limits, unique_keys, weights
from django_jobqueue.domain.arguments import Parameters, refuse_call, several_calls
from django_jobqueue.domain.async_code import explain
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.followers import Follower
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.policy import UNSET, name_problem
from django_jobqueue.domain.registry import Declaration, default_name, registry
from django_jobqueue.domain.schedule_rules import ScheduleRule
from django_jobqueue.enqueueing import handler_functions
from django_jobqueue.enqueueing.enqueued_ids import EnqueuedIds
from django_jobqueue.enqueueing.enqueuer import Enqueuer
from django_jobqueue.enqueueing.options import (
    HandlerOptions,
    JobOptions,
    Options,
    follower_problem,
)
from django_jobqueue.enqueueing.scheduling import (
    ScheduledCall,
    ScheduleOptions,
    schedule_of,
)
from django_jobqueue.enqueueing.stored_options import as_follower
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.store.rows import Job
from django_jobqueue.text.data_summary import keys_of
from django_jobqueue.text.foreign_words import HANDLER, no_attribute

P = ParamSpec("P")
R = TypeVar("R")


class Handler(Generic[P, R]):
    """A function declared with ``@job``: call it, or enqueue a call of it."""

    def __init__(
        self,
        function: Callable[..., R],
        declaration: Declaration,
        options: Options | None = None,
    ) -> None:
        update_wrapper(self, function)
        self.function = function
        self.declaration = declaration
        self._enqueuer = Enqueuer(declaration.name, declaration, options or Options())

    def __repr__(self) -> str:
        return f"<handler of job type {self.name!r}>"

    if not TYPE_CHECKING:  # type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            own = vars(self).get("__name__", "handler")
            no_attribute(self, name, HANDLER, own)

    @property
    def name(self) -> str:
        """The name of the job type."""
        return self.declaration.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the handler here and now, as a plain function."""
        return self.function(*args, **kwargs)

    def using(self, **options: Unpack[JobOptions]) -> Handler[P, R]:
        """The same handler with these options, in addition to its own, for the jobs
        that it enqueues.

        Raises InvalidArguments, and TypeError for an unknown option.
        """
        chosen = self._enqueuer.options.but(options, self.function.__name__)
        return Handler(self.function, self.declaration, chosen)

    def as_follower(self) -> Follower:
        """This handler with its options, as the follower of another job. Raises
        InvalidArguments for options that followers cannot have."""
        return as_follower(self.name, self._enqueuer.options)

    def at(
        self, rule: ScheduleRule, **options: Unpack[ScheduleOptions]
    ) -> ScheduledCall[P]:
        """Enqueue a job at each moment of this rule, ``cron(…)`` or ``every(…)``, with
        the arguments that the result is called with::

            send_report.at(cron("30 2 * * *"), name="report-eu")(region="eu")

        The jobs have the options of ``using()`` before it. Raises ImproperlyConfigured.
        """
        schedule = schedule_of(self.name, rule, self._enqueuer.options, dict(options))
        return ScheduledCall(schedule, self.declaration.parameters.bind)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Enqueue this call, in the caller's transaction, with one INSERT.

        Raises InvalidArguments if the arguments do not fit the handler or cannot be
        stored as JSON; DuplicateJob if the job is unique and a duplicate is queued or
        running; AlreadyArchived if a finished job has the id of ``using(id=…)``;
        SynchronousOnlyOperation in async code.
        """
        data = self.declaration.parameters.bind(args, kwargs)
        try:
            return self._enqueuer.enqueue(data)
        except SynchronousOnlyOperation as error:
            explain(error, "enqueue", "aenqueue")

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """``enqueue`` for async code."""
        return await sync_to_async(self.enqueue)(*args, **kwargs)

    def enqueue_many(self, calls: Iterable[Mapping[str, Any]]) -> EnqueuedIds:
        """Enqueue one job for each dict of arguments; return their ids, in order.

        All or none, in the caller's transaction. Raises the errors of ``enqueue``.
        """
        bind, bound = self.declaration.parameters.bind_call, []
        several = several_calls(calls)
        try:
            for call in several:
                bound.append(bind(call))
        except InvalidArguments as error:
            refuse_call(len(bound), error)
        try:
            return self._enqueuer.enqueue_many(bound)
        except SynchronousOnlyOperation as error:
            explain(error, "enqueue_many", "aenqueue_many")

    async def aenqueue_many(self, calls: Iterable[Mapping[str, Any]]) -> EnqueuedIds:
        """``enqueue_many`` for async code."""
        return await sync_to_async(self.enqueue_many)(calls)


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


__all__ = ["UNSET", "Handler", "job"]
