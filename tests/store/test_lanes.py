"""Look: which lanes have jobs, and when the first job of each is due."""

from __future__ import annotations

from uuid import UUID

import pytest

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import lanes
from django_jobqueue.store.queue.lanes import Head, LaneMark
from django_jobqueue.store.rows import Lane
from tests.store.rows import ADD, ago, claimed, job_type, lane, make

PLACES = [
    Lane("a", -100, ADD),
    Lane("a", 0, "tests.sample.aadd"),
    Lane("a", 0, ADD),
    Lane("a", 100, ADD),
    Lane("a-b", 0, ADD),
    Lane("a.b", 0, ADD),
    Lane("A", 0, ADD),
    Lane("default", 0, ADD),
    Lane("z", 0, "Ünïcode"),
    Lane("z", 0, "tests.sample.write"),
    Lane("é", 5, ADD),
    Lane("日本", 5, ADD),
    Lane("😀", 0, ADD),
]


def fill(*places: Lane, **columns: object) -> None:
    """Insert a job into each of these lanes."""
    for place in places:
        job_type(place.job_type)
        make(place.job_type, queue=place.queue, priority=place.priority, **columns)


def known(*places: Lane) -> list[LaneMark]:
    """These lanes, with no mark."""
    return [LaneMark(place) for place in places]


def found(heads: list[Head]) -> list[Lane]:
    """The lanes of these heads that have jobs, in order."""
    return sorted(head.lane for head in heads if head.due_in is not None)


def test_a_lane_is_found_whatever_lanes_around_it_are_known(own: OwnConnection) -> None:
    assert lanes.scan(own, []) == lanes.queues(own) == []
    assert found(lanes.scan(own, known(*PLACES))) == []
    before = ago(0)
    heads, empty = lanes.full_scan(own)
    assert heads == []
    assert before <= empty[0] <= ago(0)
    fill(*PLACES, *PLACES)
    assert lanes.queues(own) == sorted({place.queue for place in PLACES})
    without = [[p for p in PLACES if p != place] for place in PLACES]
    for others in ([], sorted(PLACES)[::4], reversed(PLACES), *without):
        assert found(lanes.scan(own, known(*others))) == sorted(PLACES)


def test_a_look_within_queues_finds_their_lanes_and_no_others(
    own: OwnConnection,
) -> None:
    fill(*PLACES)
    names = sorted({place.queue for place in PLACES})
    for chosen in ([], *([name] for name in [*names, "none"]), names[::2], names):
        expected = [place for place in PLACES if place.queue in chosen]
        for others in ([], expected[::2]):
            heads = lanes.scan(own, known(*others), lanes.of_queues(chosen))
            assert found(heads) == sorted(expected), chosen
        heads, _empty = lanes.full_scan(own, lanes.of_queues(chosen))
        assert found(heads) == sorted(expected), chosen


# Next to each other in each of the three columns, and at both ends of the priorities.
GRID = [
    Lane(queue, priority, name)
    for queue in ("a", "aa", "b")
    for priority in (-100, -99, 100)
    for name in ("t", "tt")
]


def test_a_lane_next_to_any_known_ones_is_found(own: OwnConnection) -> None:
    fill(*GRID)
    places = sorted(GRID)
    missed = {}
    for number, first in enumerate(places):
        for second in places[number:]:
            heads = lanes.scan(own, known(*{first, second}))
            if found(heads) != places:
                missed[first, second] = set(places) - set(found(heads))
    assert missed == {}


@pytest.mark.parametrize("are_known", [True, False])
def test_a_look_tells_when_the_first_job_of_a_lane_is_due(
    own: OwnConnection, are_known: bool
) -> None:
    due, later = Lane("due", 0, ADD), Lane("later", 0, ADD)
    fill(due, run_after=ago(100))
    fill(due, later, run_after=ago(-600))
    heads = lanes.scan(own, known(due, later) if are_known else [])
    first, second = sorted(heads)
    assert (first.lane, first.is_due) == (due, True)
    assert (second.lane, second.is_due) == (later, False)
    assert first.due_in is not None
    assert -130 < first.due_in <= -100
    assert second.due_in is not None
    assert 570 < second.due_in <= 600


@pytest.mark.parametrize("are_known", [True, False])
def test_a_look_tells_where_a_lane_begins(own: OwnConnection, are_known: bool) -> None:
    moment = ago(100)
    first, _ = sorted(make(run_after=moment) for _ in range(2))
    make(run_after=ago(50))
    (head,) = lanes.scan(own, [lane()] if are_known else [])
    assert head.mark == (moment, first)


def test_a_lane_whose_jobs_are_not_due_begins_now(own: OwnConnection) -> None:
    before = ago(0)
    make(run_after=ago(-600))
    empty = Lane("empty", 0, ADD)
    heads = lanes.scan(own, [lane(), LaneMark(empty)])
    assert {head.lane: head.is_due for head in heads} == {
        lane().lane: False,
        empty: False,
    }
    for head in heads:
        assert before <= head.mark[0] <= ago(0)
        assert head.mark[1] == UUID(int=0)


def test_a_full_scan_finds_what_scans_without_marks_find(own: OwnConnection) -> None:
    fill(*PLACES[::2])
    fill(PLACES[1], run_after=ago(-600))
    before = ago(0)
    heads, empty = lanes.full_scan(own)
    expected = lanes.scan(own, known(*PLACES))
    assert found(heads) == found(expected) == sorted([*PLACES[::2], PLACES[1]])
    assert {head.lane: head.mark for head in heads if head.is_due} == {
        head.lane: head.mark for head in expected if head.is_due
    }
    assert len(heads) == len(found(heads))
    for mark in (empty, *(head.mark for head in heads if not head.is_due)):
        assert before <= mark[0] <= ago(0)
        assert mark[1] == UUID(int=0)


def test_a_look_starts_at_the_mark(own: OwnConnection) -> None:
    make(run_after=ago(100))
    seen = make(run_after=ago(50))
    (head,) = lanes.scan(own, [LaneMark(lane().lane, (ago(75), UUID(int=0)))])
    assert head.mark[1] == seen


def test_running_and_lonely_jobs_make_no_lane(own: OwnConnection, holder: int) -> None:
    make(quarantined=True)
    make()
    claimed(own, holder)
    assert lanes.scan(own, []) == []
