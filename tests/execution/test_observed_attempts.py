"""Observers around attempts: in threads, tasks and transactions, and in the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test import override_settings

from django_jobqueue import job, observers
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import arun, run
from django_jobqueue.execution.observed_attempts import aobserved, observed
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.observers import Enqueue, LostAttempt, Observer, observe
from django_jobqueue.testing import crash, drain, perform
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.waiting import eventually

inside: ContextVar[str] = ContextVar("inside", default="outside")


class Seeing(Observer):
    """Remembers what it sees."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.outcomes: list[tuple[str, str]] = []
        self.lost: list[LostAttempt] = []
        self.enqueues: list[Enqueue] = []
        self.trace: dict[str, str] = {}

    @contextmanager
    def around_attempt(self, attempt: Attempt) -> Iterator[None]:
        self.entered.append(attempt.job.job_type)
        token = inside.set(attempt.job.job_type)
        yield
        inside.reset(token)
        verb = "none" if attempt.outcome is None else attempt.outcome.verb.value
        self.outcomes.append((attempt.job.job_type, verb))

    @contextmanager
    def around_enqueue(self, enqueue: Enqueue) -> Iterator[Mapping[str, str]]:
        self.enqueues.append(enqueue)
        yield self.trace

    def attempt_lost(self, lost: LostAttempt) -> None:
        self.lost.append(lost)


@pytest.fixture
def seeing(monkeypatch: pytest.MonkeyPatch) -> Seeing:
    """An observer that is registered for the test."""
    monkeypatch.setattr(observers, "registered", ())
    observer = Seeing()
    observe(observer)
    return observer


@job
def where_sync() -> str:
    """Return in which context it runs."""
    return inside.get()


@job
async def where_async() -> list[str]:
    """The same, in its event loop and in the thread for sync code."""
    return [inside.get(), await sync_to_async(inside.get)()]


@job(atomic=True)
def where_atomic() -> list[Any]:
    """The same, in a transaction."""
    return [inside.get(), connection.in_atomic_block]


@job(max_crashes=1)
def crashing() -> None:
    """Take its worker along."""
    crash()


def test_without_observers_the_functions_that_run_attempts_are_the_bare_ones() -> None:
    assert observed(run) is run
    assert aobserved(arun) is arun


def test_each_kind_of_handler_runs_in_the_context_of_its_observers(
    seeing: Seeing, make_worker: Callable[..., HandDriven]
) -> None:
    names = [one.name for one in (where_sync, where_async, where_atomic)]
    for handler in (where_sync, where_async, where_atomic):
        handler.enqueue()
    make_worker().work()
    results = dict(ArchivedJob.objects.values_list("job_type", "result"))
    of_sync, of_async, of_atomic = (results[name] for name in names)
    assert of_sync == names[0]
    assert of_async == [names[1]] * 2
    assert of_atomic == [names[2], True]
    assert sorted(seeing.outcomes) == sorted((name, "succeed") for name in names)
    assert inside.get() == "outside"


