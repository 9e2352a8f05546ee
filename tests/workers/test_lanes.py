"""What a claimer remembers of the lanes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django_jobqueue.store.claim import START
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.workers.lanes import Lanes, marks

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MAIL = Lane("default", 0, "mail")
BILL = Lane("default", 0, "bill")
URGENT = Lane("default", 9, "urgent")


def job(lane: Lane, second: int) -> ClaimedJob:
    """A claimed job of this lane, due at this second after noon."""
    due = NOON + timedelta(seconds=second)
    return ClaimedJob(
        UUID(int=second),
        lane.job_type,
        lane.queue,
        lane.priority,
        "{}",
        1,
        None,
        0,
        1,
        due.timestamp(),
        due.timestamp(),
        0.0,
        None,
    )


def lanes_of(*lanes: Lane) -> Lanes:
    known = Lanes()
    known.add(lanes)
    return known


def in_order(lanes: Lanes) -> list[Lane]:
    return [known.lane for known in lanes.in_turn(lambda lane: True)]


def test_more_urgent_lanes_come_first() -> None:
    assert in_order(lanes_of(MAIL, URGENT, BILL))[0] == URGENT


def test_lanes_of_one_priority_take_turns() -> None:
    lanes = lanes_of(MAIL, BILL)
    served = []
    for second in range(4):
        ordered = lanes.in_turn(lambda lane: True)
        served.append(ordered[0].lane)
        lanes.claimed(ordered, [job(ordered[0].lane, second)], full=True, swept=False)
    assert served in ([MAIL, BILL] * 2, [BILL, MAIL] * 2)


def test_unwanted_lanes_are_left_out() -> None:
    lanes = lanes_of(MAIL, BILL)
    wanted = lanes.in_turn(lambda lane: lane.job_type == "bill")
    assert [known.lane for known in wanted] == [BILL]


def test_a_claim_moves_the_mark_to_the_last_claimed_job() -> None:
    lanes = lanes_of(MAIL)
    asked = lanes.in_turn(lambda lane: True)
    assert asked[0].mark == START
    stop = lanes.claimed(asked, [job(MAIL, 1), job(MAIL, 5)], full=True, swept=False)
    assert stop is asked[0]
    assert asked[0].mark == (NOON + timedelta(seconds=5), UUID(int=5))
    assert marks(asked, sweep=False)[0].mark == asked[0].mark
    assert marks(asked, sweep=True)[0].mark == START


def test_a_sweep_that_found_a_straggler_does_not_move_the_mark_back() -> None:
    lanes = lanes_of(MAIL)
    asked = lanes.in_turn(lambda lane: True)
    lanes.claimed(asked, [job(MAIL, 9)], full=True, swept=False)
    lanes.claimed(asked, [job(MAIL, 2)], full=False, swept=True)
    assert asked[0].mark[1] == UUID(int=9)


def test_a_sweep_that_found_more_than_it_took_goes_on_from_there() -> None:
    lanes = lanes_of(MAIL)
    asked = lanes.in_turn(lambda lane: True)
    lanes.claimed(asked, [job(MAIL, 9)], full=True, swept=False)
    lanes.claimed(asked, [job(MAIL, 2)], full=True, swept=True)
    assert asked[0].mark[1] == UUID(int=2)


def test_a_claim_says_where_it_stopped_and_which_lanes_are_empty() -> None:
    lanes = lanes_of(MAIL, URGENT)
    asked = lanes.in_turn(lambda lane: True)
    stop = lanes.claimed(asked, [job(MAIL, 1)], full=True, swept=False)
    assert stop is not None
    assert stop.lane == MAIL
    assert [known.due for known in asked] == [False, True]
    assert lanes.claimed(asked, [], full=False, swept=False) is None
    assert [known.due for known in asked] == [False, False]


def test_a_look_says_which_lanes_are_due() -> None:
    lanes = lanes_of(MAIL, BILL)
    lanes.due([BILL])
    due = {known.lane: known.due for known in lanes.in_turn(lambda lane: True)}
    assert due == {MAIL: False, BILL: True}
