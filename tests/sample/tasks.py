"""Tasks for tests: those that Django's own tests have, and some with a policy."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import django

from django_jobqueue import current_job
from django_jobqueue.backends import JobTaskContext, JobTaskResult
from django_jobqueue.backends import task as our_task

if django.VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task

seen: list[Any] = []  # what tasks of this process saw


@task
def add(a: int, b: int = 0) -> int:
    """Return a sum."""
    return a + b


@task
async def aadd(a: int, b: int = 0) -> int:
    await asyncio.sleep(0)
    return a + b


@task
def anything(*args: Any, **kwargs: Any) -> list[Any]:
    return [list(args), kwargs]


@task
def fail(message: str = "no") -> None:
    raise ValueError(message)


@task
async def afail(message: str = "no") -> None:
    raise ValueError(message)


@task
def fail_with_cause() -> None:
    raise ValueError(ValueError("the inner one"))


@task
def after_success(result: object, note: str = "") -> list[object]:
    return ["after", result]


@task
def after_failure(error_class: str) -> str:
    return error_class


@our_task(
    on_success=after_success,
    on_failure=[after_failure, "tests.sample.on_any"],
    max_attempts=1,
)
def with_followers(fails: bool = False) -> str:
    if fails:
        raise LookupError("no")
    return "done"


@task
def leave(how: str) -> None:
    raise {"exit": SystemExit, "ctrl-c": KeyboardInterrupt}[how](how)


@task
def return_object() -> object:
    return object()


@task
def return_bytes() -> bytes:
    return b"bytes"


@task(takes_context=True)
def look(context: JobTaskContext) -> dict[str, Any]:
    result = context.task_result
    seen.append(result)
    return {
        "id": result.id,
        "status": result.status,
        "attempt": context.attempt,
        "workers": result.worker_ids,
        "metadata": context.metadata,
        "current": str(current_job().id),
    }


@task(takes_context=True)
async def alook(context: JobTaskContext) -> int:
    return context.attempt


@our_task(max_attempts=3, backoff="immediate", takes_context=True)
def fail_twice(context: JobTaskContext) -> list[str]:
    seen.append(context.task_result)
    if context.attempt < 3:
        raise ValueError(f"attempt {context.attempt}")
    return [error.traceback.splitlines()[-1] for error in context.task_result.errors]


@our_task(max_attempts=3, backoff="immediate", takes_context=True)
async def afail_twice(context: JobTaskContext) -> list[str]:
    if context.attempt < 3:
        raise ValueError(f"attempt {context.attempt}")
    return [error.traceback.splitlines()[-1] for error in context.task_result.errors]


def patience(error: BaseException, result: JobTaskResult) -> float | None:
    """No wait for ValueErrors, and no further attempt after others."""
    seen.append((type(error).__name__, result.attempts))
    return 0 if isinstance(error, ValueError) else None


@our_task(max_attempts=3, backoff=patience)
def fail_with(kind: str) -> None:
    raise {"value": ValueError, "key": KeyError}[kind](kind)


@our_task(
    queue_name="mail",
    priority=7,
    timeout=timedelta(seconds=30),
    delivery="at_most_once",
    concurrency=2,
    expires_in=3_600,
    max_crashes=2,
    sensitive=("card",),
)
def charge(order: int, card: str = "") -> None:
    raise ValueError(f"the card {card} is refused")


@our_task(atomic=True)
def write_atomic(user: str, fail: bool = False) -> None:
    from django.contrib.auth.models import User

    User.objects.create(username=user)
    if fail:
        raise ValueError(user)


@our_task(unique=True)
def once(order: int) -> None: ...


@our_task
def changed() -> None: ...


changed = changed.using(max_attempts=4, timeout=5)
urgent = changed.using(priority=100)
