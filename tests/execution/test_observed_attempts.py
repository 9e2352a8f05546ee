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

from django_jobqueue import Cancel, job, observers
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


def test_without_observers_the_functions_that_run_attempts_are_the_bare_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observers, "registered", ())
    assert observed(run) is run
    assert aobserved(arun) is arun


def test_each_kind_of_handler_runs_in_the_context_of_its_observers(
    seeing: Seeing, make_worker: Callable[..., HandDriven]
) -> None:
    for handler in (where_sync, where_async, where_atomic):
        handler.enqueue()
    make_worker().work()
    results = dict(ArchivedJob.objects.values_list("job_type", "result"))
    names = {name.rsplit(".")[-1]: name for name in results}
    sync, async_, atomic = (f"where_{how}" for how in ("sync", "async", "atomic"))
    assert results[names[sync]] == names[sync]
    assert results[names[async_]] == [names[async_]] * 2
    assert results[names[atomic]] == [names[atomic], True]
    assert sorted(seeing.outcomes) == sorted((name, "succeed") for name in results)
    assert inside.get() == "outside"


@pytest.mark.parametrize(
    ("word", "verb"),
    [("retry", "retry"), ("snooze", "snooze"), ("fail", "fail"), ("cancel", "cancel")],
)
def test_at_the_exit_the_outcome_is_known(
    word: str, verb: str, seeing: Seeing, make_worker: Callable[..., HandDriven]
) -> None:
    jobs.say.enqueue(word)
    worker = make_worker(threads=1)
    worker.claim()
    worker.run()
    worker.finish()
    assert seeing.outcomes == [("tests.sample.say", verb)]


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


def test_what_an_observer_is_told_is_what_the_log_says_within_it(
    seeing: Seeing,
    make_worker: Callable[..., HandDriven],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[str] = []

    def log(*args: object, **kwargs: object) -> None:
        logged.append(inside.get())

    monkeypatch.setattr("django_jobqueue.logs.log_failure", log)
    jobs.say.enqueue("fail")
    make_worker(threads=1).work()
    assert logged == ["tests.sample.say"]


@pytest.mark.django_db
def test_drain_and_perform_call_observers_too(seeing: Seeing) -> None:
    where_sync.enqueue()
    where_atomic.enqueue()
    assert len(drain()) == 2
    perform(where_async)
    assert [verb for _, verb in seeing.outcomes] == ["succeed"] * 3


@pytest.mark.django_db
def test_a_job_in_immediate_mode_is_observed_within_its_enqueue(
    seeing: Seeing, settings: Any
) -> None:
    settings.JOBQUEUE = {"MODE": "immediate"}
    made = where_sync.enqueue()
    assert made.result == made.job_type
    assert [enqueue.job_type for enqueue in seeing.enqueues] == [made.job_type]
    assert list(seeing.enqueues[0].ids) == [made.id]


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
    seeing.trace = {"traceparent": "00-1"}
    made = jobs.followed.enqueue()
    drain()
    assert made.metadata == {"trace": seeing.trace}
    follower = ArchivedJob.objects.get(job_type="tests.sample.report")
    assert follower.metadata == {"trace": seeing.trace}


@pytest.mark.django_db
def test_enqueue_many_is_one_enqueue_of_many_jobs(seeing: Seeing) -> None:
    seeing.trace = {"traceparent": "00-1"}
    ids = jobs.add.enqueue_many([{"a": 1}, {"a": 2}])
    (enqueue,) = seeing.enqueues
    assert (list(enqueue.ids), enqueue.is_many) == (list(ids), True)
    rows = QueuedJob.objects.values_list("metadata", flat=True)
    assert list(rows) == [{"trace": seeing.trace}] * 2


@pytest.mark.django_db
def test_a_duplicate_is_observed_as_the_job_that_is_there(seeing: Seeing) -> None:
    seeing.trace = {"traceparent": "00-1"}
    first = jobs.remind.enqueue(1)
    assert jobs.remind.enqueue(1).id == first.id
    assert [list(enqueue.ids) for enqueue in seeing.enqueues] == [[first.id]] * 2


@pytest.mark.django_db
def test_metadata_of_a_project_is_kept_beside_the_trace_and_before_it(
    seeing: Seeing,
) -> None:
    seeing.trace = {"traceparent": "00-1"}
    made = jobs.add.using(metadata={"tenant": 7}).enqueue(1)
    assert made.metadata == {"tenant": 7, "trace": seeing.trace}
    own = jobs.add.using(metadata={"trace": "of the project"}).enqueue(1)
    assert own.metadata == {"trace": "of the project"}


@pytest.mark.django_db
def test_a_trace_for_which_there_is_no_room_fails_no_enqueue(
    seeing: Seeing, settings: Any
) -> None:
    settings.JOBQUEUE = {"MAX_DATA_BYTES": 40}
    seeing.trace = {"traceparent": "0" * 40}
    made = jobs.add.using(metadata={"tenant": 7}).enqueue(1)
    assert made.metadata == {"tenant": 7}


@pytest.mark.django_db
def test_a_cancelled_job_that_runs_is_observed_as_cancelled(seeing: Seeing) -> None:
    assert isinstance(perform(jobs.say, {"word": "cancel"}).error, Cancel)
    assert seeing.outcomes == [("tests.sample.say", "cancel")]
