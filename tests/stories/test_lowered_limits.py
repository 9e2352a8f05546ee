"""A limit of attempts that is lowered while a job waits for its next one: the handler
is not called again, however it was lowered and whatever it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from django_jobqueue import Handler, InvalidArguments, operations
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.states import Delivery
from django_jobqueue.models import Failure, QueuedJob
from django_jobqueue.store.rows import Job
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

HANDLERS: tuple[Handler[..., Any], ...] = (
    jobs.fail_often,
    jobs.afail_often,
    jobs.fail_atomic,
)


@contextmanager
def declared(**policy: Any) -> Iterator[None]:
    """The handlers as another release declares them."""
    before = [handler.declaration for handler in HANDLERS]
    for one in before:
        registry.add(one._replace(policy=replace(one.policy, **policy)))
    try:
        yield
    finally:
        for one in before:
            registry.add(one)


@contextmanager
def by_override() -> Iterator[None]:
    for handler in HANDLERS:
        operations.override(handler.name, max_attempts=1)
    yield


@contextmanager
def by_plain_sql() -> Iterator[None]:
    QueuedJob.objects.update(max_attempts=1)
    yield


WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "override": by_override,
    "plain SQL": by_plain_sql,
    "a release": lambda: declared(max_attempts=1),
    "a promise": lambda: declared(delivery=Delivery.AT_MOST_ONCE),
    "the setting": lambda: override_settings(JOBQUEUE={"MAX_ATTEMPTS": 1}),
}


@pytest.mark.parametrize("lowered", WAYS)
def test_a_job_that_has_no_attempt_left_is_not_started(
    make_worker: Callable[..., HandDriven],
    caplog: pytest.LogCaptureFixture,
    journal: str,
    lowered: str,
) -> None:
    ids = [handler.enqueue(journal).id for handler in HANDLERS]
    make_worker().work()
    operations.run_now(ids)
    make_worker().work()
    assert [row.attempts for row in queued()] == [2] * 3
    assert jobs.notes(journal) == [["failed"]] * 6
    operations.run_now(ids)
    with WAYS[lowered](), caplog.at_level(logging.ERROR, "django_jobqueue"):
        make_worker().work()
    over = {(row.status, row.attempts, row.error_message) for row in archived()}
    assert over == {("failed", 2, "no attempt is left: 2 made, 1 allowed")}
    assert jobs.notes(journal) == [["failed"]] * 6
    assert Failure.objects.count() == 6
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert sorted(errors) == sorted(
        f"Job {id} ({handler.name}) failed for good (no attempt is left: 2 made, "
        "1 allowed)"
        for id, handler in zip(ids, HANDLERS, strict=True)
    )


def waiting(worker: HandDriven, journal: str, attempts: int) -> Job:
    """A job that has made so many attempts, and waits."""
    job = jobs.fail_often.using(max_attempts=9).enqueue(journal)
    for _ in range(attempts):
        operations.run_now(job.id)
        worker.turn()
    return operations.get_job(job.id)


def test_a_number_that_leaves_none_is_refused(worker: HandDriven, journal: str) -> None:
    one, two, fresh = (waiting(worker, journal, made) for made in (1, 2, 0))
    refused = [(one, 1, "1 attempt was"), (two, 1, "2 attempts were")]
    for job, number, made in [*refused, (two, 2, "2 attempts were")]:
        with pytest.raises(InvalidArguments) as caught:
            operations.allow_attempts([fresh.id, job.id], number)
        assert str(caught.value) == (
            f"max_attempts must be at least {job.attempts + 1}, not {number}: {made} "
            f"made of job {job.id}. operations.fail ends a job without another one."
        )
    assert {row.max_attempts for row in queued()} == {9}


def test_a_number_that_leaves_one_is_taken(
    worker: HandDriven, journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = waiting(worker, journal, 1)
    with monkeypatch.context() as patch:  # it makes its attempt after the look
        patch.setattr(operations.queued_jobs.store_attempts, "spent", lambda *_: None)
        assert operations.allow_attempts([job.id], 1) == []
    assert [row.max_attempts for row in queued()] == [9]
    assert operations.allow_attempts([job.id], 2) == [job.id]
    operations.run_now(job.id)
    worker.work()
    (over,) = archived()
    assert (over.status, over.attempts) == ("failed", 2)
