"""The task of the backends for Django's tasks."""

from __future__ import annotations

from django.tasks import task

from benchmarks import journal


@task()
def work(number: int, ms: int) -> None:
    """The handler."""
    journal.work(number, ms)
