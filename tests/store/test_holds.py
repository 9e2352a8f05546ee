"""Hold back what shares a rate."""

from __future__ import annotations

import pytest

from django_jobqueue import Rate
from django_jobqueue.models import Bucket, KeyLimit
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.claim_rated import claim_rated
from django_jobqueue.store.queue.holds import Hold, hold
from tests.store.rows import ADD, KEYED, job_type, lane, make_many
from tests.store.test_claim_rated import pass_time

RATE = Rate(20, per=1_200, burst=3)


def test_nothing_of_the_type_starts_until_the_time_is_over(
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
    job_type(KEYED, rate=RATE.text)
    assert hold(own, [Hold(KEYED, f"{KEYED} a", 30)]) == {KEYED}


def test_without_a_rate_nothing_is_held(own: OwnConnection) -> None:
    assert hold(own, [Hold(ADD, None, 30), Hold(KEYED, f"{KEYED} a", 30)]) == set()
    assert not Bucket.objects.exists()


@pytest.mark.parametrize("longer", [60, -60])
def test_the_longest_hold_counts(own: OwnConnection, longer: float) -> None:
    job_type("rated", rate=RATE.text)
    hold(own, [Hold("rated", None, 300)])
    first = Bucket.objects.get().full_at
    hold(own, [Hold("rated", None, 300 + longer)])
    assert (Bucket.objects.get().full_at > first) is (longer > 0)
