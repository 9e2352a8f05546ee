"""Functions declared with ``@task`` are tested as those declared with ``@job``."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.test import override_settings

from django_jobqueue import wait
from django_jobqueue.testing import (
    Verb,
    assert_enqueued,
    assert_not_enqueued,
    captured_jobs,
    drain,
    perform,
)
from tests.testing import tasks


@pytest.mark.django_db
def test_tasks_are_found_and_drained() -> None:
    with captured_jobs() as captured:
        result = tasks.greet.enqueue("anna", loud=True)
        tasks.agreet.enqueue(name="ben")
    assert len(captured.of(tasks.greet)) == 1
    job = assert_enqueued(tasks.greet, data={"name": "anna", "loud": True})
    assert str(job.id) == result.id
    assert_not_enqueued(tasks.number)
    assert [ran.job.result for ran in drain()] == ["Hello, ANNA!", "Hello, ben!"]
    result.refresh()
    assert result.return_value == "Hello, ANNA!"


@pytest.mark.django_db
def test_tasks_are_retried_when_it_is_time() -> None:
    result = tasks.number.enqueue()
    ran = drain(until=timedelta(minutes=5), raise_errors=False)
    assert [one.verb for one in ran] == ["retry", "succeed"]
    result.refresh()
    assert result.return_value == 2
    assert len(result.errors) == 1


def test_tasks_are_performed() -> None:
    assert perform(tasks.greet, {"name": "anna"}).value == "Hello, anna!"
    assert perform(tasks.agreet, {"name": "anna"}).value == "Hello, anna!"
    assert perform(tasks.number).verb is Verb.RETRY
    assert perform(tasks.number, attempt=2).value == 2


@override_settings(JOBQUEUE={"MODE": "immediate"})
def test_tasks_run_at_once_and_their_results_are_finished() -> None:
    result = tasks.greet.enqueue("anna")
    assert (result.is_finished, result.attempts) == (True, 1)
    assert result.return_value == "Hello, anna!"
    assert tasks.greet.get_result(result.id) == result
    assert result.wait(timeout=0).return_value == "Hello, anna!"
    assert wait(result.id).status == "succeeded"
    failed = tasks.number.enqueue()  # and the caller goes on
    failed.refresh()
    assert failed.status.name == "FAILED"
    assert [error.exception_class for error in failed.errors] == [ValueError]
    results = tasks.greet.enqueue_many([{"name": "ben"}, {"name": "carl"}])
    for result in results:
        result.refresh()
    assert [one.return_value for one in results] == ["Hello, ben!", "Hello, carl!"]


@pytest.mark.django_db(transaction=True)
@override_settings(JOBQUEUE={"MODE": "on_commit"})
def test_tasks_run_at_the_commit() -> None:
    with transaction.atomic():
        result = tasks.greet.enqueue("anna")
        assert result.status.name == "READY"
    result.refresh()
    assert result.return_value == "Hello, anna!"
