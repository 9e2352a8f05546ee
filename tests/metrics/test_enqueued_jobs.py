"""METRICS_ENQUEUED: enqueued jobs in the registry of ``prometheus_client``."""

from __future__ import annotations

import sys

import pytest
from django.core.management import call_command
from django.test import override_settings
from prometheus_client import REGISTRY

from django_jobqueue import apps, observers, operations
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.execution.observed_attempts import aobserved, observed
from django_jobqueue.metrics.catalogue import PRODUCER
from django_jobqueue.metrics.enqueued_jobs import NAME, count_enqueues
from tests.sample import jobs
from tests.store.rows import ADD, archive

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this observer, and not after the test."""
    monkeypatch.setattr(observers, "registered", ())
    count_enqueues()


def counted(job_type: str = ADD, queue: str = "default") -> float:
    labels = {"queue": queue, "job_type": job_type}
    return REGISTRY.get_sample_value(NAME, labels) or 0.0


def test_new_jobs_are_counted_and_duplicates_and_errors_are_not() -> None:
    before, mail = counted(), counted(queue="mail")
    jobs.add.enqueue(1)
    jobs.add.enqueue_many([{"a": 1}, {"a": 2}])
    jobs.add.using(queue="mail").enqueue(3)
    with pytest.raises(InvalidArguments):
        jobs.add.enqueue(nothing="such")  # type: ignore[call-arg]
    assert counted() - before == 3
    assert counted(queue="mail") - mail == 1
    before = counted("tests.sample.remind")
    for _ in range(3):
        jobs.remind.enqueue(1)
        jobs.remind.enqueue_many([{"user": 1}, {"user": 2}])
    assert counted("tests.sample.remind") - before == 2
    before = counted("(other)", "(other)")
    for _ in range(2):
        operations.replay(archive())
    assert counted("(other)", "(other)") - before == 2

    def run(attempt: object) -> object: ...

    assert observed(run) is run  # type: ignore[comparison-overlap,arg-type]
    assert aobserved(run) is run  # type: ignore[comparison-overlap,arg-type]


@override_settings(JOBQUEUE={"METRICS_QUEUES": {"tenant-*": "tenant"}})
def test_queues_are_folded_as_in_other_metrics() -> None:
    before = counted(queue="tenant")
    jobs.add.using(queue="tenant-7").enqueue(1)
    assert counted(queue="tenant") - before == 1


def test_the_setting_turns_it_on_when_django_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observers, "registered", ())
    with override_settings(JOBQUEUE={"METRICS_ENQUEUED": True}):
        for _ in range(2):
            apps._count_enqueues()  # private: what ready() does
            assert len(observers.registered) == 1
        assert {*PRODUCER} == {NAME}
        # Without the extra nothing is counted.
        monkeypatch.setattr(observers, "registered", ())
        monkeypatch.setitem(sys.modules, "prometheus_client", None)
        apps._count_enqueues()  # private: what ready() does
        assert observers.registered == ()
        call_command("check", "--tag", "jobqueue")
