"""Middleware around handlers: Django's own shape, sync and async."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone, translation

from django_jobqueue import Context, Retry, Snooze, current_job
from django_jobqueue.domain.retry_decision import Outcome, StopReason, Verb
from django_jobqueue.execution import middleware_chain
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import arun, run
from django_jobqueue.logs import JobFilter, JobLogHandler
from django_jobqueue.middleware import count_queries, localize, log_context
from django_jobqueue.models import ArchivedJob, Report
from django_jobqueue.store.queue.finish import Finished
from tests.execution.test_attempt import attempt_of
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

GetResult = Callable[[Context], Any]
calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> Iterator[None]:
    calls.clear()
    middleware_chain._built.clear()
    yield
    middleware_chain._built.clear()


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
    with override_settings(JOBQUEUE={"MIDDLEWARE": [here("outer")]}):
        outcome = outcome_of(lambda a: a, '{"a": 7}', middleware=[here("inner")])
    assert outcome.result == "7"
    assert calls == ["built outer", "outer in", "inner True", "outer out"]


def test_a_chain_is_built_once_for_a_job_type() -> None:
    attempt = attempt_of(lambda: None, middleware=[outer])
    for _ in range(3):
        again = attempt_of(lambda: None)
        again.declaration = attempt.declaration
        run(again)
    assert calls.count("built outer") == 1
    assert calls.count("outer in") == 3


def test_without_middleware_there_is_no_chain_and_no_context() -> None:
    attempt = attempt_of(lambda: 1)
    run(attempt)
    assert middleware_chain.chain_of(attempt.declaration) is None
    assert attempt.context is None


def test_a_handler_with_a_context_is_given_the_same_one() -> None:
    seen: list[Context] = []

    def note(get_result: GetResult) -> GetResult:
        def middleware(context: Context) -> Any:
            seen.append(context)
            return get_result(context)

        return middleware

    def handler(context: Context) -> None:
        seen.append(context)

    outcome_of(handler, takes_context=True, middleware=[note])
    assert len(seen) == 2
    assert seen[0] is seen[1]


def test_it_may_change_the_result_and_the_data() -> None:
    def other_data(get_result: GetResult) -> GetResult:
        def middleware(context: Context) -> Any:
            context.data["a"] += 1
            return get_result(context)

        return middleware

    outcome = outcome_of(lambda a: a, '{"a": 7}', middleware=[doubled, other_data])
    assert outcome.result == "16"


def test_it_may_answer_without_the_handler() -> None:
    def instead(get_result: GetResult) -> GetResult:
        return lambda context: "not today"

    outcome = outcome_of(lambda: 1 / 0, middleware=[instead])
    assert outcome.result == '"not today"'


@pytest.mark.parametrize(
    ("error", "verb"),
    [(Retry(), Verb.RETRY), (Snooze(60), Verb.SNOOZE), (ValueError("x"), Verb.RETRY)],
)
def test_what_it_raises_counts_as_the_handler_s(error: Exception, verb: Verb) -> None:
    def refuse(get_result: GetResult) -> GetResult:
        def middleware(context: Context) -> Any:
            raise error

        return middleware

    assert outcome_of(lambda: None, middleware=[refuse]).verb is verb


def test_it_sees_what_the_handler_raises() -> None:
    def forgiving(get_result: GetResult) -> GetResult:
        def middleware(context: Context) -> Any:
            try:
                return get_result(context)
            except ZeroDivisionError:
                return None

        return middleware

    assert outcome_of(lambda: 1 / 0, middleware=[forgiving]).verb is Verb.SUCCEED


def test_a_factory_may_say_that_it_is_not_used() -> None:
    def unused(get_result: GetResult) -> GetResult:
        raise MiddlewareNotUsed

    attempt = attempt_of(lambda: 3, middleware=[unused])
    assert run(attempt).outcome.result == "3"
    assert middleware_chain.chain_of(attempt.declaration) is None


def test_a_factory_that_returns_nothing_is_told_so() -> None:
    def nothing(get_result: GetResult) -> None:
        """Forgets its return."""

    outcome = outcome_of(lambda: None, middleware=[nothing])
    assert outcome.failure is not None
    assert "must return a function of the context" in outcome.failure.message


def test_a_factory_must_be_capable_of_something() -> None:
    def incapable(get_result: GetResult) -> GetResult:
        return get_result

    incapable.sync_capable = False  # type: ignore[attr-defined]
    with pytest.raises(ImproperlyConfigured, match="capable of sync or of async"):
        middleware_chain.load(incapable)


def test_an_async_middleware_stands_around_an_async_handler() -> None:
    attempt = attempt_of(_four, middleware=[Waiting])
    assert asyncio.run(arun(attempt)).outcome.result == "4"
    assert calls == ["waiting", "handler"]


def test_an_async_middleware_stands_around_a_sync_handler() -> None:
    assert outcome_of(lambda: 5, middleware=[Waiting]).result == "5"
    assert calls == ["waiting"]


def test_a_sync_middleware_stands_around_an_async_handler() -> None:
    attempt = attempt_of(_four, middleware=[Waiting, inner, doubled])
    assert asyncio.run(arun(attempt)).outcome.result == "8"
    assert calls == ["waiting", "inner True", "handler"]


def test_async_handlers_within_a_sync_middleware_reach_the_database(
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


def test_other_settings_mean_other_chains() -> None:
    attempt = attempt_of(lambda: 2)
    with override_settings(JOBQUEUE={"MIDDLEWARE": [here("doubled")]}):
        assert run(attempt).outcome.result == "4"
    again = attempt_of(lambda: 2)
    again.declaration = attempt.declaration
    assert run(again).outcome.result == "2"


def test_jobs_of_the_queue_itself_know_nothing_of_the_project_s() -> None:
    from django_jobqueue.jobs import bulk

    with override_settings(JOBQUEUE={"MIDDLEWARE": [here("outer")]}):
        assert middleware_chain.middleware_of(bulk.declaration) == []
        assert middleware_chain.middleware_of(jobs.add.declaration) == [here("outer")]


# Around an atomic job.


def test_around_an_atomic_job_it_is_inside_of_the_transaction(
    worker: HandDriven,
) -> None:
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

    def handler() -> list[str]:
        return [translation.get_language(), timezone.get_current_timezone_name()]

    async def ahandler() -> list[str]:
        await asyncio.sleep(0)
        return handler()

    attempt = attempt_of(ahandler if is_async else handler, middleware=[localize])
    attempt.job = attempt.job._replace(metadata=metadata)
    finished = asyncio.run(arun(attempt)) if is_async else run(attempt)
    assert finished.outcome.result is not None
    found: list[Any] = json.loads(finished.outcome.result)
    return found


@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_speaks_the_language_of_the_enqueue(is_async: bool) -> None:
    before = [translation.get_language(), timezone.get_current_timezone_name()]
    metadata = '{"language": "de", "time_zone": "Europe/Berlin"}'
    assert localized(metadata, is_async=is_async) == ["de", "Europe/Berlin"]
    after = [translation.get_language(), timezone.get_current_timezone_name()]
    assert after == before


@pytest.mark.parametrize(
    "metadata",
    [
        "{}",
        '{"language": "../../etc", "time_zone": "../../etc/passwd"}',
        '{"language": 7, "time_zone": ["x"]}',
        '{"time_zone": "Europe/Atlantis"}',
    ],
)
def test_what_is_unknown_stays_as_it_is(metadata: str) -> None:
    before = [translation.get_language(), timezone.get_current_timezone_name()]
    assert localized(metadata) == before


def test_what_a_job_type_captures_is_active_without_any_setting() -> None:
    attempt = attempt_of(lambda: translation.get_language(), capture=["language"])
    attempt.job = attempt.job._replace(metadata='{"language": "de"}')
    assert run(attempt).outcome.result == '"de"'


# Ours: log records.


class Keep(logging.Handler):
    """Keeps the records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def keep() -> Iterator[Keep]:
    keep, logger = Keep(), logging.getLogger("tests.handlers")
    logger.addHandler(keep)
    logger.setLevel(logging.DEBUG)
    yield keep
    logger.removeHandler(keep)


