"""Rates that count what jobs weigh: what a claim takes, and what it spends."""

from __future__ import annotations

from functools import partial
from typing import Any

from django_jobqueue import Rate
from django_jobqueue.models import Bucket, JobType, KeyLimit, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.claim_keyed import KeyedLane
from django_jobqueue.store.queue.claim_keyed_rated import LONGEST_WAIT
from django_jobqueue.store.queue.claim_quarantined import (
    claim_quarantined,
    next_quarantined,
)
from django_jobqueue.store.queue.claim_weighed import claim_keyed_weighed, claim_weighed
from django_jobqueue.store.queue.spend import Spent, spend
from django_jobqueue.store.rows import Lane
from tests.store.meanwhile import together
from tests.store.rates import heaviest_window
from tests.store.rows import KEYED, ago, job_type, lane, make
from tests.store.test_claim_rated import pass_time

RATE = Rate(109, per=3_600, burst=10)
ONE = 36.0  # seconds until there is room for one more
RULE: dict[str, Any] = {"by": "tokens", "default": 2, "of_type": True, "of_key": False}


def weighed(*weights: Any, rate: Rate = RATE, **columns: Any) -> None:
    """A type whose rate counts weights, and jobs with these, in order."""
    job_type("weighed", rate=rate.text, weight_rule=RULE)
    for number, weight in enumerate(weights):
        due = ago(60 - number / 1_000)
        make("weighed", data={"tokens": weight}, run_after=due, **columns)


def take(db: OwnConnection, worker: int, limit: int = 20) -> tuple[list[int], float]:
    """The tokens of the jobs that are claimed, and the seconds to wait."""
    jobs, seconds = claim_weighed(db, worker, [lane("weighed")], limit)
    ids = [job.id for job in jobs]
    claimed = QueuedJob.objects.filter(id__in=ids).order_by("run_after")
    return [job.data["tokens"] for job in claimed], seconds


def spent(key: str = "weighed", rate: Rate = RATE) -> int:
    """How much of a bucket is gone, in starts."""
    owed = Bucket.objects.get(pk=key).full_at - ago(0)
    return round(owed / rate.window * (rate.limit - rate.size + 1))


def test_jobs_start_in_order_if_they_fit(own: OwnConnection, holder: int) -> None:
    weighed(3, 4, 4, 1)
    got, seconds = take(own, holder)
    assert got == [3, 4]  # not the 1, or the second 4 would never start
    assert spent() == 7
    assert 0 < seconds <= ONE  # until the 4 fits, not until 1 does
    pass_time(ONE)
    assert take(own, holder)[0] == [4]


def test_what_is_heavier_than_the_burst_starts_alone(
    own: OwnConnection, holder: int
) -> None:
    weighed(1, 25, 1)
    assert take(own, holder)[0] == [1]
    got, seconds = take(own, holder)
    assert got == []
    assert 0 < seconds <= ONE
    pass_time(ONE)
    assert take(own, holder)[0] == [25]
    assert spent() == 25
    got, seconds = take(own, holder)
    assert got == []
    assert 14 * ONE < seconds <= 16 * ONE  # until the next one fits


def test_a_job_weighs_what_it_or_its_data_say(own: OwnConnection, holder: int) -> None:
    slow = Rate(2_000_000_000, per=3 * 10**9, burst=1_000_000_000)
    wrong = {}
    for tokens, weight, counts in [
        (3, None, 3),
        (3, 7, 7),
        (2.2, None, 3),
        (0, None, 1),
        (-5, None, 1),
        (10**30, None, 2_000_000_000),  # what a window has
        (None, None, 2),
        ("4", None, 2),
        (True, None, 2),
        ([4], None, 2),
        (3, 0, 3),
        (3, -1, 3),
    ]:
        Bucket.objects.all().delete()
        weighed(tokens, rate=slow, weight=weight)
        claim_weighed(own, holder, [lane("weighed")], 1)
        if spent(rate=slow) != counts:
            wrong[str(tokens), weight] = spent(rate=slow)

    assert wrong == {}


def test_a_rate_without_a_weight_counts_starts(own: OwnConnection, holder: int) -> None:
    weighed(*[9] * 6, weight=9)
    types = JobType.objects.filter(pk="weighed")
    for count, rule in ((3, None), (6, {**RULE, "of_type": False})):
        types.update(weight_rule=rule)
        assert take(own, holder, 3)[0] == [9, 9, 9]
        assert spent() == count
    assert spend(own, [Spent("weighed", None, 5)]) == {"weighed"}
    assert spent() == 6


def test_claims_at_once_never_exceed_the_weights_of_any_window(
    own: OwnConnection, claimers: list[tuple[OwnConnection, int]]
) -> None:
    rate = Rate(120, per=0.3, burst=20)
    weighed(*[1 + number % 7 for number in range(120)], rate=rate)

    def work(db: OwnConnection, worker: int) -> None:
        for _ in range(30):
            claim_weighed(db, worker, [lane("weighed")], 5)

    together([partial(work, *one) for one in claimers])
    log = [
        (job.started_at, job.data["tokens"])
        for job in QueuedJob.objects.filter(started_at__isnull=False)
        if job.started_at
    ]
    assert sum(weight for _, weight in log) > rate.size
    assert heaviest_window(log, rate.window) <= rate.limit


