"""Middleware around handlers: Django's own shape, sync and async."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone, translation

from django_jobqueue import Context, Retry, Snooze, current_job
from django_jobqueue.domain.retry_decision import Outcome, StopReason, Verb
from django_jobqueue.execution import attempt_steps, middleware_chain
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import arun, run
from django_jobqueue.jobs import bulk
from django_jobqueue.logs import JobFilter, JobLogHandler
from django_jobqueue.middleware import count_queries, localize, log_context
from django_jobqueue.models import ArchivedJob, Report
from django_jobqueue.store.queue.finish import Finished
from tests.execution.test_attempt import attempt_of, raising
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

GetResult = Callable[[Context], Any]
calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> Iterator[None]:
    calls.clear()
    built = attempt_steps._chains  # private: chains of other tests
    built.clear()
    yield
    built.clear()


def outer(get_result: GetResult) -> GetResult:
    """A sync middleware, by the path of which it is named."""
    calls.append("built outer")

    def middleware(context: Context) -> Any:
        calls.append("outer in")
        try:
            return get_result(context)
        finally:
            calls.append("outer out")

    return middleware


def inner(get_result: GetResult) -> GetResult:
    def middleware(context: Context) -> Any:
        calls.append(f"inner {current_job() is context}")
        return get_result(context)

    return middleware


def doubled(get_result: GetResult) -> GetResult:
    return lambda context: 2 * get_result(context)


class Waiting:
    """An async middleware, as a class."""

    sync_capable = False
    async_capable = True

    def __init__(self, get_result: GetResult) -> None:
        self.get_result = get_result

    async def __call__(self, context: Context) -> Any:
        calls.append("waiting")
        await asyncio.sleep(0)
        return await self.get_result(context)


def here(name: str) -> str:
    return f"{__name__}.{name}"


def outcome_of(function: Any, data: str = "{}", **options: Any) -> Outcome:
    return run(attempt_of(function, data, **options)).outcome


async def _four() -> int:
    calls.append("handler")
    return 4


def test_the_setting_s_are_outside_of_the_job_type_s() -> None:
    """Those of the queue itself know nothing of the project's."""
    with override_settings(JOBQUEUE={"MIDDLEWARE": [here("outer")]}):
        outcome = outcome_of(lambda a: a, '{"a": 7}', middleware=[here("inner")])
        assert middleware_chain.middleware_of(bulk.declaration) == []
        assert middleware_chain.middleware_of(jobs.add.declaration) == [here("outer")]
    assert outcome.result == "7"
    assert calls == ["built outer", "outer in", "inner True", "outer out"]


def test_a_chain_is_built_once_for_a_job_type_and_its_settings() -> None:
    declaration = attempt_of(lambda: 2, middleware=[outer]).declaration

    def result() -> str | None:
        attempt = attempt_of(lambda: 2)
        attempt.declaration = declaration
        return run(attempt).outcome.result

    assert [result(), result()] == ["2", "2"]
    assert calls == ["built outer", *["outer in", "outer out"] * 2]
    with override_settings(JOBQUEUE={"MIDDLEWARE": [here("doubled")]}):
        assert result() == "4"
    assert result() == "2"


def test_a_handler_with_a_context_is_given_the_same_one() -> None:
    seen: list[Context] = []

    def note(get_result: GetResult) -> GetResult:
        def middleware(context: Context) -> Any:
            seen.append(context)
            return get_result(context)

        return middleware

    outcome_of(
        lambda context: seen.append(context), takes_context=True, middleware=[note]
    )
    assert len(seen) == 2
    assert seen[0] is seen[1]


def test_it_may_change_the_result_and_the_data_or_answer_itself() -> None:
    def other_data(get_result: GetResult) -> GetResult:
        def middleware(context: Context) -> Any:
            context.data["a"] += 1
            return get_result(context)

        return middleware

    outcome = outcome_of(lambda a: a, '{"a": 7}', middleware=[doubled, other_data])
    assert outcome.result == "16"
    instead = outcome_of(
        lambda: 1 / 0, middleware=[lambda _: lambda context: "not today"]
    )
    assert instead.result == '"not today"'


