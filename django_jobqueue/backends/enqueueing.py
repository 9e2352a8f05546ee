"""Enqueues calls of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from django_jobqueue.backends.compat import InvalidTask, Task
from django_jobqueue.backends.declared import declared, runner_of
from django_jobqueue.backends.job_task import BOTH, PER_JOB, POLICY
from django_jobqueue.backends.parameters import STAR
from django_jobqueue.backends.restoring import unchecked
from django_jobqueue.options import Options
from django_jobqueue.policy import UNSET
from django_jobqueue.producer import Producer

_OF_TYPE: Final = tuple(name for name in POLICY if name not in BOTH)


class Enqueueing:
    """Calls of one task, as it is used, that are about to be enqueued."""

    def __init__(self, task: Task, alias: str, defaults: Mapping[str, Any]) -> None:
        changes: dict[str, Any] = {"backend": alias}
        if task.run_after is not None:
            changes["run_after"] = _moment(task.run_after)
        self.task = unchecked(task, **changes)
        self.declaration = declared(task, defaults)
        runner = runner_of(self.declaration)
        self._standing = task if runner is None else runner.task
        self._check()
        self.producer = Producer(
            self.declaration.name, self.declaration, Options().but(self._options())
        )

    def data(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The data of a job that does this call. Raises TypeError."""
        data = self.declaration.parameters.bind(args, kwargs)
        star = dict(data.get(STAR, {}))
        if self.task.backend != self._standing.backend:
            star["backend"] = self.task.backend
        if self.task.run_after is not None:
            star["run_after"] = self.task.run_after.isoformat()
        return {**data, STAR: star} if star else data

    def _options(self) -> dict[str, Any]:
        """What is said of these jobs, and not of all of their type."""
        task, standing = self.task, self._standing
        options: dict[str, Any] = {
            name: getattr(task, name)
            for name in PER_JOB
            if getattr(task, name, None) not in (None, ())
        }
        options |= {
            name: getattr(task, name)
            for name in BOTH
            if getattr(task, name, UNSET) is not UNSET
            and getattr(task, name) != getattr(standing, name, UNSET)
        }
        if task.priority != standing.priority:
            options["priority"] = task.priority
        if isinstance(options.get("on_complete"), Task):
            options["on_complete"] = options["on_complete"].module_path
        return {**options, "queue": task.queue_name, "run_after": task.run_after}

    def _check(self) -> None:
        """Raises InvalidTask for a policy that other jobs of the type do not have."""
        if self.task is self._standing:
            return
        for name in _OF_TYPE:
            own = getattr(self.task, name, UNSET)
            if own is not UNSET and own != getattr(self._standing, name, UNSET):
                task = self.task.name
                raise InvalidTask(
                    f"{name} belongs to all jobs of {self.task.module_path}, not to "
                    "one of them. Say it where the task is declared: "
                    f"{task} = {task}.using({name}=…)."
                )


def _moment(run_after: datetime | timedelta) -> datetime:
    """When a job is due, aware of its time zone."""
    if isinstance(run_after, timedelta):
        run_after = timezone.now() + run_after
    return run_after if timezone.is_aware(run_after) else timezone.make_aware(run_after)