def test_quarantined_jobs_wait_until_they_fit(own: OwnConnection, holder: int) -> None:
    weighed(8, 8, quarantined=True)
    assert len(claim_quarantined(own, holder, ["weighed"], None)) == 1
    assert spent() == 8
    nearest = next_quarantined(own, ["weighed"], None)
    assert (nearest.due_in, nearest.is_held_back) == (None, True)
    assert claim_quarantined(own, holder, ["weighed"], None) == []
    pass_time(6 * ONE)
    assert next_quarantined(own, ["weighed"], None).due_in == 0
    assert len(claim_quarantined(own, holder, ["weighed"], None)) == 1


def keyed(*jobs: tuple[str, int], of_type: bool, of_key: bool) -> None:
    """Jobs of these keys and weights, whose type and keys have a rate of 10."""
    rule = {**RULE, "of_type": of_type, "of_key": of_key}
    JobType.objects.filter(pk=KEYED).update(rate=RATE.text, weight_rule=rule)
    KeyLimit.objects.update(concurrency=None, rate=RATE.text)
    for number, (key, tokens) in enumerate(jobs):
        data = {"journal": "/dev/null", "key": key, "tokens": tokens}
        make(KEYED, data=data, run_after=ago(60 - number / 1_000))


def take_keyed(
    db: OwnConnection, worker: int, *, each: int
) -> tuple[str, float, float]:
    """The keys of the jobs that are claimed, and the seconds."""
    of_lane = KeyedLane(
        lane=Lane("default", 0, KEYED),
        limit_name=KEYED,
        locks_limit=True,
        locks_type=True,
        each=each,
    )
    jobs, of_type, of_key = claim_keyed_weighed(db, worker, of_lane, 20)
    keys = sorted(str(job.limit_key)[-1] for job in jobs)
    return "".join(keys), of_type, of_key


def test_weights_of_keys_and_of_the_type(own: OwnConnection, holder: int) -> None:
    counts = {  # of the type, of the key, how many of each: which start
        (True, False, 1): "ab",  # 6 and 4: the type is full
        (False, True, 1): "abc",
        (True, True, 1): "ab",
        (True, False, 8): "aa",  # 6 and 3; then the 6 of b does not fit
        (False, True, 8): "aabccc",
        (True, True, 8): "aa",
        (False, False, 8): "aaabbccc",
    }
    started = {}
    for of_type, of_key, each in counts:
        QueuedJob.objects.all().delete()
        Bucket.objects.all().delete()
        heads = [("a", 6), ("b", 4 if each == 1 else 6), ("c", 2)]
        others = [("a", 3), ("a", 4), ("b", 5), ("c", 2), ("c", 2)]
        keyed(*heads, *others, of_type=of_type, of_key=of_key)
        got, _, _ = take_keyed(own, holder, each=each)
        started[of_type, of_key, each] = got

    assert started == counts


def test_no_job_spends_more_than_a_window_has(own: OwnConnection, holder: int) -> None:
    keyed(("a", 2_000_000_000), of_type=True, of_key=True)
    assert take_keyed(own, holder, each=1)[0] == "a"
    assert (spent(KEYED), spent(f"{KEYED} a")) == (RATE.limit, RATE.limit)
    weighed(2_000_000_000, quarantined=True)
    assert len(claim_quarantined(own, holder, ["weighed"], None)) == 1
    assert spent() == RATE.limit


def test_a_key_waits_as_its_first_job(own: OwnConnection, holder: int) -> None:
    keyed(("a", 8), ("a", 4), of_type=False, of_key=True)
    assert take_keyed(own, holder, each=1)[0] == "a"
    pass_time(2 * ONE - 0.9 * LONGEST_WAIT)  # for 4 of 10, of which 8 are gone
    got, _, of_key = take_keyed(own, holder, each=1)
    assert got == ""
    assert 0 < of_key <= 0.9 * LONGEST_WAIT


def test_the_wait_of_the_type_is_that_of_the_first_job_of_the_circle(
    own: OwnConnection, holder: int
) -> None:
    keyed(("a", 8), ("b", 4), of_type=True, of_key=False)
    got, of_type, _ = take_keyed(own, holder, each=1)
    assert got == "a"
    assert 0 < of_type <= 0.01  # perhaps there is a lighter one behind it
    got, of_type, _ = take_keyed(own, holder, each=1)
    assert got == ""
    assert ONE < of_type <= 2 * ONE


def test_what_a_job_spends_besides_is_of_the_rates_that_count_weights(
    own: OwnConnection, holder: int
) -> None:
    keyed(("a", 3), of_type=True, of_key=True)
    take_keyed(own, holder, each=1)
    key = f"{KEYED} a"
    assert spend(own, [Spent(KEYED, key, 4), Spent(KEYED, key, 1)]) == set()
    assert (spent(KEYED), spent(key)) == (8, 8)
    assert spend(own, [Spent(KEYED, key, -6)]) == set()
    assert (spent(KEYED), spent(key)) == (2, 2)
    rule = {**RULE, "of_type": False, "of_key": True}
    JobType.objects.filter(pk=KEYED).update(weight_rule=rule)
    assert spend(own, [Spent(KEYED, key, 2)]) == set()
    assert (spent(KEYED), spent(key)) == (2, 4)


def test_what_is_given_back_overflows_no_bucket(
    own: OwnConnection, holder: int
) -> None:
    weighed(1, 10, 1)
    take(own, holder, 1)
    spend(own, [Spent("weighed", None, -100)])
    assert take(own, holder)[0] == [10]
    assert take(own, holder)[0] == []
