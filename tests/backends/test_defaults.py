"""What the OPTIONS of a backend say of its tasks."""

from __future__ import annotations

from typing import Any

from django_jobqueue.backends import task
from django_jobqueue.backends.compat import task_backends
from django_jobqueue.backends.parameters import TaskParameters
from django_jobqueue.backends.task_declarations import policy_for
from tests.support.tables import differing

RETRIES = {"max_attempts": 5, "backoff": 60, "retry": {OSError: True}}


def send(order_id: int) -> None:
    """A function of a module, to be a task."""


def test_retries_by_default_are_for_tasks_that_may_be_repeated(settings: Any) -> None:
    backend = "django_jobqueue.backends.JobQueueBackend"
    settings.TASKS = {"default": {"BACKEND": backend, "OPTIONS": RETRIES}}
    task_class = task_backends["default"].task_class
    plain = {"priority": 0, "queue_name": "default", "backend": "default"}
    parameters = TaskParameters.of(send, takes_context=False)

    def attempts(own: dict[str, Any]) -> int | None:
        made = task_class(
            func=send, takes_context=False, run_after=None, **plain, **own
        )
        return policy_for(made, RETRIES, parameters).attempts_allowed

    rows: list[tuple[dict[str, Any], int]]
    rows = [({}, 5), ({"max_attempts": 2}, 2), ({"delivery": "at_most_once"}, 1)]
    assert differing(rows, attempts) == []


def test_a_task_shows_what_it_says_and_not_what_it_leaves_open(settings: Any) -> None:
    backend = "django_jobqueue.backends.JobQueueBackend"
    settings.TASKS = {"default": {"BACKEND": backend}}
    shown = repr(task(max_attempts=3)(send).using(tags=["spring"]))
    assert shown.startswith("JobTask(")
    assert "tags=['spring'], max_attempts=3" in shown
    assert "timeout" not in shown
