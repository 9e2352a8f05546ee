"""Look: which lanes have jobs, and when the first job of each is due."""

from __future__ import annotations

import pytest

from django_jobqueue.store import lanes
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.rows import Lane
from tests.store.rows import ADD, ago, claimed, job_type, make, make_many

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
    for lane in places:
        job_type(lane.job_type)
        make(lane.job_type, queue=lane.queue, priority=lane.priority, **columns)


def test_an_empty_queue_has_no_lanes(own: OwnConnection) -> None:
    assert lanes.look(own, []) == lanes.Look([], {})
    assert lanes.look(own, PLACES) == lanes.Look([], {})


def test_every_lane_that_has_a_job_is_found(own: OwnConnection) -> None:
    fill(*PLACES, *PLACES)

    look = lanes.look(own, [])

    assert sorted(look.new) == sorted(PLACES)
    assert look.due_in == {}


@pytest.mark.parametrize("number", range(len(PLACES)))
def test_a_lane_is_new_whatever_lanes_around_it_are_known(
    own: OwnConnection, number: int
) -> None:
    fill(*PLACES)
    known = PLACES[:number] + PLACES[number + 1 :]

    look = lanes.look(own, known)

    assert look.new == [PLACES[number]]
    assert set(look.due_in) == set(known)


def test_several_new_lanes_of_one_gap_are_found_together(own: OwnConnection) -> None:
    fill(*PLACES)
    known = sorted(PLACES)[::4]

    look = lanes.look(own, known)

    assert sorted(look.new + known) == sorted(PLACES)


def test_known_lanes_are_not_new(own: OwnConnection) -> None:
    fill(*PLACES)

    look = lanes.look(own, list(reversed(PLACES)))

    assert look.new == []
    assert set(look.due_in) == set(PLACES)


def test_a_look_tells_when_the_first_job_of_a_lane_is_due(own: OwnConnection) -> None:
    due, later, empty = Lane("due", 0, ADD), Lane("later", 0, ADD), Lane("no", 0, ADD)
    fill(due, run_after=ago(100))
    fill(due, later, run_after=ago(-600))

    look = lanes.look(own, [due, later, empty])

    assert set(look.due_in) == {due, later}
    assert -130 < look.due_in[due] <= -100
    assert 570 < look.due_in[later] <= 600


def test_running_and_lonely_jobs_make_no_lane(own: OwnConnection, holder: int) -> None:
    make(alone=True)
    make()
    claimed(own, holder)

    assert lanes.look(own, []).new == []


def test_a_lane_with_many_jobs_is_found_once(own: OwnConnection) -> None:
    make_many(500)

    assert lanes.look(own, []).new == [Lane("default", 0, ADD)]


def test_the_queues_of_all_lanes_are_found_once(own: OwnConnection) -> None:
    assert lanes.queues(own) == []
    fill(*PLACES)

    assert lanes.queues(own) == sorted({place.queue for place in PLACES})
