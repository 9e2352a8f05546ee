"""The producer's verbs: ``@job``, ``enqueue``, ``enqueue_many`` and ``using``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial, update_wrapper
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    overload,
)
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue import signals
from django_jobqueue.arguments import Parameters, to_json
from django_jobqueue.conf import conf
from django_jobqueue.context import Context
from django_jobqueue.exceptions import InvalidArguments, UnknownJobType
from django_jobqueue.ids import new_id, new_ids
from django_jobqueue.options import Options, as_tags
from django_jobqueue.policy import UNSET, Unset, name_problem, policy_of
from django_jobqueue.registry import Declaration, default_name, registry
from django_jobqueue.retries import Backoff
from django_jobqueue.states import Delivery
from django_jobqueue.store import find, insert, job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.insert import NewJob
from django_jobqueue.store.rows import Job

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
        self._options = options or Options()
        self._new = self._options.new_job(declaration.name, declaration)

    def __repr__(self) -> str:
        return f"<handler of job type {self.name!r}>"

    @property
    def name(self) -> str:
        """The name of the job type."""
        return self.declaration.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the handler here and now, as a plain function."""
        return self.function(*args, **kwargs)

    def using(
        self,
        *,
        run_after: datetime | timedelta | None = None,
        expires_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        id: UUID | str | None = None,
        tags: Iterable[str] = (),
        enqueued_by: str | None = None,
    ) -> Handler[P, R]:
        """The same handler with these options for the jobs that it enqueues.

        ``run_after`` is a moment, or a wait from now; ``expires_at`` a moment after
        which the job is not started; ``priority`` from -100 to 100, greater is sooner.
        ``id`` makes the enqueue idempotent: a job that has this id already is returned
        instead. Raises InvalidArguments.
        """
        options = Options(
            run_after=run_after,
            expires_at=expires_at,
            priority=priority,
            queue=queue,
            id=id,
            tags=as_tags(tags),
            enqueued_by=enqueued_by,
        )
        return Handler(self.function, self.declaration, options.checked())

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Enqueue this call, in the caller's transaction, with one INSERT.

        Raises InvalidArguments if the arguments do not fit the handler, or would not
        survive as JSON; AlreadyArchived if the id of ``using(id=…)`` was used.
        """
        data = self.declaration.parameters.bind(args, kwargs)
        return _enqueue(self._new, self.declaration, data, self._options.id)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """``enqueue`` for async code."""
        return await sync_to_async(self.enqueue)(*args, **kwargs)

    def enqueue_many(self, calls: Iterable[Mapping[str, Any]]) -> list[UUID]:
        """Enqueue one job for each dict of arguments; return their ids, in order.

        All or none, in the caller's transaction. Raises what ``enqueue`` raises.
        """
        if self._options.id is not None:
            raise InvalidArguments("enqueue_many makes the ids itself: using(id=…).")
        parameters = self.declaration.parameters
        data = [parameters.bind((), call) for call in calls]
        return _enqueue_many(self._new, self.declaration, data)

    async def aenqueue_many(self, calls: Iterable[Mapping[str, Any]]) -> list[UUID]:
        """``enqueue_many`` for async code."""
        return await sync_to_async(self.enqueue_many)(calls)


def enqueue(
    job_type: str,
    data: Mapping[str, Any] | None = None,
    *,
    run_after: datetime | timedelta | None = None,
    expires_at: datetime | None = None,
    priority: int | None = None,
    queue: str | None = None,
    id: UUID | str | None = None,
    tags: Iterable[str] = (),
    enqueued_by: str | None = None,
) -> Job:
    """Enqueue a job by the name of its type, also one whose handler is not known here.

    Raises UnknownJobType, with the names most like it, and what ``Handler.enqueue``
    raises. The options are those of ``Handler.using``.
    """
    options = Options(
        run_after=run_after,
        expires_at=expires_at,
        priority=priority,
        queue=queue,
        id=id,
        tags=as_tags(tags),
        enqueued_by=enqueued_by,
    ).checked()
    if not isinstance(job_type, str):
        raise InvalidArguments(
            f"enqueue takes the name of a job type, not {job_type!r}; a handler has an "
            "enqueue of its own."
        )
    declaration = registry.get(job_type)
    values = dict(data or {}) if isinstance(data, Mapping | None) else data
    if problem := _data_problem(declaration, values):
        raise InvalidArguments(problem)
    new = options.new_job(job_type, declaration)
    return _enqueue(new, declaration, values, options.id)


async def aenqueue(
    job_type: str, data: Mapping[str, Any] | None = None, **options: Any
) -> Job:
    """``enqueue`` for async code."""
    return await sync_to_async(enqueue)(job_type, data, **options)


@overload
def job(function: Callable[P, R], /) -> Handler[P, R]: ...
@overload
def job(
    *,
    takes_context: Literal[True],
    name: str = ...,
    queue: str = ...,
    priority: int = ...,
    max_attempts: int | None | Unset = ...,
    backoff: str | timedelta | float | Backoff = ...,
    timeout: timedelta | float | None | Unset = ...,
    delivery: str | Delivery = ...,
    concurrency: int | None = ...,
    atomic: bool = ...,
    expires_in: timedelta | float | None = ...,
    max_crashes: int = ...,
    retry_for: tuple[type[BaseException], ...] = ...,
    permanent: tuple[type[BaseException], ...] = ...,
    sensitive: Iterable[str] = ...,
    unique: bool | Iterable[str] = ...,
    unique_until: Literal["finished", "started"] = ...,
    on_duplicate: Literal["raise", "return"] = ...,
    on_complete: str | Handler[..., Any] | None = ...,
    capture: Iterable[Literal["language", "time_zone"]] | Unset = ...,
    middleware: Iterable[str | Callable[..., Any]] = ...,
) -> Callable[[Callable[Concatenate[Context, P], R]], Handler[P, R]]: ...
@overload
def job(
    *,
    takes_context: Literal[False] = ...,
    name: str = ...,
    queue: str = ...,
    priority: int = ...,
    max_attempts: int | None | Unset = ...,
    backoff: str | timedelta | float | Backoff = ...,
    timeout: timedelta | float | None | Unset = ...,
    delivery: str | Delivery = ...,
    concurrency: int | None = ...,
    atomic: bool = ...,
    expires_in: timedelta | float | None = ...,
    max_crashes: int = ...,
    retry_for: tuple[type[BaseException], ...] = ...,
    permanent: tuple[type[BaseException], ...] = ...,
    sensitive: Iterable[str] = ...,
    unique: bool | Iterable[str] = ...,
    unique_until: Literal["finished", "started"] = ...,
    on_duplicate: Literal["raise", "return"] = ...,
    on_complete: str | Handler[..., Any] | None = ...,
    capture: Iterable[Literal["language", "time_zone"]] | Unset = ...,
    middleware: Iterable[str | Callable[..., Any]] = ...,
) -> Callable[[Callable[P, R]], Handler[P, R]]: ...
def job(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    **options: Any,
) -> Any:
    """Declare the handler of a job type: ``@job``, or ``@job(option=…)``.

    :param name: of the job type; by default that of the function, without ``.jobs``.
    :param queue: the lane that its jobs wait in.
    :param priority: from -100 to 100; greater is sooner.
    :param max_attempts: ``None`` is without end.
    :param backoff: ``exponential``, ``quartic``, ``decorrelated``, ``fixed``,
        ``immediate``, ``rickover``; a wait; or a function of the attempt's number.
    :param timeout: of one attempt, in seconds or as a timedelta; ``None`` is none.
    :param delivery: ``at_least_once``, or ``at_most_once``: never started twice.
    :param concurrency: how many run at once in the whole cluster; 0 pauses.
    :param atomic: the handler and its completion are one transaction.
    :param expires_in: how long after it is due a job may still be started.
    :param max_crashes: a job whose worker died this often is archived as failed.
    :param retry_for: only these exceptions are retried.
    :param permanent: these exceptions are not retried.
    :param takes_context: the first argument is a ``Context``.
    :param sensitive: keys of the data whose values are masked wherever they are shown.
    :param unique: one job with these data at a time; or names of the parameters that
        count.
    :param unique_until: ``finished``: until it is over; ``started``: until it is
        claimed.
    :param on_duplicate: ``raise`` DuplicateJob, or ``return`` the job that is there.
    :param on_complete: the handler, or job type, of a job that is enqueued when a job
        of this one is over, whatever its status.
    :param capture: ``language`` and ``time_zone`` that are active at the enqueue, to be
        active in the handler.
    :param middleware: dotted paths, or callables; within those of the settings.

    Raises ImproperlyConfigured for options that are wrong or contradict each other.
    """
    declare = partial(_declare, name=name, options=options)
    return declare if function is None else declare(function)


def _declare(
    function: Callable[..., Any], *, name: str | None, options: dict[str, Any]
) -> Handler[..., Any]:
    if not callable(function) or not hasattr(function, "__qualname__"):
        raise ImproperlyConfigured(
            f"@job stands on a function, not on {function!r}. Options have names: "
            "@job(queue=…)."
        )
    where = f"{function.__module__}.{function.__qualname__}"
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
    registry.add(declaration)
    return Handler(function, declaration)


def _data_problem(declaration: Declaration | None, data: object) -> str | None:
    """Why these cannot be the data of a job, whether its handler is known or not."""
    if declaration is not None:
        return declaration.parameters.problem(data)
    if isinstance(data, dict):
        return None
    return f"The data of a job must be an object, not {type(data).__name__}."


def _enqueue(
    new: NewJob, declaration: Declaration | None, data: Any, id: UUID | str | None
) -> Job:
    text = to_json(data, limit=conf.max_data_bytes)
    db = DjangoDatabase()
    verb = insert.insert if id is None else insert.insert_once
    key = id if isinstance(id, UUID) else new_id()
    job = verb(db, new, key, data, text)
    if job is None:
        _declare_now(db, new.job_type, declaration)
        job = verb(db, new, key, data, text)
        if job is None:
            raise UnknownJobType(new.job_type)
    signals.send(signals.job_enqueued, new.job_type, job=job)
    return job


def _enqueue_many(
    new: NewJob, declaration: Declaration, calls: list[dict[str, Any]]
) -> list[UUID]:
    limit, ids = conf.max_data_bytes, new_ids(len(calls))
    texts = [to_json(data, limit=limit) for data in calls]
    if not calls:
        return []
    db = DjangoDatabase()
    if not insert.insert_many(db, new, ids, texts):
        _declare_now(db, new.job_type, declaration)
        insert.insert_many(db, new, ids, texts)
    return ids


def _declare_now(
    db: DjangoDatabase, job_type: str, declaration: Declaration | None
) -> None:
    """Write the job type's row: its code is newer than the last migrate."""
    if declaration is None:
        raise UnknownJobType(job_type, registry.near(job_type, find.known_names(db)))
    job_types.declare(db, [declaration])


__all__ = ["UNSET", "Handler", "aenqueue", "enqueue", "job"]