def test_what_it_raises_counts_as_the_handler_s_and_it_sees_what_that_raises() -> None:
    def forgiving(get_result: GetResult) -> GetResult:
        def middleware(context: Context) -> Any:
            with suppress(ZeroDivisionError):
                return get_result(context)

        return middleware

    verbs = [(Retry(), Verb.RETRY), (Snooze(60), Verb.SNOOZE), (OSError(), Verb.RETRY)]
    for error, verb in verbs:
        refuse = raising(error)
        middleware = [lambda _, refuse=refuse: lambda context: refuse()]
        assert outcome_of(lambda: None, middleware=middleware).verb is verb
    assert outcome_of(lambda: 1 / 0, middleware=[forgiving]).verb is Verb.SUCCEED


def test_a_factory_may_say_that_it_is_not_used_and_has_rules() -> None:
    def unused(get_result: GetResult) -> GetResult:
        raise MiddlewareNotUsed

    def incapable(get_result: GetResult) -> GetResult:
        return get_result

    for attempt in (attempt_of(lambda: 3, middleware=[unused]), attempt_of(lambda: 3)):
        assert run(attempt).outcome.result == "3"
        assert middleware_chain.chain_of(attempt.declaration) is None
    assert attempt.context is None
    outcome = outcome_of(lambda: None, middleware=[lambda get_result: None])
    assert outcome.failure is not None
    assert "must return a function of the context" in outcome.failure.message
    incapable.sync_capable = False  # type: ignore[attr-defined]
    with pytest.raises(ImproperlyConfigured, match="capable of sync or of async"):
        middleware_chain.load(incapable)


def test_async_and_sync_middleware_stand_around_async_and_sync_handlers() -> None:
    assert outcome_of(lambda: 5, middleware=[Waiting]).result == "5"
    assert calls == ["waiting"]
    calls.clear()
    for middleware, result in (([Waiting], "4"), ([Waiting, inner, doubled], "8")):
        attempt = attempt_of(_four, middleware=middleware)
        assert asyncio.run(arun(attempt)).outcome.result == result
    assert calls == ["waiting", "handler", "waiting", "inner True", "handler"]


def test_async_handlers_in_a_sync_middleware_reach_the_database(
    worker: HandDriven,
) -> None:
    with override_settings(JOBQUEUE={"MIDDLEWARE": [here("outer")]}):
        for count in (3, 1, 2):
            jobs.query_by_turns.enqueue(count=count)
        worker.work()
    assert [job.status for job in ArchivedJob.objects.all()] == ["succeeded"] * 3
    assert calls[1:] == ["outer in", "outer out"] * 3


def test_an_async_handler_within_a_sync_middleware_can_be_told_to_stop() -> None:
    async def forever() -> None:
        calls.append("began")
        await asyncio.sleep(3_600)

    async def cancelled() -> Finished:
        attempt = attempt_of(forever, middleware=[inner])
        attempt.task = asyncio.create_task(arun(attempt))
        while "began" not in calls:
            await asyncio.sleep(0.005)
        attempt.interrupt(StopReason.CANCEL)
        return await attempt.task

    assert asyncio.run(cancelled()).outcome.verb is Verb.CANCEL


# Around an atomic job.


def test_around_an_atomic_job_it_is_in_the_transaction(worker: HandDriven) -> None:
    with override_settings(JOBQUEUE={"MIDDLEWARE": [here("in_transaction")]}):
        id = jobs.tell_atomically.enqueue(gate="open").id
        jobs.gates["open"] = threading.Event()
        jobs.gates["open"].set()
        worker.work()
    assert calls == ["True"]
    assert ArchivedJob.objects.get(id=id).status == "succeeded"


def in_transaction(get_result: GetResult) -> GetResult:
    def middleware(context: Context) -> Any:
        calls.append(str(transaction.get_connection().in_atomic_block))
        return get_result(context)

    return middleware


# Ours: the language and the time zone.


