"""Figures for people: depth, age, liveness, failures."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from django_jobqueue.domain.histogram import BUCKETS, bucket_of
from django_jobqueue.models import JobType, Queue, Rollup, Worker
from django_jobqueue.store import job_types, rollup, worker_rows
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.stats import Pause
from django_jobqueue.store.rollup import Count
from tests.store.rows import ADD, ago, archive, claimed, job_type, lane, make, register

OTHER = "tests.sample.aadd"


SIZES = (stats.SMALL, -1)


@pytest.fixture(params=SIZES, ids=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is read in one pass, and one that is read lane by lane."""
    monkeypatch.setattr(stats, "SMALL", request.param)


@pytest.mark.usefixtures("size")
def test_jobs_are_counted_by_their_wait(own: OwnConnection, holder: int) -> None:
    assert stats.depths(own) == []
    for priority, seconds in [(0, 100), (0, 50), (5, 20), (-5, 10)]:
        make(priority=priority, run_after=ago(seconds))
    claimed(own, holder)
    make(run_after=ago(-60))
    make(run_after=ago(-60), attempts=2)
    make(quarantined=True)
    (depth,) = stats.depths(own)  # the priorities are added up
    assert (depth.queue, depth.job_type) == ("default", ADD)
    assert (depth.ready, depth.later, depth.retrying, depth.running) == (4, 2, 1, 1)
    assert depth.oldest is not None
    assert 50 <= depth.oldest < 80


@pytest.mark.usefixtures("size")
def test_queues_and_types_are_counted_apart(own: OwnConnection, holder: int) -> None:
    write = "tests.sample.write"
    for queue, name in [("b", ADD), ("a", OTHER), ("a", ADD), ("c", write)]:
        make(name, queue=queue)
    claimed(own, holder, 1, lane(write, "c"))
    found = [(d.queue, d.job_type, d.ready, d.running) for d in stats.depths(own)]
    of_other = ("a", OTHER, 1, 0)
    assert found == [of_other, ("a", ADD, 1, 0), ("b", ADD, 1, 0), ("c", write, 0, 1)]
    found = [
        (d.queue, d.job_type, d.ready, d.running) for d in stats.depths(own, OTHER)
    ]
    assert found == [of_other]


