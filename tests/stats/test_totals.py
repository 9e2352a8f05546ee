"""Sums by job type, by queue and of everything, against rows made by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_jobqueue.models import JobType, Queue, QueuedJob, Rollup
from django_jobqueue.stats import overview, totals
from django_jobqueue.stats.time_window import DAY, HOUR, WEEK, Window
from django_jobqueue.stats.totals import Line
from tests.stats.rows import ADD, SAY, ago, histogram, queued, rollup, worker

pytestmark = pytest.mark.django_db


def by_type(window: Window = HOUR) -> dict[str, Line]:
    overview.forget()
    return {line.name: line for line in overview.read(window).types.shown}


def by_queue() -> dict[str, Line]:
    return {line.name: line for line in overview.read(HOUR).queues.shown}


def total() -> Line:
    read = overview.read(HOUR)
    lines = totals.by_queue(read.now.present.depths, read.past.counts)
    return totals.total(lines.values())


def test_what_waits_and_runs_is_summed_over_queues_up_to_a_cap() -> None:
    queued(2, run_after=ago(minutes=5))
    queued(3, queue="mail", run_after=ago(minutes=9))
    queued(1, run_after=ago(hours=-1), attempts=1)
    queued(1, run_after=ago(hours=-1))
    queued(1, status="running", attempts=1)
    depths = by_type()[ADD].depths
    assert (depths.ready, depths.later, depths.retrying, depths.running) == (5, 2, 1, 1)
    assert depths.oldest is not None
    assert 540 <= depths.oldest < 600
    assert {name: line.depths.ready for name, line in by_queue().items()} == {
        "default": 2,
        "mail": 3,
    }
    QueuedJob.objects.all().delete()
    overview.forget()
    queued(10_002, run_after=ago(minutes=1))
    queued(5, job_type_id=SAY, run_after=ago(minutes=1))
    whole = total().depths
    assert (whole.ready, whole.at_least) == (10_005, {"ready"})


def test_what_finished_is_summed_over_the_window_and_no_more() -> None:
    for minutes in (1, 58):
        rollup(ago(minutes=minutes), succeeded=9, failed=1, retried=4, other=2)
    rollup(ago(minutes=1), SAY, succeeded=7, queue="mail")
    rollup(ago(minutes=62), succeeded=100)
    line = by_type()[ADD]
    assert (line.succeeded, line.failed, line.retried, line.other) == (18, 2, 8, 4)
    assert (line.finished, line.failed_share) == (20, 0.1)
    assert total().finished == 27
    assert by_type(DAY)[ADD].succeeded == 118
    assert by_type()[SAY].failed_share == 0.0


def test_percentiles_are_of_all_roll_ups_together() -> None:
    rollup(ago(minutes=1), succeeded=18, run_histogram=histogram(*[0.05] * 18))
    rollup(ago(minutes=2), run_histogram=histogram(7.0, 7.0))
    line = by_type()[ADD]
    assert sum(line.run) == 20
    half, most = line.run_time(0.5) or 0.0, line.run_time(0.95) or 0.0
    assert 0.05 <= half < 0.1
    assert 7.0 <= most < 12.0
    assert line.wait_time(0.5) is None


def test_a_trend_has_each_roll_up_in_its_place() -> None:
    for window in (HOUR, DAY, WEEK):
        Rollup.objects.all().delete()
        rollup(ago(seconds=0), succeeded=2, failed=1)
        rollup(ago(seconds=0) - window.length + 2 * window.step, succeeded=5)
        trend = by_type(window)[ADD].trend
        assert len(trend) == window.length // window.trend_step
        assert (trend[-1], trend[0]) == ([3, 1], [5, 0])
        assert sum(finished for finished, failed in trend) == 8


def test_idle_types_are_counted_and_paused_queues_have_a_line() -> None:
    before = overview.read(HOUR).types.idle
    JobType.objects.create(name="elsewhere.idle")
    overview.forget()
    assert overview.read(HOUR).types.idle == before + 1
    Queue.objects.create(name="night", paused=True)
    Queue.objects.create(name="open")
    overview.forget()
    assert [*by_queue()] == ["night"]


def test_reading_asks_a_fixed_number_of_small_questions() -> None:
    def statements() -> list[str]:
        overview.forget()
        with CaptureQueriesContext(connection) as captured:
            overview.read(WEEK)
        return [query["sql"] for query in captured.captured_queries]

    few = statements()
    now = ago()
    for number in range(20):
        queued(2, queue=f"q{number}", run_after=ago(minutes=1))
        worker(f"web-{number}:1")
        rollup(now - timedelta(minutes=number), succeeded=1)
    # Lanes are counted only if there are any, known types only of living workers, and
    # parked hosts only where no worker is alive.
    assert len(statements()) <= len(few) + 1 <= 28
    of_archive = [text for text in statements() if "jobqueue_archivedjob" in text]
    assert all("FROM jobqueue_schedules_schedule" in text for text in of_archive)


def test_the_spans_of_a_window_are_what_its_roll_ups_say() -> None:
    rollup(ago(minutes=90), succeeded=3, wait_histogram=histogram(2.0))
    rollup(ago(minutes=90), SAY, succeeded=4, failed=2, other=1, retried=9)
    past = overview.read(DAY).past
    (span,) = past.spans
    assert (span.succeeded, span.failed, span.other, span.retried) == (7, 2, 1, 9)
    assert (span.start - past.start) % DAY.step == timedelta(0)
    assert 2.0 <= (span.wait_time(0.95) or 0.0) < 3.2
    assert span.run_time(0.95) is None


def test_lines_are_added_up_once_and_again_when_there_is_something_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    overview.forget()
    first = overview.read(HOUR)
    assert overview.read(HOUR) is first
    queued(2)
    monkeypatch.setattr(overview, "FRESH", 0.0)
    assert overview.read(HOUR).total.depths.ready == first.total.depths.ready + 2