def localized(metadata: str, *, is_async: bool = False) -> list[Any]:
    """What is active in a handler whose job has this metadata."""

    async def aactive() -> list[str]:
        await asyncio.sleep(0)
        return active()

    attempt = attempt_of(aactive if is_async else active, middleware=[localize])
    attempt.job = attempt.job._replace(metadata=metadata)
    finished = asyncio.run(arun(attempt)) if is_async else run(attempt)
    assert finished.outcome.result is not None
    found: list[Any] = json.loads(finished.outcome.result)
    return found


def active() -> list[str]:
    return [translation.get_language(), timezone.get_current_timezone_name()]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_speaks_the_language_of_the_enqueue(is_async: bool) -> None:
    before = active()
    metadata = '{"language": "de", "time_zone": "Europe/Berlin"}'
    assert localized(metadata, is_async=is_async) == ["de", "Europe/Berlin"]
    assert active() == before
    for unknown in (
        "{}",
        '{"language": "../../etc", "time_zone": "../../etc/passwd"}',
        '{"language": 7, "time_zone": ["x"]}',
        '{"time_zone": "Europe/Atlantis"}',
    ):
        assert localized(unknown, is_async=is_async) == before


def test_what_a_job_type_captures_is_active_without_any_setting() -> None:
    attempt = attempt_of(lambda: translation.get_language(), capture=["language"])
    attempt.job = attempt.job._replace(metadata='{"language": "de"}')
    assert run(attempt).outcome.result == '"de"'


# Ours: log records.


def test_log_records_of_a_handler_say_which_job_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("tests.handlers")
    caplog.set_level(logging.DEBUG, logger.name)
    attempt = attempt_of(lambda: logger.info("at work"), middleware=[log_context])
    run(attempt)
    (record,) = [r for r in caplog.records if r.name == logger.name]
    said = [vars(record)[name] for name in ("job_id", "job_type", "attempt")]
    assert said == [str(attempt.job.id), "tests.job", 1]
    # Elsewhere the attributes are empty, and given ones stay.
    caplog.clear()
    of_jobs = JobFilter()
    caplog.handler.addFilter(of_jobs)
    logger.info("elsewhere")
    logger.info("given", extra={"job_id": "mine"})
    caplog.handler.removeFilter(of_jobs)
    assert [vars(r)["job_id"] for r in caplog.records] == ["", "mine"]
    assert [vars(r)["attempt"] for r in caplog.records] == ["", ""]


def test_what_a_handler_logs_can_be_kept_with_its_attempt() -> None:
    logger = logging.getLogger("tests.handlers")
    handler = JobLogHandler()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        logger.info("elsewhere")
        attempt = attempt_of(lambda: logger.warning("low stock: %d", 3))
        run(attempt)
    finally:
        logger.removeHandler(handler)
    lines = attempt.here().report.take().lines
    assert [line[1:] for line in lines] == [("warning", "low stock: 3")]


# Ours: queries.


@pytest.fixture
def _counted() -> Iterator[None]:
    with override_settings(
        JOBQUEUE={"MIDDLEWARE": ["django_jobqueue.middleware.count_queries"]}
    ):
        yield


@pytest.mark.usefixtures("_counted")
def test_queries_are_counted_for_each_attempt(worker: HandDriven) -> None:
    """Also if it fails, and of async handlers that share a connection."""
    counts = {jobs.query.enqueue(count=n).id: n for n in (3, 2)}
    counts[jobs.query.enqueue(count=2, fail=True).id] = 2
    jobs.query.enqueue(count=0)
    counts |= {jobs.query_by_turns.enqueue(count=n).id: n for n in (5, 1, 3)}
    worker.turn()
    assert dict(Report.objects.values_list("job_id", "queries")) == counts
    assert all(ms > 0 for ms in Report.objects.values_list("query_ms", flat=True))


@pytest.mark.django_db
def test_a_connection_that_was_there_before_is_counted_on() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    attempt: Attempt = attempt_of(
        lambda: jobs.query.function(count=2), middleware=[count_queries]
    )
    run(attempt)
    assert attempt.here().report.take().queries == 2