def test_a_depth_is_counted_no_further_than_its_cap(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.run(
        "INSERT INTO jobqueue_queuedjob (job_type, run_after, attempts) "
        "SELECT %(job_type)s, clock_timestamp() + side * interval '1 hour', 1 "
        "FROM generate_series(1, %(count)s), unnest(ARRAY[-1, 1]) AS side",
        {"job_type": ADD, "count": stats.CAP + 50},
    )
    for small in SIZES:
        monkeypatch.setattr(stats, "SMALL", small)
        (depth,) = stats.depths(own)
        assert (depth.ready, depth.later, depth.retrying) == (stats.CAP + 1,) * 3


def test_workers_are_shown_for_ten_minutes_longer(own: OwnConnection) -> None:
    ids = [
        register(own, "alive", queues=["a", "b"], lease=50),
        register(own, "just ended"),
        register(own, "ended long ago"),
    ]
    worker_rows.renew(own, [worker_rows.Beat(ids[0], 3, 2**33, True)], 50)
    worker_rows.set_listening(own, ids[0], True)
    worker_rows.stopped(own, ids[1:], end="exit code 1", lost=True)
    Worker.objects.filter(id=ids[2]).update(stopped_at=ago(660))
    Worker.objects.filter(id=ids[0]).update(started_at=ago(100))

    first, second = stats.workers(own)

    assert (first.id, first.name, first.state) == (ids[0], "alive", "draining")
    assert (first.queues, first.threads, first.async_slots) == (["a", "b"], 4, 0)
    assert (first.running, first.rss, first.listening) == (3, 2**33, True)
    assert 100 <= first.age < 130
    assert 20 < first.lease <= 50
    assert (first.release, first.end) == ("r1", "")
    assert (second.name, second.state, second.end) == (
        "just ended",
        "lost",
        "exit code 1",
    )


def count(job_type: str = ADD, queue: str = "default", ran: float = 0.05) -> Count:
    """Counts of one success."""
    made = Count(job_type, queue, succeeded=1)
    made.attempt(ran=ran, waited=2.0)
    return made


def test_what_happened_lately_is_summed_from_the_roll_ups(own: OwnConnection) -> None:
    rollup.add(own, [count(), count(OTHER)])
    Rollup.objects.update(bucket=ago(120))
    rollup.add(own, [count(ran=7.0)])
    Rollup.objects.create(
        bucket=ago(7_200),
        job_type=ADD,
        queue="default",
        succeeded=100,
        run_histogram=[1] * BUCKETS,
        wait_histogram=[1] * BUCKETS,
    )

    recent = stats.recent(own, 600)

    by_type = {one.job_type: one for one in recent}
    assert set(by_type) == {ADD, OTHER}
    found = by_type[ADD]
    assert (found.queue, found.succeeded, found.failed) == ("default", 2, 0)
    assert (found.retried, found.other) == (0, 0)
    assert sum(found.run) == sum(found.wait) == 2
    assert (found.run[bucket_of(0.05)], found.run[bucket_of(7.0)]) == (1, 1)
    half, most = found.run_time(0.5), found.run_time(0.99)
    assert half is not None
    assert most is not None
    assert 0.05 <= half < 0.1
    assert 7.0 <= most < 12.0
    assert found.wait_time(0.5) == pytest.approx(2.5, abs=0.6)
    assert stats.recent(own, 0) == []


def test_the_commonest_failures_come_first(own: OwnConnection) -> None:
    for seconds, text in [(30, "old"), (10, "new"), (20, "middle")]:
        archive(
            status="failed",
            error_class="ValueError",
            error_message=text,
            finished_at=ago(seconds),
        )
    archive(OTHER, "failed", error_class="KeyError", finished_at=ago(5))
    archive(status="failed", error_class="TooOld", finished_at=ago(4_000))
    archive(status="cancelled", error_class="NotFailed")
    archive(error_class="NotFailed")

    first, second = stats.failures(own, 3_600)

    assert (first.error_class, first.job_type, first.count) == ("ValueError", ADD, 3)
    assert first.message == "new"
    assert timezone.now() - timedelta(seconds=40) < first.last  # type: ignore[operator]
    assert (second.error_class, second.job_type, second.count) == ("KeyError", OTHER, 1)


def test_what_is_paused_is_listed_until_it_is_resumed(own: OwnConnection) -> None:
    job_types.pause(own, [ADD], by="anna", reason="a bug")
    end = ago(-60)
    job_types.pause(own, ["mail"], queues=True, by="bert", resume_at=end)
    job_type("over", paused=True, resume_at=ago(60))
    Queue.objects.create(name="over", paused=True, resume_at=ago(60))
    Queue.objects.create(name="open")
    since = [
        JobType.objects.get(name=ADD).paused_at,
        Queue.objects.get(name="mail").paused_at,
    ]
    assert None not in since
    assert stats.paused(own) == [
        Pause("job type", ADD, "anna", "a bug", since[0], None),
        Pause("queue", "mail", "bert", "", since[1], end),
    ]
    JobType.objects.update(paused=False)
    job_types.resume(own, ["mail"], queues=True)
    assert stats.paused(own) == []


def test_the_callers_connection_reads_the_same(own: OwnConnection) -> None:
    make(run_after=ago(-60))
    archive(status="failed", error_class="ValueError")
    job_types.pause(own, [ADD])
    rollup.add(own, [count()])
    register(own, queues=["a"])
    assert stats.workers(DjangoDatabase())[0].queues == ["a"]
    for read in (
        stats.depths,
        partial(stats.failures, seconds=3_600),
        stats.paused,
        partial(stats.recent, seconds=600),
    ):
        assert read(own)
        assert read(own) == read(DjangoDatabase())
