"""Enqueues calls of tasks, one or many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from itertools import accumulate, groupby
from typing import Any
from uuid import UUID

from django.db import transaction

from django_jobqueue.backends.compat import Task
from django_jobqueue.backends.job_task import check_options, job_options
from django_jobqueue.backends.parameters import STAR
from django_jobqueue.backends.results import (
    JobTaskResult,
    new_result,
    replace_unvalidated,
)
from django_jobqueue.backends.task_declarations import current_declaration, runner_of
from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import refuse_call
from django_jobqueue.domain.ids import new_id
from django_jobqueue.enqueueing.enqueuer import Enqueuer
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.record import Made, made
from django_jobqueue.store.rows import Job
from django_jobqueue.text import timezones

Call = tuple[Task, Sequence[Any], Mapping[str, Any]]


class TaskEnqueuer:
    """Enqueues calls of one task with the options that it has where it is called."""

    def __init__(self, task: Task, alias: str, defaults: Mapping[str, Any]) -> None:
        self.given = task
        changes: dict[str, Any] = {"backend": alias}
        if task.run_after is not None:
            changes["run_after"] = _moment(task.run_after)
        self.task = replace_unvalidated(task, **changes)
        self.declaration = current_declaration(task, defaults)
        runner = runner_of(self.declaration)
        self._declared = task if runner is None else runner.task
        check_options(self.task, self._declared)
        options = job_options(self.task, self._declared)
        given = {"queue": self.task.queue_name, "run_after": self.task.run_after}
        self._options = Options().but({**options, **given})
        self.enqueuer = self._enqueuer(self._options)

    @property
    def is_reusable(self) -> bool:
        """True if the task is the declared one, so that later calls can use this."""
        return self.given is self.task is self._declared

    def data(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The data of a job for this call. Raises TypeError."""
        data = self.declaration.parameters.bind(args, kwargs)
        star = dict(data.get(STAR, {}))
        if self.task.backend != self._declared.backend:
            star["backend"] = self.task.backend
        if self.task.run_after is not None:
            star["run_after"] = self.task.run_after.isoformat()
        return {**data, STAR: star} if star else data

    def enqueue(self, data: dict[str, Any]) -> Job:
        """Enqueue a call. In the modes that run jobs at once, an error of the task goes
        to its result, not to the caller."""
        if conf.mode == "queue":
            return self.enqueuer.enqueue(data)
        id = self._options.id or new_id()
        try:
            return self._enqueuer(self._options.but({"id": id})).enqueue(data)
        except Exception:
            job = memory.find(id)
            if job is None:
                raise
            return job

    def result(
        self,
        id: UUID,
        made: Made | Job,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        is_new: bool,
        is_replaced: bool,
    ) -> JobTaskResult:
        """The result of an enqueued call, with the job's priority: operators override
        it."""
        task = replace_unvalidated(
            self.task, queue_name=made.queue, priority=made.priority
        )
        moment = made.created_at
        return new_result(
            task,
            id=id,
            enqueued_at=moment,
            args=args,
            kwargs=kwargs,
            is_new=is_new,
            is_replaced=is_replaced,
        )

    def _enqueuer(self, options: Options) -> Enqueuer:
        return Enqueuer(self.declaration.name, self.declaration, options)


def enqueue_many(
    enqueuer_of: Callable[[Task], TaskEnqueuer], calls: Sequence[Call]
) -> list[JobTaskResult]:
    """Enqueue all calls, or none; return their results, in order."""
    batches = [
        (enqueuer_of(group[0][0]), group)
        for _, same_task in groupby(calls, key=lambda call: id(call[0]))
        if (group := list(same_task))
    ]
    firsts = list(accumulate((len(group) for _, group in batches), initial=0))
    bound = [
        (batch, _data(batch, group, first), first)
        for (batch, group), first in zip(batches, firsts, strict=False)
    ]
    with _all_or_none():
        ids = [
            batch.enqueuer.enqueue_many(data, first=first)
            for batch, data, first in bound
        ]
        rows = _made([id for some in ids for id in some])
    new, replaced = [{*s.new} for s in ids], [{*s.replaced} for s in ids]
    return [
        batch.result(
            id,
            rows[id],
            args,
            kwargs,
            is_new=id in new[number],
            is_replaced=id in replaced[number],
        )
        for number, ((batch, group), some) in enumerate(zip(batches, ids, strict=True))
        for id, (_, args, kwargs) in zip(some, group, strict=True)
    ]


def _data(
    batch: TaskEnqueuer, calls: Sequence[Call], first: int
) -> list[dict[str, Any]]:
    """The data of these calls; ``first`` is the number of the first, for messages."""
    data: list[dict[str, Any]] = []
    try:
        for _, args, kwargs in calls:
            data.append(batch.data(args, kwargs))
    except (InvalidArguments, TypeError) as error:
        refuse_call(first + len(data), error)
    return data


def _all_or_none() -> AbstractContextManager[None]:
    """A transaction; jobs that run at once need no database, and cannot be undone."""
    if conf.mode == "immediate":
        return nullcontext()
    atomic: AbstractContextManager[None] = transaction.atomic(DjangoDatabase().alias)
    return atomic


def _made(ids: list[UUID]) -> Mapping[UUID, Made | Job]:
    if conf.mode == "queue":
        return made(DjangoDatabase(), ids)
    return {record.job.id: record.job for record in memory}


def _moment(run_after: datetime | timedelta) -> datetime:
    """The moment at which a job is due, with a time zone."""
    if isinstance(run_after, timedelta):
        run_after = timezones.now() + max(run_after, timedelta(0))
    return timezones.aware(run_after)
