"""What a claimer remembers of the lanes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from django_jobqueue.store.queue.lanes import START, Head, LaneMark, Mark
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.workers.claiming.lane_scanner import (
    FORGET_AFTER,
    MANY,
    REREAD,
    Lanes,
)

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


def at(second: int) -> Mark:
    """The position of that job."""
    return (NOON + timedelta(seconds=second), UUID(int=second))


def lanes_of(*lanes: Lane) -> Lanes:
    known = Lanes()
    known.learn([Head(lane, -1.0, START) for lane in lanes])
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
        lanes.claimed(ordered, [job(ordered[0].lane, second)], full=True)
    assert served in ([MAIL, BILL] * 2, [BILL, MAIL] * 2)


def test_unwanted_lanes_are_left_out() -> None:
    lanes = lanes_of(MAIL, BILL)
    wanted = lanes.in_turn(lambda lane: lane.job_type == "bill")
    assert [known.lane for known in wanted] == [BILL]


def test_a_claim_moves_the_mark_to_the_last_claimed_job() -> None:
    lanes = lanes_of(MAIL)
    asked = lanes.in_turn(lambda lane: True)
    assert asked[0].start == LaneMark(MAIL, START, START)
    stop = lanes.claimed(asked, [job(MAIL, 1), job(MAIL, 5)], full=True)
    assert stop is asked[0]
    assert asked[0].mark == at(5)


def test_a_claim_on_several_lanes_moves_the_mark_of_each() -> None:
    lanes = lanes_of(MAIL, BILL, URGENT)
    asked = lanes.in_turn(lambda lane: True)
    assert [known.lane for known in asked] == [URGENT, MAIL, BILL]
    lanes.claimed(asked, [job(URGENT, 7), job(BILL, 1), job(BILL, 5)], full=True)
    assert [known.mark for known in asked] == [at(7), START, at(5)]


def test_a_straggler_in_a_lane_that_is_empty_then_does_not_move_the_mark_back() -> None:
    lanes = lanes_of(MAIL)
    asked = lanes.in_turn(lambda lane: True)
    lanes.claimed(asked, [job(MAIL, 9)], full=True)
    lanes.claimed(asked, [job(MAIL, 2)], full=False)
    assert asked[0].mark == at(9)


def test_a_claim_that_found_more_than_it_took_goes_on_from_there() -> None:
    lanes = lanes_of(MAIL)
    asked = lanes.in_turn(lambda lane: True)
    lanes.claimed(asked, [job(MAIL, 9)], full=True)
    lanes.claimed(asked, [job(MAIL, 2)], full=True)
    assert asked[0].mark == at(2)


def test_a_scan_goes_back_by_some_thousand_jobs() -> None:
    lanes = lanes_of(MAIL)
    asked = lanes.in_turn(lambda lane: True)
    backs = []
    for second in range(1, 8):
        jobs = [job(MAIL, second)] * (REREAD // 2)
        lanes.claimed(asked, jobs, full=True)
        backs.append(asked[0].start.back)
        assert asked[0].start.mark == at(second)
    assert backs == [at(1), at(1), at(1), at(2), at(2), at(4), at(4)]


def test_a_mark_that_went_back_takes_the_scan_along() -> None:
    lanes = lanes_of(MAIL)
    asked = lanes.in_turn(lambda lane: True)
    lanes.claimed(asked, [job(MAIL, 9)], full=True)
    lanes.learn([Head(MAIL, -1.0, at(2))])
    assert asked[0].start == LaneMark(MAIL, at(2), at(2))
    lanes.claimed(asked, [job(MAIL, 20)], full=True)
    assert asked[0].start == LaneMark(MAIL, at(20), at(9))


def test_a_look_starts_at_the_marks_and_a_sweep_at_the_left_end() -> None:
    lanes = lanes_of(MAIL)
    asked = lanes.in_turn(lambda lane: True)
    lanes.claimed(asked, [job(MAIL, 9)], full=True)
    assert lanes.marks(full_scan=False) == [LaneMark(MAIL, at(9), at(9))]
    assert lanes.marks(full_scan=True) == [LaneMark(MAIL)]


def test_a_claim_says_where_it_stopped_and_which_lanes_are_empty() -> None:
    lanes = lanes_of(MAIL, URGENT)
    asked = lanes.in_turn(lambda lane: True)
    stop = lanes.claimed(asked, [job(MAIL, 1)], full=True)
    assert stop is not None
    assert stop.lane == MAIL
    assert [known.due for known in asked] == [False, True]
    assert lanes.claimed(asked, [], full=False) is None
    assert [known.due for known in asked] == [False, False]


def test_a_look_says_which_lanes_are_due_and_where_they_begin() -> None:
    lanes = lanes_of(MAIL, BILL)
    lanes.learn(
        [Head(MAIL, None, at(5)), Head(BILL, -1.0, at(3)), Head(URGENT, 60.0, at(5))]
    )
    found = {known.lane: known for known in lanes.in_turn(lambda lane: True)}
    assert {lane: known.due for lane, known in found.items()} == {
        MAIL: False,
        BILL: True,
        URGENT: False,
    }
    assert found[MAIL].mark == found[URGENT].mark == at(5)
    assert found[BILL].mark == at(3)


def test_of_many_lanes_those_that_were_long_empty_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    every = [Lane(f"tenant-{n}", 0, "send") for n in range(MANY + 100)]
    lanes = lanes_of(*every)
    future, claimed = every[0], every[1]

    def look() -> set[Lane]:
        lanes.learn(
            Head(known.lane, 60.0 if known.lane == future else None, START)
            for known in list(lanes)
        )
        return {known.lane for known in lanes}

    now[0] += FORGET_AFTER
    assert look() == set(every)
    asked = lanes.in_turn(lambda lane: lane == claimed)
    lanes.claimed(asked, [job(claimed, 1)], full=False)
    now[0] += 1
    kept = look()
    assert len(kept) == MANY
    assert {future, claimed} < kept
    assert kept == look()
    lanes.learn([Head(lane, -1.0, at(1)) for lane in every])
    assert set(in_order(lanes)) == set(every)
