"""Assertions about enqueued jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Unpack, overload

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.store.rows import Job
from django_jobqueue.testing.commits import waiting
from django_jobqueue.testing.expected_job import (
    OTHER_TYPE,
    About,
    Wanted,
    check_about,
    shown,
)
from django_jobqueue.testing.visible_jobs import known_name_of, seen

LISTED: Final = 10


@overload
def assert_enqueued(
    handler: Any, *, count: None = ..., **about: Unpack[About]
) -> Job: ...
@overload
def assert_enqueued(
    handler: Any, *, count: int, **about: Unpack[About]
) -> list[Job]: ...
@sync_only()
def assert_enqueued(
    handler: Any, *, count: int | None = None, **about: Unpack[About]
) -> Job | list[Job]:
    """Find the one job that matches, whether it has run or not.

    :param handler: a handler, a task, or the name of a job type.
    :param data: all of its data.
    :param data_contains: a part of its data; dicts in it may have more keys.
    :param queue: the name of its queue.
    :param run_after: the moment, or the wait from its enqueue; ``tolerance`` is how far
        from it the job may be, by default one second.
    :param priority: its priority.
    :param tags: tags that it has.
    :param status: its current status: ``queued``, ``succeeded`` …
    :param count: the number of matching jobs; then they are returned as a list.

    Returns the job. Raises AssertionError if there is none, or several, and lists the
    enqueued jobs, most similar first; UnknownJobType for an unknown name; TypeError for
    an unknown argument.
    """
    check_about("assert_enqueued()", about)
    wanted = Wanted(job_type=known_name_of(handler), **about)
    jobs = seen()
    like = [one for one in jobs if not wanted.differences(one)]
    if count is not None:
        if len(like) != count:
            raise AssertionError(
                _mismatch(f"{_jobs(len(like))}, not {count},", wanted, jobs)
            )
        return like
    if not like:
        raise AssertionError(_mismatch("No job", wanted, jobs))
    if len(like) > 1:
        hint = f"Say count={len(like)}, or more about the one that you mean."
        raise AssertionError(f"{_mismatch(_jobs(len(like)), wanted, jobs)}\n{hint}")
    return like[0]


@sync_only()
def assert_not_enqueued(handler: Any, **about: Unpack[About]) -> None:
    """Make sure that no job matches; the arguments are those of ``assert_enqueued``.

    Raises AssertionError, which lists them; UnknownJobType for an unknown name;
    TypeError for an unknown argument.
    """
    check_about("assert_not_enqueued()", about)
    wanted = Wanted(job_type=known_name_of(handler), **about)
    like = [one for one in seen() if not wanted.differences(one)]
    if like:
        raise AssertionError(_mismatch(_jobs(len(like)), wanted, like))


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _mismatch(subject: str, wanted: Wanted, jobs: Iterable[Job]) -> str:
    """The text of a failed assertion: the jobs that were expected, and those that
    exist."""
    verb = "was" if subject in ("No job", "1 job") else "were"
    lines = [f"{subject} like this {verb} enqueued: {wanted}."]
    ordered = sorted(jobs, key=wanted.distance)
    lines.append("Enqueued, most alike first:" if ordered else "Nothing was enqueued.")
    for one in ordered[:LISTED]:
        differences = [d for d in wanted.differences(one) if d != OTHER_TYPE]
        why = f"  <- {'; '.join(differences)}" if differences else ""
        lines.append(f"  {shown(one)}{why}")
    if len(ordered) > LISTED:
        lines.append(f"  … and {len(ordered) - LISTED} more")
    if calls := waiting():
        lines.append(
            f"{calls} on_commit callbacks wait: drain() calls them, and "
            "captureOnCommitCallbacks(execute=True)."
        )
    return "\n".join(lines)
