"""Claim within a rate, and hold back what shares one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from django_jobqueue import Rate
from django_jobqueue.models import Bucket, KeyLimit, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.control import prune
from django_jobqueue.store.queue import buckets, job_weights
from django_jobqueue.store.queue.claim_quarantined import (
    claim_quarantined,
    next_quarantined,
)
from django_jobqueue.store.queue.claim_rated import claim_rated
from django_jobqueue.store.queue.holds import Hold, hold
from tests.store.meanwhile import together
from tests.store.rates import MICROSECOND, gap, most_in
from tests.store.rows import (
    ADD,
    KEYED,
    ago,
    ids,
    job_type,
    lane,
    make,
    make_many,
    most_in_a_window,
)


def rated(rate: Rate, **columns: Any) -> str:
    """A job type with this rate."""
    return job_type("rated", rate=rate.text, **columns)


def starts(job_type: str = "rated") -> list[datetime]:
    """When its jobs started, from the rows."""
    started = QueuedJob.objects.filter(job_type=job_type, started_at__isnull=False)
    return [
        at
        for at in started.values_list("started_at", flat=True).order_by("started_at")
        if at
    ]


def pass_time(seconds: float) -> None:
    """Let the buckets believe that so much time passed."""
    for bucket in Bucket.objects.all():
        bucket.full_at -= timedelta(seconds=seconds)
        bucket.save()


def test_a_claim_takes_the_burst_and_says_when_the_next_may_start(
    own: OwnConnection, holder: int
) -> None:
    rated(Rate(100, per=910, burst=10))  # one more each ten seconds
    make_many(20, "rated")
    jobs, seconds = claim_rated(own, holder, [lane("rated")], 3)
    assert (len(jobs), seconds) == (3, 0)
    jobs, seconds = claim_rated(own, holder, [lane("rated")], 30)
    assert len(jobs) == 7
    assert 0 < seconds <= 10
    assert claim_rated(own, holder, [lane("rated")], 30)[0] == []
    pass_time(25)
    jobs, seconds = claim_rated(own, holder, [lane("rated")], 30)
    assert len(jobs) == 2
    assert 0 < seconds <= 5


def test_the_operators_rate_wins(own: OwnConnection, holder: int) -> None:
    rates = {  # declared, override: how many start
        ("4/60s burst 2", None): 2,
        ("4/60s burst 2", "20/60s burst 9"): 9,
        ("4/60s burst 2", "unlimited"): 12,
        (None, None): 12,
        (None, "6/1s burst 3"): 3,
        ("1/60s burst 1", None): 1,
        ("5/60s burst 9", None): 9,  # of plain SQL
    }
    started = {}
    for declared, override in rates:
        name = job_type(
            f"{declared}, {override}", rate=declared, rate_override=override
        )
        make_many(12, name)
        jobs, _ = claim_rated(own, holder, [lane(name)], 100)
        started[declared, override] = len(jobs)
        assert Bucket.objects.filter(pk=name).exists() is (len(jobs) < 12)

    assert started == rates


def test_claims_at_once_never_exceed_the_rate_in_any_window(
    claimers: list[tuple[OwnConnection, int]],
) -> None:
    rate = Rate(60, per=0.3, burst=6)
    rated(rate)
    make_many(120, "rated")

    def work(db: OwnConnection, worker: int) -> None:
        for _ in range(30):
            claim_rated(db, worker, [lane("rated")], 5)

    together([partial(work, *one) for one in claimers])
    moments = starts()
    assert len(moments) > rate.size
    assert most_in_a_window(moments, rate.window) <= rate.limit
    span = moments[-1] - moments[0]
    assert len(moments) <= most_in(rate, span)


def test_quarantined_jobs_keep_to_the_rate(own: OwnConnection, holder: int) -> None:
    rated(Rate(2, per=60, burst=1))
    for _ in range(2):
        make("rated", quarantined=True)
    (first,) = claim_quarantined(own, holder, ["rated"], None)
    assert claim_quarantined(own, holder, ["rated"], None) == []
    waits = next_quarantined(own, ["rated"], None)
    assert (waits.due_in, waits.is_held_back) == (None, True)
    assert claim_rated(own, holder, [lane("rated")], 1)[0] == []
    assert next_quarantined(own, ["rated"], None, keeps_rates=False).due_in == 0
    pass_time(30)
    assert next_quarantined(own, ["rated"], None).due_in == 0
    (second,) = claim_quarantined(own, holder, ["rated"], None)
    assert first.id != second.id


def test_what_cannot_start_spends_nothing(own: OwnConnection, holder: int) -> None:
    rated(Rate(100, per=60, burst=9), concurrency=4)
    make("rated", run_after=ago(-3_600))
    make("rated", expires_at=ago(1))
    unrated = make(quarantined=True)
    assert claim_rated(own, holder, [lane("rated")], 5) == ([], 0)
    assert ids(claim_quarantined(own, holder, [ADD], None)) == {unrated}
    rated(Rate(100, per=60, burst=9), paused=True)
    make_many(12, "rated")
    assert claim_rated(own, holder, [lane("rated")], 5) == ([], 0)
    assert not Bucket.objects.exists()
    rated(Rate(100, per=60, burst=9), paused=False)
    jobs, seconds = claim_rated(own, holder, [lane("rated")], 100)
    assert (len(jobs), seconds) == (4, 0)  # it keeps to the concurrency as well


def test_a_clock_that_jumps_fills_the_bucket_or_holds_it_for_the_jump(
    own: OwnConnection, holder: int
) -> None:
    rated(Rate(20, per=60, burst=2))
    make_many(10, "rated")
    assert len(claim_rated(own, holder, [lane("rated")], 9)[0]) == 2
    pass_time(86_400)  # forward
    jobs, _ = claim_rated(own, holder, [lane("rated")], 9)
    assert len(jobs) == 2  # the burst, and no more
    pass_time(-3_600)  # backward
    jobs, seconds = claim_rated(own, holder, [lane("rated")], 9)
    assert jobs == []
    assert 3_600 < seconds < 3_660


# The statements of a bucket, with the time as a parameter, and with weights instead of
# jobs.
NOW = "%(now)s::timestamptz"
_WANTED = f"""
SELECT wanted.weight AS ctid, wanted.weight
  FROM unnest(%(weights)s::bigint[]) AS wanted (weight)
 LIMIT {buckets.TYPE.room}
