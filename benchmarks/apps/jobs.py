"""Our own handlers."""

from __future__ import annotations

from benchmarks import journal
from django_jobqueue import job


@job
def work(number: int, ms: int) -> None:
    """Say that it started; sleep, if that is asked for."""
    journal.work(number, ms)


@job
async def awork(number: int, ms: int) -> None:
    """The same, async."""
    await journal.awork(number, ms)
