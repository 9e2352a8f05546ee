"""What the OPTIONS of a backend say of its tasks."""

from __future__ import annotations

from typing import Any

import pytest

from django_jobqueue.backends import task
from django_jobqueue.backends.compat import task_backends
from django_jobqueue.backends.parameters import TaskParameters
from django_jobqueue.backends.task_declarations import policy_for

RETRIES = {"max_attempts": 5, "backoff": 60, "retry": {OSError: True}}


def send(order_id: int) -> None:
    """A function of a module, to be a task."""


@pytest.mark.parametrize(
    ("own", "attempts"),
    [({}, 5), ({"max_attempts": 2}, 2), ({"delivery": "at_most_once"}, 1)],
)
def test_retries_by_default_are_for_tasks_that_may_be_repeated(
    own: dict[str, Any], attempts: int, settings: Any
) -> None:
    backend = "django_jobqueue.backends.JobQueueBackend"
    settings.TASKS = {"default": {"BACKEND": backend, "OPTIONS": RETRIES}}
    task_class = task_backends["default"].task_class
    made = task_class(
        func=send,
        priority=0,
        queue_name="default",
        backend="default",
        takes_context=False,
        run_after=None,
        **own,
    )

    parameters = TaskParameters.of(send, takes_context=False)
    assert policy_for(made, RETRIES, parameters).attempts_allowed == attempts


def test_a_task_shows_what_it_says_and_not_what_it_leaves_open(settings: Any) -> None:
    backend = "django_jobqueue.backends.JobQueueBackend"
    settings.TASKS = {"default": {"BACKEND": backend}}
    shown = repr(task(max_attempts=3)(send).using(tags=["spring"]))

    assert shown.startswith("JobTask(")
    assert "max_attempts=3, tags=['spring']" in shown
    assert "timeout" not in shown
