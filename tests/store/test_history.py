"""History from the roll-ups, by name and by spans of time."""

from __future__ import annotations

from datetime import timedelta

from django_jobqueue.models import Rollup
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.reading import history
from django_jobqueue.store.reading.history import Counts, Finished
from tests.store.rows import ADD, FAIL, ago

HALF_HOUR = timedelta(minutes=30)


def make(seconds: float, queue: str = "default", **values: object) -> None:
    """Insert a roll-up of so many seconds ago."""
    Rollup.objects.create(bucket=ago(seconds), job_type=ADD, queue=queue, **values)


def test_only_what_began_since_then_is_summed(own: OwnConnection) -> None:
    make(100, succeeded=1, failed=2)
    make(50, succeeded=10, retried=3, other=4, run_histogram=[5])
    make(50, "mail", succeeded=7)
    make(5_000, succeeded=100)
    assert history.since(own, ago(3_600), [FAIL]) == []
    first, second = history.since(own, ago(3_600), [ADD, FAIL])
    assert (first.job_type, first.queue, second.queue) == (ADD, "default", "mail")
    assert (first.succeeded, first.failed) == (11, 2)
    assert (first.retried, first.other) == (3, 4)
    assert (first.run[0], sum(first.run), sum(first.wait)) == (5, 5, 0)


def test_spans_begin_at_the_start_and_none_is_empty(own: OwnConnection) -> None:
    start = ago(7_200)
    make(7_200 - 60, succeeded=1)
    make(7_200 - 1_700, "mail", succeeded=2)
    make(60, failed=4)
    found = history.spans(own, start, HALF_HOUR)
    assert [(span.start, span.succeeded, span.failed) for span in found] == [
        (start, 3, 0),
        (start + 3 * HALF_HOUR, 0, 4),
    ]


def test_types_are_read_with_what_each_finished_by_spans(own: OwnConnection) -> None:
    start = ago(3_600)
    make(3_500, succeeded=1, failed=2, retried=50, other=60, run_histogram=[0, 3])
    make(3_400, "mail", succeeded=4, run_histogram=[5], wait_histogram=[7])
    make(60, "mail", succeeded=3)
    (one,), trends = history.types(own, start, [ADD, FAIL], HALF_HOUR)
    assert one.job_type == ADD
    assert (one.succeeded, one.failed, one.retried, one.other) == (8, 2, 50, 60)
    assert (one.run[:2], sum(one.run), one.wait[0]) == ([5, 3], 8, 7)
    assert sorted(trends, key=lambda trend: trend.start) == [
        Finished(ADD, start, 7, 2),
        Finished(ADD, start + HALF_HOUR, 3, 0),
    ]
    assert history.types(own, start, [FAIL], HALF_HOUR) == ([], [])


def test_numbers_are_summed_by_job_type_and_queue(own: OwnConnection) -> None:
    make(100, succeeded=1, failed=2)
    make(50, succeeded=10, retried=3, other=4)
    make(50, "mail", succeeded=7)
    make(5_000, succeeded=100)
    assert history.counts(own, ago(3_600)) == {
        (ADD, "default"): Counts(succeeded=11, failed=2, retried=3, other=4),
        (ADD, "mail"): Counts(succeeded=7),
    }


def test_spans_and_queues_are_read_together(own: OwnConnection) -> None:
    start = ago(7_200)
    make(7_100, succeeded=1, run_histogram=[5])
    make(7_000, "mail", succeeded=2, run_histogram=[0, 3])
    make(3_700, failed=2)
    make(60, failed=4, wait_histogram=[1])
    spans, queues, trends = history.spans_and_queues(
        own, start, HALF_HOUR, ["default"], 2 * HALF_HOUR
    )
    assert spans == history.spans(own, start, HALF_HOUR)
    (queue,) = queues
    assert (queue.queue, queue.succeeded, queue.failed) == ("default", 1, 6)
    assert (queue.run[:2], queue.wait[0]) == ([5, 0], 1)
    assert sorted(trends, key=lambda trend: trend.start) == [
        Finished("default", start, 3, 2),
        Finished("default", start + 2 * HALF_HOUR, 4, 4),
    ]


def test_only_types_that_fail_often_and_enough_are_failing(own: OwnConnection) -> None:
    make(60, succeeded=9, failed=1)
    make(60, "mail", succeeded=9, failed=1)
    both = Counts(succeeded=18, failed=2)
    failing = history.failing(own, ago(3_600), least=20, percent=5)
    assert failing == history.Failing(types={ADD: both}, queues={}, all=both)
    failing = history.failing(own, ago(3_600), least=10, percent=5)
    assert failing.queues == dict.fromkeys(
        ("default", "mail"), Counts(succeeded=9, failed=1)
    )
    assert history.failing(own, ago(3_600), least=20, percent=10).types == {}
    assert history.failing(own, ago(3_600), least=21, percent=5).types == {}


def test_the_callers_connection_reads_the_same(own: OwnConnection) -> None:
    make(60, succeeded=1, run_histogram=[3], wait_histogram=[0, 4])
    start, caller = ago(600), DjangoDatabase()
    assert history.since(caller, start, [ADD]) == history.since(own, start, [ADD])
    assert history.spans(caller, start, HALF_HOUR) == history.spans(
        own, start, HALF_HOUR
    )
    assert history.counts(caller, start) == history.counts(own, start)


def test_minutes_that_should_have_been_folded_are_found(own: OwnConnection) -> None:
    five_hours_ago = ago(5 * 3_600)
    Rollup.objects.create(
        bucket=five_hours_ago.replace(minute=30, second=0, microsecond=0),
        job_type=ADD,
        queue="default",
    )
    assert history.unfolded(own) is None
    late = five_hours_ago.replace(minute=31, second=0, microsecond=0)
    Rollup.objects.create(bucket=late, job_type=ADD, queue="default")
    assert history.unfolded(own) == late
