"""A module of tasks that autodiscovery does not import."""

from __future__ import annotations

from django_jobqueue.backends import task


@task
def double(number: int) -> int:
    return number * 2


def no_task() -> None: ...
