"""A function that ``@job`` declared: call it, enqueue it, ``using`` options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation

from django_jobqueue.domain.arguments import refuse_call, several_calls
from django_jobqueue.domain.async_code import explain
from django_jobqueue.domain.followers import Follower
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.domain.schedule_rules import ScheduleRule
from django_jobqueue.enqueueing.enqueued_ids import EnqueuedIds
from django_jobqueue.enqueueing.enqueuer import Enqueuer
from django_jobqueue.enqueueing.options import JobOptions, Options
from django_jobqueue.enqueueing.scheduling import (
    ScheduledCall,
    ScheduleOptions,
    schedule_of,
)
from django_jobqueue.enqueueing.stored_options import as_follower
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.store.rows import Job
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
