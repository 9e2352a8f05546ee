"""Claim from a mark: what lies before it, and what is too young for it."""

from __future__ import annotations

from uuid import UUID

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import claim
from django_jobqueue.store.queue.lanes import FRESH, START, LaneMark
from tests.store.rows import ADD, ago, claimed, ids, lane, make

HIGHEST = UUID(int=2**128 - 1)


def from_mark(seconds_ago: float, id: UUID = HIGHEST) -> LaneMark:
    """The lane of ADD, from this position on."""
    return LaneMark(lane().lane, (ago(seconds_ago), id))


def test_a_claim_starts_at_its_mark_which_is_a_moment_and_an_id(
    own: OwnConnection, holder: int
) -> None:
    make(run_after=ago(100))
    moment = ago(50)
    _, second, third = sorted(make(run_after=moment) for _ in range(3))
    made = make(run_after=ago(10))

    mark = LaneMark(lane().lane, (moment, second))
    assert ids(claim.claim(own, holder, [mark], 10)) == {second, third, made}


def test_the_start_lies_before_every_moment_that_python_knows(
    own: OwnConnection, holder: int
) -> None:
    made = {make(run_after="0001-01-03T00:00:00Z"), make(run_after=ago(50))}
    assert lane().mark == START
    assert ids(claim.claim(own, holder, [lane()], 10)) == made


def test_a_job_younger_than_two_seconds_is_seen_whatever_the_mark(
    own: OwnConnection, holder: int
) -> None:
    for mark_at in (0, -3_600):
        make(run_after=ago(FRESH + 10))
        young = make(run_after=ago(0))
        assert ids(claim.claim(own, holder, [from_mark(mark_at)], 10)) == {young}


def test_a_claim_looks_back_as_far_as_it_is_told_and_only_for_young_jobs(
    own: OwnConnection, holder: int
) -> None:
    moment = ago(1)
    _, near, last = sorted(make(run_after=moment) for _ in range(3))
    mark = LaneMark(lane().lane, (moment, last), back=(moment, near))
    assert ids(claim.claim(own, holder, [mark], 10)) == {near, last}

    make(queue="a", run_after=ago(100))
    seen = make(queue="a", run_after=ago(50))
    mark = LaneMark(lane(ADD, "a").lane, (ago(75), HIGHEST), back=(ago(200), HIGHEST))
    assert ids(claim.claim(own, holder, [mark], 10)) == {seen}


def test_the_position_of_the_last_claim_is_a_mark_that_hides_only_what_was_claimed(
    own: OwnConnection, holder: int
) -> None:
    for seconds in (30, 20, 10):
        make(run_after=ago(seconds))
    (first,) = claimed(own, holder)
    mark = LaneMark(lane().lane, (first.run_after, first.id))

    assert len(claim.claim(own, holder, [mark], 10)) == 2


def test_each_lane_has_a_mark_of_its_own(own: OwnConnection, holder: int) -> None:
    make(queue="a", run_after=ago(100))
    seen = make(queue="b", run_after=ago(100))
    mark = LaneMark(lane(ADD, "a").lane, (ago(50), HIGHEST))

    assert ids(claim.claim(own, holder, [mark, lane(queue="b")], 10)) == {seen}
