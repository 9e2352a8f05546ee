"""Tasks become jobs."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_jobqueue import DuplicateJob, InvalidArguments
from django_jobqueue.backends import JobQueueBackend, JobTask
from django_jobqueue.backends.compat import (
    InvalidTask,
    Task,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import JobType
from tests.backends.conftest import in_a_loop
from tests.sample import tasks
from tests.support.rows import queued
from tests.support.tables import differing, refusal

pytestmark = pytest.mark.django_db(transaction=True)
BACKEND = "django_jobqueue.backends.JobQueueBackend"
SOON = timedelta(hours=1)


@pytest.fixture
def _known() -> None:
    """The row of the job type is there, and was looked at a moment ago."""
    tasks.add.enqueue(1)


def statements(queries: CaptureQueriesContext) -> list[str]:
    return [query["sql"].split()[0] for query in queries]


@pytest.mark.usefixtures("_known")
def test_enqueue_get_result_and_refresh_are_one_query_each() -> None:
    with CaptureQueriesContext(connection) as queries:
        result = tasks.add.enqueue(1, b=2)
        tasks.add.get_result(result.id)
        result.refresh()
    assert statements(queries) == ["INSERT", "WITH", "WITH"]

    async def use_them() -> None:
        result = await tasks.add.aenqueue(1)
        assert await tasks.add.aget_result(result.id) == result
        await result.arefresh()

    with CaptureQueriesContext(connection) as queries:
        async_to_sync(use_them)()
    assert statements(queries) == ["INSERT", "WITH", "WITH"]


LATER = datetime(2099, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def test_a_result_is_the_same_when_it_is_read() -> None:
    for task in (
        tasks.add,
        tasks.add.using(priority=-5, queue_name="other"),
        tasks.add.using(run_after=LATER),
        tasks.add.using(run_after=SOON),
        tasks.add.using(max_attempts=7, metadata={"a": 1}, tags=["x"]),
        tasks.add.using(expires_at=LATER, unique_key="k"),
    ):
        result = task.enqueue(1, b=2)
        assert task.get_result(result.id) == result
        assert (result.args, result.kwargs) == ([1], {"b": 2})
        assert (result.status, result.attempts) == (TaskResultStatus.READY, 0)
        assert result.enqueued_at is not None
        row = queued(id=result.id)[0]
        if task.run_after is not None:
            assert result.task.run_after == row.run_after
        if task.run_after == SOON:
            assert abs(row.run_after - row.created_at - SOON) < timedelta(minutes=1)


def test_a_malformed_or_unknown_id_is_no_result() -> None:
    with CaptureQueriesContext(connection) as queries:
        malformed: tuple[Any, ...] = ("123", "", "not-an-id", 7, None)
        for id in malformed:
            with pytest.raises(TaskResultDoesNotExist) as caught:
                task_backends["default"].get_result(id)
            assert caught.value.__cause__ is not None
    assert list(queries) == []
    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_result(str(new_id()))


def test_arguments_are_kept_by_name() -> None:
    tasks.add.enqueue(b=2, a=1)
    tasks.add.enqueue(1, b=2)
    tasks.anything.enqueue(1, 2, three=3)
    assert [job.data for job in queued()] == [
        {"a": 1, "b": 2},
        {"a": 1, "b": 2, "*": {"args": 1}},
        {"three": 3, "*": {"args": [1, 2]}},
    ]


CALLS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((), {}, "is missing 'a'"),
    ((1, 2, 3), {}, "takes at most 2 positional arguments, not 3"),
    ((1,), {"a": 2}, "got 'a' twice"),
    ((1,), {"c": 2}, "has no parameter 'c'"),
    ((date(2026, 1, 1),), {}, "Unsupported type"),
]


def test_a_call_that_does_not_fit_is_a_type_error() -> None:
    def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return refusal(TypeError, lambda: tasks.add.enqueue(*args, **kwargs))

    assert differing(CALLS, ask, operator.contains) == []
    with pytest.raises(TypeError, match="is given its 'context' by the worker"):
        tasks.look.enqueue(context=1)
    with pytest.raises(InvalidArguments, match="which JSON does not have"):
        tasks.add.enqueue(float("nan"))
    with pytest.raises(InvalidTask, match=r"add = add\.using\(concurrency=…\)"):
        tasks.add.using(concurrency=5).enqueue(1)
    with pytest.raises(TypeError, match="Did you mean 'max_attempts'"):
        tasks.add.using(max_attempt=3)  # type: ignore[call-arg]
    params = {"BACKEND": BACKEND, "QUEUES": ["mail"]}
    elsewhere = tasks.add.using(queue_name="unknown")
    with override_settings(TASKS={"default": params}):
        text = refusal(InvalidTask, lambda: elsewhere.enqueue(1))
    assert "'unknown' is not valid" in text
    with pytest.raises(TypeError):
        task_backends["default"].enqueue_many(
            [(tasks.add, (1,), {}), (tasks.aadd, (), {"wrong": 1})]
        )
    assert queued() == []


def test_bytes_and_tuples_are_what_the_framework_makes_of_them() -> None:
    result = tasks.anything.enqueue(b"bytes", (1, 2))
    assert result.args == ["bytes", [1, 2]]
    assert tasks.anything.get_result(result.id) == result


def test_one_job_may_have_more_to_say() -> None:
    more: dict[str, Any] = {"max_attempts": 9, "expires_at": LATER, "tags": ["a", "b"]}
    more |= {"metadata": {"trace": 1}, "enqueued_by": "tests"}
    tasks.add.using(**more).enqueue(1)
    (job,) = queued()
    assert {name: getattr(job, name) for name in more} == more


def test_the_row_of_the_job_type_says_what_the_task_says() -> None:
    tasks.charge.enqueue(1), tasks.changed.enqueue(), tasks.add.enqueue(1)
    half, five, hour = (timedelta(seconds=n) for n in (30, 5, 3_600))
    once, again = "at_most_once", "at_least_once"
    expected: dict[JobTask, tuple[Any, ...]] = {
        tasks.charge: ("mail", 7, 1, half, once, 2, ["card"]),
        tasks.changed: ("default", 0, 4, five, again, None, []),
        tasks.add: ("default", 0, 1, hour, again, None, []),
    }
    columns = ("queue", "priority", "max_attempts", "timeout", "delivery")
    for task, values in expected.items():
        row = JobType.objects.filter(name=task.module_path)
        (found,) = row.values_list(*columns, "concurrency", "sensitive")
        assert found == values
        assert row.get().handler == f"task tests.sample.tasks:{task.name}"


def test_an_operators_priority_counts_for_tasks_that_say_none() -> None:
    tasks.add.enqueue(1)
    JobType.objects.filter(name=tasks.add.module_path).update(priority_override=42)
    with transaction.atomic():  # a look at the row is not remembered here
        result = tasks.add.using(queue_name="other").enqueue(1)
        assert result.task.priority == 42
        assert tasks.add.get_result(result.id) == result
        assert tasks.add.using(priority=3).enqueue(1).task.priority == 3


def test_a_unique_task_counts_its_arguments_however_they_are_given() -> None:
    tasks.once.enqueue(1)
    with pytest.raises(DuplicateJob):
        tasks.once.enqueue(order=1)
    tasks.once.enqueue(2)
    assert len(queued()) == 2
    debounced = tasks.add.using(unique_key="sum", debounce=60)
    first, again = debounced.enqueue(1), debounced.enqueue(2)
    assert first.id == again.id
    (row,) = queued(id=first.id)
    assert row.data["a"] == 2
    assert row.run_after > row.created_at + timedelta(seconds=55)


def test_the_result_of_a_unique_task_says_whether_it_is_new() -> None:
    kept = tasks.once.using(on_duplicate="return")
    first, again = kept.enqueue(1), kept.enqueue(1)
    assert (first.is_new, again.is_new, again.is_replaced) == (True, False, False)
    replacing = tasks.once.using(unique_key="k", on_duplicate="replace")
    first, again = replacing.enqueue(1), replacing.enqueue(2)
    assert (first.is_new, again.is_new, again.is_replaced) == (True, False, True)
    assert again.id == first.id
    many = kept.enqueue_many([{"order": 1}, {"order": 2}])
    assert [one.is_new for one in many] == [False, True]
    assert not kept.get_result(first.id).is_new


def test_receivers_that_raise_harm_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def receive(**kwargs: Any) -> None:
        raise RuntimeError("the receiver")

    task_enqueued.connect(receive)
    try:
        result = tasks.add.enqueue(1)
    finally:
        task_enqueued.disconnect(receive)
    assert tasks.add.get_result(result.id) == result
    assert "the receiver" in caplog.text


@pytest.fixture
def told() -> Iterator[list[Any]]:
    """What an async receiver was told, and by whom."""
    kept: list[Any] = []

    async def receive(*, sender: Any, task_result: Any, **kwargs: Any) -> None:
        kept.append((sender, task_result.id))

    task_enqueued.connect(receive)
    yield kept
    task_enqueued.disconnect(receive)


@in_a_loop
async def test_async_receivers_are_awaited(told: list[Any]) -> None:
    result = await tasks.add.aenqueue(1)
    many = await tasks.add.aenqueue_many([{"a": 1}, {"a": 2}])
    assert told == [(JobQueueBackend, r.id) for r in (result, *many)]


def test_many_are_enqueued_at_once_and_in_order(told: list[Any]) -> None:
    calls = [(tasks.add, (n,), {}) for n in range(5)]
    calls += [(tasks.add.using(priority=5), (), {"a": 5}), (tasks.aadd, (6,), {})]
    results = task_backends["default"].enqueue_many(calls)
    assert [result.args or [result.kwargs["a"]] for result in results] == [
        [n] for n in range(7)
    ]
    assert [r.task.get_backend().get_result(r.id) for r in results] == results
    assert [id for _, id in told] == [result.id for result in results]


def test_other_aliases_take_our_tasks_and_ours_plain_ones() -> None:
    dummy = f"{Task.__module__.rpartition('.')[0]}.backends.dummy.DummyBackend"
    ours = {"BACKEND": BACKEND, "QUEUES": []}
    with override_settings(TASKS={"default": ours, "second": ours}):
        result = tasks.add.using(backend="second").enqueue(1)
        assert result.backend == result.task.backend == "second"
        assert task_backends["default"].get_result(result.id) == result
    with override_settings(TASKS={"default": {"BACKEND": dummy}, "ours": ours}):
        more: Any = {"priority": 0, "backend": "default", "queue_name": "default"}
        plain = Task(func=tasks.add.func, run_after=None, **more)
        result = plain.using(backend="ours").enqueue(1)
        assert task_backends["ours"].get_result(result.id).args == [1]


def test_a_call_made_by_hand_is_checked_like_one_of_code() -> None:
    declaration = registry.get(tasks.add.module_path)
    assert declaration is not None
    problem = declaration.parameters.problem
    assert problem({"a": 1}) is problem({"a": 1, "*": {"args": 1}}) is None
    rows: list[tuple[Any, str]] = [
        ({}, "is missing 'a'"),
        ([1], "must be an object"),
        ({"a": 1, "*": 5}, "must be an object"),
        ({"a": 1, "*": {"args": [1]}}, "a number of arguments"),
    ]
    assert differing(rows, lambda data: str(problem(data)), operator.contains) == []
