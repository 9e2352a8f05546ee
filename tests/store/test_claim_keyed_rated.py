"""Claim by key within a rate of each key, and of the job type."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue import Rate
from django_jobqueue.models import Bucket, JobType, KeyLimit, KeyOverride, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.claim_keyed import KeyedLane
from django_jobqueue.store.queue.claim_keyed_rated import claim_keyed_rated
from django_jobqueue.store.queue.claim_quarantined import (
    claim_quarantined,
    next_quarantined,
)
from django_jobqueue.store.queue.holds import Hold, hold
from django_jobqueue.store.rows import ClaimedJob, Lane
from tests.store.meanwhile import together
from tests.store.rates import gap, most_in
from tests.store.rows import KEYED, enqueue_keys, most_in_a_window

SLOW = Rate(20, per=1_200, burst=2)


def take(
    db: OwnConnection, worker: int, limit: int = 20, *, each: int = 1
) -> tuple[str, float, float]:
    """Claim from the lane of these jobs; returns their keys, and the seconds."""
    keyed = KeyedLane(
        lane=Lane("default", 0, KEYED),
        limit_name=KEYED,
        locks_limit=True,
        locks_type=True,
        each=each,
    )
    jobs, of_type, of_key = claim_keyed_rated(db, worker, keyed, limit)
    return keys(jobs), of_type, of_key


def keys(jobs: list[ClaimedJob]) -> str:
    """The keys of these jobs, in their order."""
    return "".join(sorted(str(job.limit_key)[-1] for job in jobs))


@pytest.fixture(autouse=True)
def _rate(own: OwnConnection) -> None:
    """Each key has a rate, and no limit of running jobs."""
    KeyLimit.objects.update(concurrency=None, rate=SLOW.text)


def test_each_key_has_a_bucket_of_its_own(own: OwnConnection, holder: int) -> None:
    enqueue_keys("aaaabbc")
    assert take(own, holder) == ("abc", 0, 0)
    got, of_type, of_key = take(own, holder, each=8)
    assert (got, of_type) == ("ab", 0)
    assert of_key == 1  # it is asked again no later than this
    assert take(own, holder, each=8)[0] == ""
    assert set(Bucket.objects.values_list("pk", flat=True)) == {
        f"{KEYED} {key}" for key in "abc"
    }


def test_the_first_key_to_start_says_when_to_ask(
    own: OwnConnection, holder: int
) -> None:
    enqueue_keys("aaaabbb")
    take(own, holder, each=8)
    left = Bucket.objects.get(pk=f"{KEYED} a")
    left.full_at -= gap(SLOW) - timedelta(seconds=0.5)
    left.save()
    got, _, of_key = take(own, holder, each=8)
    assert 0 < of_key <= 0.5 or got == "a"


def test_the_rate_of_the_type_and_limits_hold_too(
    own: OwnConnection, holder: int
) -> None:
    JobType.objects.filter(pk=KEYED).update(rate="60/3600s burst 3")
    KeyLimit.objects.update(concurrency=1)
    enqueue_keys("aabbccdd")
    got, of_type, _ = take(own, holder, each=2)
    assert got == "abc"
    assert 0 < of_type <= 3_600
    assert take(own, holder, each=2)[0] == ""


def test_a_quarantined_job_spends_of_its_key(own: OwnConnection, holder: int) -> None:
    KeyLimit.objects.update(rate="1/60s burst 1")
    enqueue_keys("aab", quarantined=True)
    first = claim_quarantined(own, holder, [KEYED], None)
    second = claim_quarantined(own, holder, [KEYED], None)
    assert keys(first + second) == "ab"
    assert claim_quarantined(own, holder, [KEYED], None) == []
    waits = next_quarantined(own, [KEYED], None)
    assert (waits.due_in, waits.is_held_back) == (None, True)
    enqueue_keys("b")
    assert take(own, holder)[0] == ""


def test_claims_at_once_never_exceed_the_rate_of_a_key_in_any_window(
    claimers: list[tuple[OwnConnection, int]],
) -> None:
    rate = Rate(20, per=0.3, burst=3)
    KeyLimit.objects.update(rate=rate.text)
    enqueue_keys("aaaaaaaaaabbbbbbbcd" * 8)

    def work(db: OwnConnection, worker: int) -> None:
        for number in range(25):
            take(db, worker, 7, each=1 + number % 3)

    together([partial(work, *one) for one in claimers])
    by_key = defaultdict[str, list[datetime]](list)
    for job in QueuedJob.objects.filter(status="running").order_by("started_at"):
        by_key[str(job.limit_key)].append(job.started_at)
    assert len(by_key) == 4
    for moments in by_key.values():
        assert most_in_a_window(moments, rate.window) <= rate.limit
        assert len(moments) <= most_in(rate, moments[-1] - moments[0])


def own_rate(key: str, rate: str | None, **columns: Any) -> None:
    """What an operator says of one key alone."""
    KeyOverride.objects.update_or_create(
        limit_key=f"{KEYED} {key}", defaults={"rate": rate, **columns}
    )


def test_the_rate_of_one_key_goes_before_that_of_all_and_an_operators_before_the_codes(
    own: OwnConnection, holder: int
) -> None:
    rates = {  # of all keys, declared and override, and of "a": which start
        (SLOW.text, None, "8/60s burst 4"): "aaaabb",
        (SLOW.text, None, "1/60s burst 1"): "abb",
        (SLOW.text, None, "unlimited"): "aaaaaabb",
        (None, None, "8/60s burst 4"): "aaaabbb",
        (None, None, "unlimited"): "aaaaaabbb",
        (SLOW.text, None, None): "aabb",
        (SLOW.text, "8/60s burst 4", None): "aaaabbb",
        (SLOW.text, "unlimited", None): "aaaaaabbb",
        (None, None, None): "aaaaaabbb",
        (None, "1/1s burst 1", None): "ab",
    }
    started = {}
    for of_all, override, of_a in rates:
        KeyLimit.objects.update(rate=of_all, rate_override=override)
        own_rate("a", of_a)
        enqueue_keys("aaaaaabbb")
        got, _, of_key = take(own, holder, each=9)
        started[of_all, override, of_a] = got
        assert (of_key > 0) is ("a" * 6 not in got or "bbb" not in got)
        QueuedJob.objects.all().delete()
        Bucket.objects.all().delete()

    assert started == rates


def test_a_changed_rate_begins_with_an_empty_bucket_at_most(own: OwnConnection) -> None:
    now = timezone.now()
    wrong = {}
    for before, after, longest in [
        ("1/3600s burst 1", "100/10s burst 10", 1.1),
        ("1/3600s burst 1", None, 2 * 64),
        ("1/3600s burst 1", "unlimited", 0),
        (None, "100/10s burst 10", 1.1),
        (None, "2/7200s burst 1", 2 * 64),  # it owes no more than it did
    ]:
        Bucket.objects.all().delete()
        own_rate("a", before)
        full_at = now + timedelta(seconds=3_600 if before else 2 * 64)
        for key in "ab":
            Bucket.objects.create(limit_key=f"{KEYED} {key}", full_at=full_at)
        if after is None:
            KeyOverride.objects.all().delete()
        else:
            own_rate("a", after)
        owed = (Bucket.objects.get(pk=f"{KEYED} a").full_at - now).total_seconds()
        if owed > longest + 30:
            wrong[before, after] = owed
        assert Bucket.objects.get(pk=f"{KEYED} b").full_at == full_at

    assert wrong == {}


def test_a_rate_of_all_keys_fills_no_bucket_of_an_own_one(own: OwnConnection) -> None:
    own_rate("a", "1/3600s burst 1")
    full_at = timezone.now() + timedelta(seconds=3_000)
    for key in "ab":
        Bucket.objects.create(limit_key=f"{KEYED} {key}", full_at=full_at)
    KeyLimit.objects.update(rate="100/10s burst 10")
    assert Bucket.objects.get(pk=f"{KEYED} a").full_at == full_at
    assert Bucket.objects.get(pk=f"{KEYED} b").full_at < full_at


def test_waits_and_holds_of_a_key_are_of_its_rate(
    own: OwnConnection, holder: int
) -> None:
    KeyLimit.objects.update(rate=None)
    own_rate("a", "100/10s burst 1")
    enqueue_keys("aaab")
    assert take(own, holder)[0] == "ab"
    assert 0 < take(own, holder)[2] <= 0.1
    assert hold(own, [Hold(KEYED, f"{KEYED} a", 30)]) == {f"{KEYED} a"}
    assert hold(own, [Hold(KEYED, f"{KEYED} b", 30)]) == set()
    enqueue_keys("b")
    assert take(own, holder)[0] == "b"