def test_at_the_exit_the_outcome_is_known(
    seeing: Seeing,
    make_worker: Callable[..., HandDriven],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the log is written within the observers."""
    logged: list[str] = []

    def log(*args: object, **kwargs: object) -> None:
        logged.append(inside.get())

    monkeypatch.setattr("django_jobqueue.logs.log_failure", log)
    words = ["retry", "snooze", "fail", "cancel"]
    worker = make_worker(threads=1)
    for word in words:
        jobs.say.enqueue(word)
        worker.turn()
    assert seeing.outcomes == [("tests.sample.say", word) for word in words]
    assert {*logged} == {"tests.sample.say"}


def test_an_attempt_that_is_not_started_has_an_outcome_too(
    seeing: Seeing, make_worker: Callable[..., HandDriven]
) -> None:
    jobs.add.enqueue(1)
    worker = make_worker(threads=1)
    worker.worker.executors[0].put = lambda attempts: None  # type: ignore[method-assign]
    worker.claim()
    (attempt,) = worker.worker.held
    worker.worker.cancel(str(attempt.job.id))
    observed(run)(attempt)
    assert seeing.outcomes == [("tests.sample.add", "cancel")]


@pytest.mark.django_db
def test_drain_perform_and_immediate_mode_call_observers_too(seeing: Seeing) -> None:
    where_sync.enqueue()
    where_atomic.enqueue()
    assert len(drain()) == 2
    perform(where_async)
    assert [verb for _, verb in seeing.outcomes] == ["succeed"] * 3
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        made = where_sync.enqueue()
    assert made.result == made.job_type
    assert seeing.enqueues[-1].job_type == made.job_type
    assert list(seeing.enqueues[-1].ids) == [made.id]


@pytest.mark.django_db
def test_a_crash_is_reported_by_whoever_rescues(seeing: Seeing) -> None:
    seeing.trace = {"traceparent": "00-1"}
    made = crashing.enqueue()
    drain()
    (lost,) = seeing.lost
    assert (lost.id, lost.attempt, lost.crashes) == (made.id, 1, 1)
    assert lost.outcome.verb.value == "fail"
    assert lost.outcome.end == "crashed"
    assert lost.trace == {"traceparent": "00-1"}
    assert seeing.outcomes == []


def test_an_attempt_that_hangs_is_reported_once(
    seeing: Seeing, make_worker: Callable[..., HandDriven]
) -> None:
    gate = jobs.gates["observed"] = threading.Event()
    jobs.hang_until.enqueue("observed")
    worker = make_worker(threads=1)
    worker.claim()
    eventually(lambda: seeing.entered, what="the handler to start")
    (attempt,) = worker.worker.held
    eventually(
        lambda: worker.worker.watchdog.tick() is None or worker.worker.unresponsive,
        what="it to be given up",
    )
    worker.worker.record_ends(20, unresponsive=True)
    gate.set()
    worker.run()
    (lost,) = seeing.lost
    assert (lost.id, lost.outcome.verb.value) == (attempt.job.id, "fail")
    assert seeing.outcomes == [("tests.sample.hang_until", "none")]


def test_an_end_that_raises_is_an_outcome_for_observers(
    seeing: Seeing,
    make_worker: Callable[..., HandDriven],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def conclude(attempt: Attempt) -> None:
        raise LookupError("no end")

    monkeypatch.setattr(Attempt, "conclude", conclude)
    jobs.add.enqueue(1)
    make_worker(threads=1).work()
    assert seeing.outcomes == [("tests.sample.add", "fail")]
    assert ArchivedJob.objects.get().status == "failed"


@pytest.mark.django_db
def test_jobs_remember_the_trace_and_followers_inherit_it(seeing: Seeing) -> None:
    """Beside what a project has as metadata, and not before it."""
    seeing.trace = {"traceparent": "00-1"}
    made = jobs.followed.enqueue()
    drain()
    assert made.metadata == {"trace": seeing.trace}
    follower = ArchivedJob.objects.get(job_type="tests.sample.report")
    assert follower.metadata == {"trace": seeing.trace}
    made = jobs.add.using(metadata={"tenant": 7}).enqueue(1)
    assert made.metadata == {"tenant": 7, "trace": seeing.trace}
    own = jobs.add.using(metadata={"trace": "of the project"}).enqueue(1)
    assert own.metadata == {"trace": "of the project"}
    seeing.trace = {"traceparent": "0" * 40}
    with override_settings(JOBQUEUE={"MAX_DATA_BYTES": 40}):  # there is no room
        made = jobs.add.using(metadata={"tenant": 7}).enqueue(1)
    assert made.metadata == {"tenant": 7}


@pytest.mark.django_db
def test_many_are_one_enqueue_and_a_duplicate_that_of_the_first(seeing: Seeing) -> None:
    seeing.trace = {"traceparent": "00-1"}
    ids = jobs.add.enqueue_many([{"a": 1}, {"a": 2}])
    (enqueue,) = seeing.enqueues
    assert (list(enqueue.ids), enqueue.is_many) == (list(ids), True)
    rows = QueuedJob.objects.values_list("metadata", flat=True)
    assert list(rows) == [{"trace": seeing.trace}] * 2
    first = jobs.remind.enqueue(1)
    assert jobs.remind.enqueue(1).id == first.id
    assert [list(each.ids) for each in seeing.enqueues[1:]] == [[first.id]] * 2
