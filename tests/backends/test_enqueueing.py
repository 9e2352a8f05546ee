"""Tasks become jobs."""

from __future__ import annotations

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
from django_jobqueue.domain.policy import UNSET, Policy
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import JobType
from tests.backends.conftest import in_a_loop
from tests.sample import tasks
from tests.support.rows import queued

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
    assert statements(queries) == ["INSERT"]
    with CaptureQueriesContext(connection) as queries:
        tasks.add.get_result(result.id)
    assert statements(queries) == ["WITH"]
    with CaptureQueriesContext(connection) as queries:
        result.refresh()
    assert statements(queries) == ["WITH"]


@pytest.mark.usefixtures("_known")
def test_their_async_twins_are_one_query_each() -> None:
    async def use_them() -> None:
        result = await tasks.add.aenqueue(1)
        assert await tasks.add.aget_result(result.id) == result
        await result.arefresh()

    with CaptureQueriesContext(connection) as queries:
        async_to_sync(use_them)()
    assert statements(queries) == ["INSERT", "WITH", "WITH"]


@pytest.mark.parametrize(
    "task",
    [
        tasks.add,
        tasks.add.using(priority=-5, queue_name="other"),
        tasks.add.using(run_after=datetime(2099, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)),
        tasks.add.using(run_after=SOON),
        tasks.add.using(max_attempts=7, metadata={"a": 1}, tags=["x"]),
        tasks.add.using(expires_at=datetime(2099, 1, 1, tzinfo=UTC), unique_key="k"),
    ],
)
def test_a_result_is_the_same_when_it_is_read(task: JobTask) -> None:
    result = task.enqueue(1, b=2)
    assert task.get_result(result.id) == result
    assert (result.args, result.kwargs) == ([1], {"b": 2})
    assert (result.status, result.attempts) == (TaskResultStatus.READY, 0)
    assert result.enqueued_at is not None


def test_in_a_transaction_others_see_nothing_until_it_is_committed(own: Any) -> None:
    with transaction.atomic():
        result = tasks.add.enqueue(1)
        assert result.enqueued_at is not None
        assert own.fetch("SELECT id FROM jobqueue_queuedjob") == []
    assert [str(id) for (id,) in own.fetch("SELECT id FROM jobqueue_queuedjob")] == [
        result.id
    ]


@pytest.mark.parametrize("id", ["123", "", "not-an-id", 7, None])
def test_a_malformed_id_is_no_result_and_no_query(id: Any) -> None:
    with CaptureQueriesContext(connection) as queries:
        with pytest.raises(TaskResultDoesNotExist) as caught:
            task_backends["default"].get_result(id)
        assert caught.value.__cause__ is not None
    assert list(queries) == []


def test_an_unknown_id_is_no_result() -> None:
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


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "is missing 'a'"),
        ((1, 2, 3), {}, "takes at most 2 positional arguments, not 3"),
        ((1,), {"a": 2}, "got 'a' twice"),
        ((1,), {"c": 2}, "has no parameter 'c'"),
        ((date(2026, 1, 1),), {}, "Unsupported type"),
    ],
)
def test_a_call_that_does_not_fit_is_a_type_error(
    args: tuple[Any, ...], kwargs: dict[str, Any], text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        tasks.add.enqueue(*args, **kwargs)
    assert queued() == []


def test_the_context_is_no_argument() -> None:
    with pytest.raises(TypeError, match="is given its 'context' by the worker"):
        tasks.look.enqueue(context=1)


def test_what_would_not_survive_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="which JSON does not have"):
        tasks.add.enqueue(float("nan"))


def test_bytes_and_tuples_are_what_the_framework_makes_of_them() -> None:
    result = tasks.anything.enqueue(b"bytes", (1, 2))
    assert result.args == ["bytes", [1, 2]]
    assert tasks.anything.get_result(result.id) == result


def test_a_wait_from_now_is_counted_from_the_enqueue() -> None:
    result = tasks.add.using(run_after=SOON).enqueue(1)
    (job,) = queued()
    assert result.task.run_after == job.run_after
    assert abs(job.run_after - job.created_at - SOON) < timedelta(minutes=1)


def test_one_job_may_have_more_to_say() -> None:
    moment = datetime(2099, 1, 1, tzinfo=UTC)
    tasks.add.using(
        max_attempts=9,
        expires_at=moment,
        metadata={"trace": 1},
        tags=["a", "b"],
        enqueued_by="tests",
    ).enqueue(1)
    (job,) = queued()
    assert (job.max_attempts, job.expires_at) == (9, moment)
    assert (job.metadata, job.tags, job.enqueued_by) == (
        {"trace": 1},
        ["a", "b"],
        "tests",
    )


