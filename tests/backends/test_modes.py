"""Tasks where jobs run when they are enqueued: ``JOBQUEUE["MODE"]``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import override_settings

from django_jobqueue import wait
from django_jobqueue.backends.compat import TaskResultStatus
from django_jobqueue.testing import drain
from tests.sample import tasks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def _immediate() -> Iterator[None]:
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        yield


@pytest.mark.usefixtures("_immediate")
def test_a_task_has_run_when_it_is_enqueued() -> None:
    result = tasks.add.enqueue(1, b=2)
    assert (result.return_value, result.attempts) == (3, 1)
    assert tasks.add.get_result(result.id) == result
    assert result.wait(timeout=0).return_value == 3
    assert wait(result.id).status == "succeeded"


@pytest.mark.usefixtures("_immediate")
def test_a_task_that_fails_there_has_failed_and_the_caller_goes_on() -> None:
    result = tasks.fail.enqueue("no")
    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [ValueError]
    result.refresh()
    assert result.status == TaskResultStatus.FAILED


@pytest.mark.usefixtures("_immediate")
def test_many_have_run_when_they_are_enqueued() -> None:
    results = tasks.add.enqueue_many([{"a": 1}, {"a": 2}])
    for result in results:
        result.refresh()
    assert [result.return_value for result in results] == [1, 2]


def test_a_task_can_run_at_the_commit() -> None:
    with override_settings(JOBQUEUE={"MODE": "on_commit"}):
        with transaction.atomic():
            result = tasks.add.enqueue(1)
            assert result.status == TaskResultStatus.READY
        result.refresh()
        assert result.return_value == 1


def test_tests_drain_tasks_as_they_drain_jobs() -> None:
    result = tasks.aadd.enqueue(1, 2)
    drain()
    result.refresh()
    assert result.return_value == 3