def test_log_records_of_a_handler_say_which_job_it_is(keep: Keep) -> None:
    attempt = attempt_of(
        lambda: logging.getLogger("tests.handlers").info("at work"),
        middleware=[log_context],
    )
    run(attempt)
    (record,) = keep.records
    assert vars(record)["job_id"] == str(attempt.job.id)
    assert vars(record)["job_type"] == "tests.job"
    assert vars(record)["attempt"] == 1


def test_elsewhere_the_attributes_are_empty_and_given_ones_stay(keep: Keep) -> None:
    keep.addFilter(JobFilter())
    logger = logging.getLogger("tests.handlers")
    logger.info("elsewhere")
    logger.info("given", extra={"job_id": "mine"})
    assert [vars(r)["job_id"] for r in keep.records] == ["", "mine"]
    assert [vars(r)["attempt"] for r in keep.records] == ["", ""]


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
    three = jobs.query.enqueue(count=3).id
    two = jobs.query.enqueue(count=2).id
    jobs.query.enqueue(count=0)
    worker.work()
    found = dict(Report.objects.values_list("job_id", "queries"))
    assert found == {three: 3, two: 2}
    assert all(ms > 0 for ms in Report.objects.values_list("query_ms", flat=True))


@pytest.mark.usefixtures("_counted")
def test_async_handlers_that_share_a_connection_have_counts_of_their_own(
    worker: HandDriven,
) -> None:
    counts = {jobs.query_by_turns.enqueue(count=n).id: n for n in (5, 1, 3)}
    worker.work()
    assert dict(Report.objects.values_list("job_id", "queries")) == counts


@pytest.mark.usefixtures("_counted")
def test_an_attempt_that_fails_has_counted_what_it_sent(worker: HandDriven) -> None:
    id = jobs.query.enqueue(count=2, fail=True).id
    worker.work()
    assert Report.objects.get(job_id=id).queries == 2


@pytest.mark.django_db
def test_a_connection_that_was_there_before_is_counted_on() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    attempt: Attempt = attempt_of(
        lambda: jobs.query.function(count=2), middleware=[count_queries]
    )
    run(attempt)
    assert attempt.here().report.take().queries == 2