def test_a_policy_of_the_type_cannot_be_said_of_one_job() -> None:
    with pytest.raises(InvalidTask, match=r"add = add\.using\(concurrency=…\)"):
        tasks.add.using(concurrency=5).enqueue(1)


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="Did you mean 'max_attempts'"):
        tasks.add.using(max_attempt=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("task", [tasks.charge, tasks.changed, tasks.add])
def test_the_row_of_the_job_type_says_what_the_task_says(task: JobTask) -> None:
    task.enqueue(1) if task is not tasks.changed else task.enqueue()
    row = JobType.objects.get(name=task.module_path)
    expected: dict[JobTask, tuple[Any, ...]] = {
        tasks.charge: (
            "mail",
            7,
            1,
            timedelta(seconds=30),
            "at_most_once",
            2,
            ["card"],
        ),
        tasks.changed: (
            "default",
            0,
            4,
            timedelta(seconds=5),
            "at_least_once",
            None,
            [],
        ),
        tasks.add: ("default", 0, 1, timedelta(hours=1), "at_least_once", None, []),
    }
    assert expected[task] == (
        row.queue,
        row.priority,
        row.max_attempts,
        row.timeout,
        row.delivery,
        row.concurrency,
        row.sensitive,
    )
    assert row.handler == f"task tests.sample.tasks:{task.name}"


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


def test_a_debounced_task_is_due_later() -> None:
    debounced = tasks.add.using(unique_key="sum", debounce=60)
    first, again = debounced.enqueue(1), debounced.enqueue(2)
    assert first.id == again.id
    (row,) = queued()
    assert row.data["a"] == 2
    assert row.run_after > row.created_at + timedelta(seconds=55)


def test_validation_is_repeated_by_enqueue() -> None:
    task = tasks.add.using(queue_name="unknown")
    with (
        override_settings(TASKS={"default": {"BACKEND": BACKEND, "QUEUES": ["mail"]}}),
        pytest.raises(InvalidTask, match="'unknown' is not valid"),
    ):
        task.enqueue(1)


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
    calls = [(tasks.add, (n,), {}) for n in range(50)]
    calls += [(tasks.add.using(priority=5), (), {"a": 50}), (tasks.aadd, (51,), {})]
    results = task_backends["default"].enqueue_many(calls)
    assert [result.args or [result.kwargs["a"]] for result in results] == [
        [n] for n in range(52)
    ]
    assert [r.task.get_backend().get_result(r.id) for r in results] == results
    assert [id for _, id in told] == [result.id for result in results]


def test_many_are_enqueued_or_none() -> None:
    calls = [(tasks.add, (1,), {}), (tasks.aadd, (), {"wrong": 1})]
    with pytest.raises(TypeError):
        task_backends["default"].enqueue_many(calls)
    assert queued() == []


def test_a_job_of_another_alias_says_so() -> None:
    both = {name: {"BACKEND": BACKEND, "QUEUES": []} for name in ("default", "second")}
    with override_settings(TASKS=both):
        result = tasks.add.using(backend="second").enqueue(1)
        assert result.backend == result.task.backend == "second"
        assert task_backends["default"].get_result(result.id) == result


def test_a_plain_task_of_the_framework_can_be_enqueued_here() -> None:
    dummy = f"{Task.__module__.rpartition('.')[0]}.backends.dummy.DummyBackend"
    aliases = {"default": {"BACKEND": dummy}, "ours": {"BACKEND": BACKEND}}
    with override_settings(TASKS=aliases):
        plain = Task(
            func=tasks.add.func,
            priority=0,
            backend="default",
            queue_name="default",
            run_after=None,
        )
        result = plain.using(backend="ours").enqueue(1)
        assert task_backends["ours"].get_result(result.id).args == [1]


def test_a_task_has_every_option_of_a_job_type() -> None:
    own = {"queue", "priority", "takes_context"}
    policy = set(Policy.__dataclass_fields__) - own
    fields = JobTask.__dataclass_fields__
    assert {name for name in policy if fields[name].default is UNSET} == policy


def test_a_call_made_by_hand_is_checked_like_one_of_code() -> None:
    declaration = registry.get(tasks.add.module_path)
    assert declaration is not None
    problem = declaration.parameters.problem
    assert problem({"a": 1}) is None
    assert problem({"a": 1, "*": {"args": 1}}) is None
    assert "is missing 'a'" in str(problem({}))
    assert "must be an object" in str(problem([1]))
    assert "must be an object" in str(problem({"a": 1, "*": 5}))
    assert "a number of arguments" in str(problem({"a": 1, "*": {"args": [1]}}))
