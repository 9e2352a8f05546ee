"""The roll-ups that workers would have written in a week."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django_jobqueue.domain.histogram import BUCKETS, bucket_of
from django_jobqueue.models import FailureRollup, Rollup
from testproject.screenshots.scene import DAY, FAILED, HOUR, RELEASE, SHOP, TYPES, Scene

BUSIEST = 60  # jobs of a type in an hour, when the shop is busy
OUTAGE = 50 * timedelta(minutes=1)


def build(scene: Scene) -> None:
    """Insert them."""
    Rollup.objects.bulk_create(
        _rollup(scene, start, width, name)
        for start, width in _buckets(scene.now)
        for name in TYPES
    )
    FailureRollup.objects.bulk_create(
        FailureRollup(
            fingerprint=scene.kept[name].fingerprint.value,
            bucket=hour,
            job_type=f"{SHOP}.{_type}",
            release=_release(scene, hour),
            failed=max(0, round(count / 8 * scene.random.random() * 2)),
            retried=retrying,
        )
        for name, (_type, count, retrying, since) in FAILED.items()
        for hour in _hours(scene.now, min(since, 7 * DAY))
    )


def _buckets(now: datetime) -> Iterator[tuple[datetime, timedelta]]:
    """As they are kept: minutes, then half hours, then hours."""
    at = now
    for width, age in (
        (timedelta(minutes=1), HOUR),
        (HOUR / 2, 2 * DAY),
        (HOUR, 8 * DAY),
    ):
        seconds = int(width.total_seconds())
        at = at - timedelta(seconds=at.timestamp() % seconds)
        while at > now - age:
            yield at, width
            at -= width


def _release(scene: Scene, at: datetime) -> str:
    """The latest one was deployed this morning."""
    return RELEASE if scene.now - at < 9 * HOUR else "2026.11.2"


def _hours(now: datetime, age: timedelta) -> Iterator[datetime]:
    at = now.replace(minute=0, second=0, microsecond=0)
    while at >= now - age - HOUR:
        yield at
        at -= HOUR


def _rollup(scene: Scene, start: datetime, width: timedelta, name: str) -> Rollup:
    queue, weight, run = TYPES[name]
    day = 1.2 - abs(start.hour + start.minute / 60 - 14) / 12  # most at two
    count = weight / 70 * BUSIEST * max(day, 0.15) * (width / HOUR)
    count = round(count * scene.random.uniform(0.7, 1.3) + scene.random.random() * 0.6)
    outage = name == "deliver_webhook" and scene.now - start < OUTAGE
    failed = round(count * (0.9 if outage else 0.01))
    runs, waits = [0] * BUCKETS, [0] * BUCKETS
    run_ms = wait_ms = 0
    for _ in range(count):
        ran, waited = scene.spread(run), scene.spread(40_000 if outage else 40)
        runs[bucket_of(ran / 1_000)] += 1
        waits[bucket_of(waited / 1_000)] += 1
        run_ms, wait_ms = run_ms + ran, wait_ms + waited
    return Rollup(
        bucket=start,
        job_type=f"{SHOP}.{name}",
        queue=queue,
        release=_release(scene, start),
        succeeded=count - failed,
        failed=failed,
        retried=failed * 2,
        run_ms=run_ms,
        wait_ms=wait_ms,
        run_histogram=runs,
        wait_histogram=waits,
    )