"""
_FITTING = job_weights.fitting(_WANTED, buckets.TYPE)
_COST = f"SELECT %(job_type)s, ceil(sum(fits.ctid) * {buckets.TYPE.gap})::float8"
SPEND_SOME = f"""
WITH fits AS ({_FITTING}),
     spent AS ({buckets.SPEND.format(spent=f"({_COST} FROM fits)")})
SELECT * FROM fits
""".replace("statement_timestamp()", NOW)
NEXT_START = f"SELECT {buckets.TYPE.next_start('%(weight)s::bigint')}".replace(
    "statement_timestamp()", NOW
)
HAS_ROOM = f"SELECT {buckets.TYPE.has_room_for('%(weight)s::bigint')}".replace(
    "statement_timestamp()", NOW
)
BEGIN = datetime(2026, 3, 28, 23, tzinfo=UTC)  # the clocks of Berlin change that night


@st.composite
def some_rates(draw: st.DrawFn) -> Rate:
    """Rates, the least and the odd ones among them, and such as of many tokens."""
    limit = draw(st.integers(1, 12) | st.sampled_from([9_973, 30_000_001]))
    burst = draw(st.integers(1, max(1, limit // 2)))
    per = draw(st.sampled_from([0.01, 0.7, 1, 3, 9.999999, 100_000]))
    return Rate(min(limit, max(1, int(per * 1_000_000))), per=per, burst=min(burst, 6))


# Parts of a gap that pass, and the parts of the burst that are wanted then.
steps = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0.2, 0.5, 1, 1, 1.5, 2.1, 40]),
        st.lists(st.sampled_from([0, 0, 0.3, 0.5, 1]), max_size=7),
    ),
    min_size=1,
    max_size=30,
)


@pytest.mark.dear
@pytest.mark.django_db
@settings(max_examples=settings().max_examples // 2)
@given(rate=some_rates(), steps=steps)
def test_a_bucket_never_has_more_than_a_sliding_log_of_the_window(
    rate: Rate, steps: list[tuple[float, list[float]]]
) -> None:
    Bucket.objects.all().delete()
    rated(rate)
    db, now, log = DjangoDatabase(), BEGIN, list[tuple[datetime, int]]()
    for gaps, parts in steps:
        now += gaps * gap(rate)
        wanted = [max(1, int(part * rate.size)) for part in parts]
        params: dict[str, Any] = {"job_type": "rated", "now": now, "weights": wanted}
        got = [int(weight) for (weight,) in db.fetch(SPEND_SOME, params)]
        log += [(now, weight) for weight in got]

        assert got == wanted[: len(got)]
        assert sum(w for at, w in log if at > now - rate.window) <= rate.limit
        params["weight"] = first = [*wanted, 1][len(got)]
        ((seconds,),) = db.fetch(NEXT_START, params)
        assert (len(got) < len(wanted)) <= (seconds > 0)  # not less than is permitted
        wait = timedelta(seconds=seconds)
        full_at = Bucket.objects.filter(pk="rated").values_list("full_at", flat=True)
        owed = max(timedelta(0), (full_at.first() or now) - now)
        assert wait == rate.wait(owed, first) <= first * gap(rate) + MICROSECOND
        later = {**params, "now": now + wait}
        assert db.fetch(HAS_ROOM, later) == [(True,)]
        if seconds:
            early = {**later, "now": now + wait - MICROSECOND}
            assert db.fetch(HAS_ROOM, early) == [(False,)]


def test_a_bucket_that_has_been_full_for_a_while_is_dropped(own: OwnConnection) -> None:
    for key, seconds in {"gone": 120, "full": 1, "used": -60}.items():
        Bucket.objects.create(limit_key=key, full_at=ago(seconds))
    assert prune.drop_buckets(own) is False
    assert set(Bucket.objects.values_list("pk", flat=True)) == {"full", "used"}


RATE = Rate(20, per=1_200, burst=3)


def test_a_held_type_starts_when_the_time_is_over(
    own: OwnConnection, holder: int
) -> None:
    job_type("rated", rate=RATE.text)
    make_many(9, "rated")
    assert hold(own, [Hold("rated", None, 30), Hold("rated", None, 90)]) == {"rated"}
    jobs, seconds = claim_rated(own, holder, [lane("rated")], 9)
    assert jobs == []
    assert 80 < seconds <= 90
    pass_time(91)
    assert len(claim_rated(own, holder, [lane("rated")], 9)[0]) == 1  # not the burst
    assert claim_rated(own, holder, [lane("rated")], 9)[0] == []


def test_a_key_with_a_rate_is_held_and_no_other_one(own: OwnConnection) -> None:
    KeyLimit.objects.update(rate=RATE.text)
    job_type(KEYED, rate=RATE.text)
    key = f"{KEYED} a"
    assert hold(own, [Hold(KEYED, key, 30)]) == {key}
    assert [one.pk for one in Bucket.objects.all()] == [key]


def test_the_type_is_held_if_its_keys_have_no_rate(own: OwnConnection) -> None:
    both = [Hold(ADD, None, 30), Hold(KEYED, f"{KEYED} a", 30)]
    assert hold(own, both) == set()
    assert not Bucket.objects.exists()
    job_type(KEYED, rate=RATE.text)
    assert hold(own, both) == {KEYED}


def test_the_longest_hold_counts(own: OwnConnection) -> None:
    job_type("rated", rate=RATE.text)
    moments = []
    for seconds in (300, 240, 360):
        hold(own, [Hold("rated", None, seconds)])
        moments.append(Bucket.objects.get().full_at)
    assert moments[0] == moments[1] < moments[2]


@pytest.mark.django_db
def test_a_changed_rate_owes_what_fills_an_empty_bucket() -> None:
    """The trigger of a changed rate, and Python, which claims are tried against."""
    long = timedelta(days=100_000)
    with connection.cursor() as cursor:
        for rate in (
            *(Rate(1, per=1), Rate(10, per=60, burst=3), Rate(7, per=0.5, burst=2)),
            *(Rate(100_000, per=timedelta(days=1)), Rate(3, per=timedelta(days=365))),
        ):
            cursor.execute("SELECT jobqueue_refill(%s)", [rate.text])
            ((refill,),) = cursor.fetchall()
            assert abs(refill - (long - rate.wait(long, 0))) <= MICROSECOND
