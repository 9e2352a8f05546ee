"""Workers run tasks, and tell the framework."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from django_jobqueue import JobCancelled, JobExpired, JobLost, cancel, operations
from django_jobqueue.backends import JobQueueBackend, JobTask, JobTaskResult
from django_jobqueue.backends.compat import (
    TaskContext,
    TaskResultStatus,
    task_finished,
    task_started,
)
from django_jobqueue.models import Failure, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import expire, rescue
from tests.sample import tasks
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived

FAILED, SUCCESSFUL = TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL
Finish = Callable[..., JobTaskResult]


@pytest.fixture
def finish(worker: HandDriven) -> Finish:
    """Enqueue a task, let a worker do it, and return the result."""

    def run(task: JobTask, *args: Any, **kwargs: Any) -> JobTaskResult:
        result = task.enqueue(*args, **kwargs)
        worker.work()
        result.refresh()
        assert task.get_result(result.id) == result
        return result

    return run


@pytest.mark.parametrize("task", [tasks.add, tasks.aadd])
def test_a_task_is_successful(finish: Finish, told: list[Any], task: JobTask) -> None:
    result = finish(task, 1, b=2)
    assert (result.status, result.return_value, result.errors) == (SUCCESSFUL, 3, [])
    assert result.attempts == len(result.worker_ids) == 1
    assert result.started_at == result.last_attempted_at
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert told == [
        ("started", JobQueueBackend, "RUNNING", None),
        ("finished", JobQueueBackend, "SUCCESSFUL", None),
    ]


@pytest.mark.parametrize("task", [tasks.fail, tasks.afail])
def test_a_raising_task_has_failed(
    finish: Finish, told: list[Any], task: JobTask
) -> None:
    result = finish(task, "a message")
    (error,) = result.errors
    assert (result.status, result.attempts) == (FAILED, 1)
    assert error.exception_class is ValueError
    assert error.traceback.endswith("ValueError: a message\n")
    with pytest.raises(ValueError, match="Task failed"):
        assert result.return_value
    signal, sender, status, raised = told[-1]
    assert (signal, sender, status) == ("finished", JobQueueBackend, "FAILED")
    assert (type(raised), str(raised)) == (ValueError, "a message")


def test_an_exception_reads_as_raised_and_ends_no_process(finish: Finish) -> None:
    (error,) = finish(tasks.fail_with_cause).errors
    assert 'ValueError(ValueError("the inner one"))' in error.traceback
    for how, error_class in (("exit", SystemExit), ("ctrl-c", KeyboardInterrupt)):
        result = finish(tasks.leave, how)
        assert [error.exception_class for error in result.errors] == [error_class]
    assert finish(tasks.add, 1).return_value == 1


def test_what_is_no_json_is_a_type_error(finish: Finish) -> None:
    result = finish(tasks.return_object.using(max_attempts=5))
    (error,) = result.errors
    assert (result.status, error.exception_class) == (FAILED, TypeError)
    assert "is not JSON serializable" in error.traceback
    assert "Unsupported type" in error.traceback
    assert finish(tasks.return_bytes).return_value == "bytes"
    arrived = finish(tasks.anything, 1, [2], three={"x": None}).return_value
    assert arrived == [[1, [2]], {"three": {"x": None}}]


def test_a_task_can_know_its_attempt(finish: Finish) -> None:
    result = finish(tasks.look.using(metadata={"trace": 7}))
    assert result.return_value == {
        **{"id": result.id, "status": "RUNNING", "attempt": 1, "current": result.id},
        **{"workers": result.worker_ids, "metadata": {"trace": 7}},
    }
    assert issubclass(tasks.JobTaskContext, TaskContext)
    assert isinstance(tasks.seen[0], JobTaskResult)
    assert finish(tasks.alook).return_value == 1


@pytest.mark.parametrize("task", [tasks.fail_twice, tasks.afail_twice])
def test_each_failure_has_its_error(
    finish: Finish, told: list[Any], task: JobTask
) -> None:
    result = finish(task)
    assert result.status == SUCCESSFUL
    assert result.return_value == ["ValueError: attempt 1", "ValueError: attempt 2"]
    assert [e.traceback.splitlines()[-1] for e in result.errors] == result.return_value
    assert result.attempts == len(result.worker_ids) == 3
    assert result.started_at < result.last_attempted_at
    assert [signal for signal, *_ in told] == ["started"] * 3 + ["finished"]


def test_a_task_that_waits_for_its_next_attempt_is_ready(worker: HandDriven) -> None:
    result = tasks.fail_twice.using(run_after=timedelta(0)).enqueue()
    worker.claim()
    worker.run()
    worker.finish()
    result.refresh()
    assert result.status == TaskResultStatus.READY
    assert (result.attempts, len(result.errors)) == (1, 1)
    assert result.finished_at is None
    assert tasks.fail_twice.get_result(result.id) == result


def test_a_backoff_is_asked_with_the_error_and_the_result(finish: Finish) -> None:
    assert finish(tasks.fail_with, "value").attempts == 3
    assert tasks.seen == [("ValueError", 1), ("ValueError", 2)]
    result = finish(tasks.fail_with, "key")  # of which it returns None
    assert (result.status, result.attempts) == (FAILED, 1)
    assert archived(id=result.id)[0].error_class == "KeyError"


def test_an_atomic_task_is_undone_when_it_fails(finish: Finish) -> None:
    assert finish(tasks.write_atomic, "ann").status == SUCCESSFUL
    assert finish(tasks.write_atomic, "bob", fail=True).status == FAILED
    assert [user.username for user in User.objects.all()] == ["ann"]


# What becomes of jobs in other ways.


def over(result: JobTaskResult) -> tuple[Any, ...]:
    result.refresh()
    return result.status, [error.exception_class for error in result.errors]


def test_other_ends_are_failures_of_their_own(own: OwnConnection) -> None:
    cancelled, failed, expired = (tasks.add.enqueue(n) for n in range(3))
    cancel([cancelled.id], reason="not wanted")
    assert over(cancelled) == (FAILED, [JobCancelled])
    assert "not wanted" in cancelled.errors[0].traceback
    assert (cancelled.attempts, cancelled.started_at) == (0, None)
    operations.fail([failed.id], reason="enough")
    assert over(failed) == (FAILED, [JobLost])
    QueuedJob.objects.update(expires_at="2020-01-01T00:00:00Z")
    expire.expire(own)
    assert over(expired) == (FAILED, [JobExpired])


def test_a_lost_task_has_failed(worker: HandDriven, own: OwnConnection) -> None:
    result = tasks.charge.using(run_after=timedelta(0)).enqueue(1)
    QueuedJob.objects.update(status="running", worker_id=worker.worker.id, attempts=1)
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.RUNNING, 1)
    rescue.rescue(own, [worker.worker.id], crashed=True, reason="killed by signal 9")
    assert over(result) == (FAILED, [JobLost])
    assert result.errors[0].traceback.endswith("JobLost: killed by signal 9\n")
    assert result.worker_ids == [worker.worker.name]


# Signals and log lines.


@pytest.fixture
def told() -> Iterator[list[tuple[str, Any, str, Any]]]:
    """What receivers were told: signal, sender, status, and the error at that time."""
    kept: list[Any] = []

    def started(*, sender: Any, task_result: Any, **kwargs: Any) -> None:
        kept.append(("started", sender, task_result.status, None))

    def finished(*, sender: Any, task_result: Any, **kwargs: Any) -> None:
        error = sys.exc_info()[1]
        kept.append(("finished", sender, task_result.status, error))

    task_started.connect(started)
    task_finished.connect(finished)
    yield kept
    task_started.disconnect(started)
    task_finished.disconnect(finished)


def test_the_error_of_a_task_with_secrets_is_told_without_them(
    finish: Finish, told: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    result = finish(tasks.charge, 1, "4111-1111")
    assert "4111" not in str(told[-1][3])
    assert "4111" not in caplog.text
    assert "4111" not in "".join(error.traceback for error in result.errors)
    assert "4111" not in "".join(f.error_message for f in Failure.objects.all())


def test_a_run_has_three_lines(finish: Finish, lines: list[logging.LogRecord]) -> None:
    ends = {tasks.add: "INFO", tasks.aadd: "INFO", tasks.fail: "ERROR"}
    for task, level in {**ends, tasks.afail: "ERROR"}.items():
        lines.clear()
        result = finish(task, 7)
        texts = [line.getMessage() for line in lines]
        assert all(result.id in text and "None" not in text for text in texts)
        state = "SUCCESSFUL" if level == "INFO" else "FAILED"
        for word, text in zip(("enqueued", "RUNNING", state), texts, strict=True):
            assert word in text
        assert [line.levelname for line in lines] == ["DEBUG", "INFO", level]
        assert bool(lines[2].exc_info) is (level == "ERROR")


def test_receivers_that_raise_change_nothing(finish: Finish) -> None:
    def receive(**kwargs: Any) -> None:
        raise RuntimeError("the receiver")

    for signal in (task_started, task_finished):
        signal.connect(receive)
    try:
        assert finish(tasks.add, 1).return_value == 1
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(receive)


def test_tasks_for_later_wait_and_urgent_ones_come_first(make_worker: Any) -> None:
    later = tasks.add.using(run_after=timedelta(hours=1)).enqueue(1)
    results = [tasks.add.using(priority=n).enqueue(1) for n in (0, -100, 100)]
    make_worker(threads=1).work()
    for result in (*results, later):
        result.refresh()
    ordered = sorted(results, key=lambda result: result.started_at)
    assert [result.task.priority for result in ordered] == [100, 0, -100]
    assert later.status == TaskResultStatus.READY
