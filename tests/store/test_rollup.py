"""Roll-ups: added place by place, folded into hours, dropped when old."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import pytest
from django.utils import timezone

from django_jobqueue.domain.histogram import BUCKETS, bucket_of
from django_jobqueue.models import Rollup, Total
from django_jobqueue.stats.time_window import WEEK
from django_jobqueue.store import rollup, rollup_folding
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.rollup import Count
from django_jobqueue.store.totals import MOST
from tests.store.meanwhile import together
from tests.store.rows import ADD, ago

COUNTERS = ("succeeded", "failed", "retried", "other", "run_ms", "wait_ms")


def counted(queue: str = "default", **values: int) -> Count:
    """Counts of one attempt that ran for 50 ms and waited for 2 s."""
    count = Count(ADD, queue, **values)
    count.attempt(ran=0.05, waited=2.0)
    return count


def histogram(**places: int) -> list[int]:
    """A histogram with these counts, by place: ``histogram(p3=1)``."""
    made = [0] * BUCKETS
    for name, count in places.items():
        made[int(name[1:])] = count
    return made


def make(bucket: datetime, queue: str = "default", **values: object) -> None:
    """Insert a roll-up."""
    empty = {"run_histogram": histogram(), "wait_histogram": histogram()}
    Rollup.objects.create(
        bucket=bucket, job_type=ADD, queue=queue, **{**empty, **values}
    )


def fold(db: OwnConnection) -> None:
    """Fold all that is old enough."""
    while rollup_folding.fold(db):
        pass


def total(name: str) -> int:
    """The sum of a column over all roll-ups."""
    return sum(Rollup.objects.values_list(name, flat=True))


def places(name: str) -> list[int]:
    """The sum of a histogram over all roll-ups, place by place."""
    held = Rollup.objects.values_list(name, flat=True)
    return [sum(place) for place in zip(*held, strict=True)]


def test_counts_are_added_to_the_current_minute(own: OwnConnection) -> None:
    before = timezone.now()
    rollup.add(own, [counted(succeeded=1, failed=2, retried=3, other=4)])
    held = Rollup.objects.get()
    assert before.replace(second=0, microsecond=0) <= held.bucket <= timezone.now()
    assert (held.bucket.second, held.bucket.microsecond) == (0, 0)
    assert (held.job_type, held.queue) == (ADD, "default")
    assert [getattr(held, name) for name in COUNTERS] == [1, 2, 3, 4, 50, 2_000]
    assert held.run_histogram == counted().run_histogram
    assert held.wait_histogram == counted().wait_histogram


def test_what_is_added_twice_is_summed_place_by_place(own: OwnConnection) -> None:
    other = Count(ADD, "default", succeeded=5)
    other.attempt(ran=0.05, waited=100.0)
    other.attempt(ran=7.0, waited=2.0)
    rollup.add(own, [counted(succeeded=1)])
    rollup.add(own, [other])
    rollup.add(own, [])
    assert (total("succeeded"), total("run_ms")) == (6, 7_100)
    runs, waits = places("run_histogram"), places("wait_histogram")
    assert (runs[bucket_of(0.05)], runs[bucket_of(7.0)], sum(runs)) == (2, 1, 3)
    assert (waits[bucket_of(2.0)], waits[bucket_of(100.0)], sum(waits)) == (2, 1, 3)
    assert len(runs) == len(waits) == BUCKETS


def test_a_sum_that_is_full_refuses_no_further_counts(own: OwnConnection) -> None:
    """Rows of plain SQL may have waited since the year 1; the counts are written with
    the outcomes of jobs."""
    rollup.add(own, [counted(succeeded=1)])
    for model in (Rollup, Total):
        model.objects.update(wait_ms=MOST - 1, run_ms=MOST)
    rollup.add(own, [counted(succeeded=1)])
    assert total("succeeded") == 2
    for model in (Rollup, Total):
        assert model.objects.values_list("wait_ms", "run_ms").get() == (MOST, MOST)
    hour = timezone.now() - timedelta(days=30)
    hour = hour.replace(minute=0, second=0, microsecond=0)
    for minute in (0, 1, 2):
        make(hour + timedelta(minutes=minute), wait_ms=MOST)
    fold(own)
    assert {one.wait_ms for one in Rollup.objects.all()} == {MOST}


def test_job_types_and_queues_are_counted_apart(own: OwnConnection) -> None:
    other = Count("tests.sample.aadd", "default", succeeded=4)
    rollup.add(own, [counted("a", succeeded=1), counted("b", succeeded=2), other])
    held = Rollup.objects.values_list("job_type", "queue", "succeeded")
    assert set(held) == {
        (ADD, "a", 1),
        (ADD, "b", 2),
        ("tests.sample.aadd", "default", 4),
    }


def test_adding_at_once_loses_nothing(own: OwnConnection, other: OwnConnection) -> None:
    queues = [f"q{number}" for number in range(5)]

    def add(db: OwnConnection, names: list[str]) -> None:
        for _ in range(20):
            rollup.add(db, [counted(name, succeeded=1) for name in names])

    together([partial(add, own, queues), partial(add, other, queues[::-1])])
    assert total("succeeded") == 200
    assert places("run_histogram")[bucket_of(0.05)] == 200


@pytest.fixture
def hour() -> datetime:
    """An hour that is old enough to be folded."""
    return ago(3 * 86_400).replace(minute=0, second=0, microsecond=0)


def test_all_that_minutes_counted_is_folded_into_their_hour(
    own: OwnConnection, hour: datetime
) -> None:
    counts = dict(zip(COUNTERS, (1, 2, 3, 4, 5, 6), strict=True))
    for minute in (1, 17, 59):
        runs, waits = histogram(p3=1, p41=minute), histogram(p0=2)
        histograms = {"run_histogram": runs, "wait_histogram": waits}
        make(hour + timedelta(minutes=minute), **counts, **histograms)
    fold(own)
    held = Rollup.objects.get()
    assert [getattr(held, name) for name in COUNTERS] == [3, 6, 9, 12, 15, 18]
    assert held.run_histogram == histogram(p3=3, p41=77)
    assert held.wait_histogram == histogram(p0=6)


def test_minutes_are_added_to_an_hour_that_was_folded_before(
    own: OwnConnection, hour: datetime
) -> None:
    make(hour, succeeded=10, run_histogram=histogram(p3=10))
    make(hour + timedelta(minutes=5), succeeded=1, run_histogram=histogram(p3=1))
    assert rollup_folding.fold(own) is True
    assert rollup_folding.fold(own) is False
    held = Rollup.objects.get()
    assert (held.bucket, held.succeeded) == (hour, 11)
    assert held.run_histogram == histogram(p3=11)


def test_each_age_is_folded_into_spans_of_its_width(own: OwnConnection) -> None:
    day, half_hour = timedelta(days=1), timedelta(minutes=30)
    hour = timedelta(hours=1)
    for age, width, step in ((1, half_hour, 1), (3, hour, 2), (18, day, 48)):
        Rollup.objects.all().delete()
        start = ago(age * 86_400).replace(minute=0, second=0, microsecond=0)
        start = start.replace(hour=0) if width == day else start
        for minute in (1, 29, 30):  # the last one is of the next span
            bucket = start + step * timedelta(minutes=minute)
            make(bucket, succeeded=1, run_histogram=histogram(p3=minute))
        fold(own)
        first, second = Rollup.objects.order_by("bucket")
        assert (first.bucket, first.succeeded) == (start, 2)
        assert first.run_histogram == histogram(p3=30)
        assert (second.bucket, second.succeeded) == (start + width, 1)


def test_what_is_young_enough_is_left_alone(own: OwnConnection, hour: datetime) -> None:
    make(hour, succeeded=1)
    make(ago(86_400).replace(minute=30, second=0, microsecond=0), succeeded=1)
    make(ago(3_000).replace(second=0, microsecond=0), succeeded=1)
    # Those that a chart of a week is compared with.
    before = WEEK.start(ago(WEEK.length.total_seconds()))
    make(before.replace(minute=0, second=0) + timedelta(hours=1), succeeded=1)
    assert rollup_folding.fold(own) is False
    assert Rollup.objects.count() == 4


def test_queues_and_releases_are_folded_apart_whatever_the_sessions_time_zone(
    own: OwnConnection, hour: datetime
) -> None:
    own.run("SET TIME ZONE 'Asia/Kolkata'")  # half an hour off
    places = [(queue, release) for queue in "ab" for release in ("1.0", "1.1")]
    for queue, release in places:
        for minute in (1, 45):
            bucket = hour + timedelta(minutes=minute)
            make(bucket, queue, release=release, succeeded=1)
    fold(own)
    held = Rollup.objects.order_by("queue", "release")
    columns = ("queue", "release", "bucket", "succeeded")
    assert [*held.values_list(*columns)] == [(*place, hour, 2) for place in places]


def test_two_prunes_that_fold_at_once_lose_nothing(
    own: OwnConnection, other: OwnConnection, hour: datetime
) -> None:
    for minute in range(1, 60):
        for queue in ("a", "b", "c"):
            make(hour + timedelta(minutes=minute), queue, succeeded=1)
    together([partial(fold, own), partial(fold, other)])
    assert total("succeeded") == 59 * 3
    assert Rollup.objects.count() == 3


def test_roll_ups_older_than_400_days_are_dropped(own: OwnConnection) -> None:
    make(ago(401 * 86_400))
    make(ago(399 * 86_400), "kept")
    rollup_folding.drop(own)
    assert [held.queue for held in Rollup.objects.all()] == ["kept"]


def test_histograms_without_places_are_added_and_folded(own: OwnConnection) -> None:
    """As rows have them that were inserted with the column's default."""
    start = ago(6 * 3_600).replace(minute=0, second=0, microsecond=0)
    some = histogram(p3=1)
    for one, other, summed in [([], [], []), ([], some, some), (some, [], some)]:
        Rollup.objects.all().delete()
        for minute, places in ((1, one), (2, other)):
            bucket = start + timedelta(minutes=minute)
            make(bucket, run_histogram=places, wait_histogram=places)
        fold(own)
        (row,) = Rollup.objects.all()
        assert (row.run_histogram, row.wait_histogram) == (summed, summed)
        # What comes later for the same bucket is added to it.
        make(start + timedelta(minutes=3), run_histogram=[], wait_histogram=other)
        fold(own)
        row.refresh_from_db()
        assert row.run_histogram == summed
