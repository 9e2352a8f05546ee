"""Tasks of these tests."""

from __future__ import annotations

from django_jobqueue.backends import task


@task(max_attempts=2, backoff=60)
def greet(name: str, *, loud: bool = False) -> str:
    """Greet."""
    return f"Hello, {name.upper() if loud else name}!"


@task
async def agreet(name: str) -> str:
    """Greet."""
    return f"Hello, {name}!"


@task(takes_context=True, max_attempts=2, backoff=60)
def number(context: object) -> int:
    """Return the number of the attempt, if it is the second."""
    if context.attempt == 1:  # type: ignore[attr-defined]
        raise ValueError("not yet")
    return int(context.attempt)  # type: ignore[attr-defined]
