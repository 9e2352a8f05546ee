"""What a claimer remembers of the lanes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from django_jobqueue.processes.lane_progress import REREAD, SharedLaneProgress
from django_jobqueue.store.queue.lanes import START, Head, LaneMark, Mark
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.workers.claiming.known_lanes import (
    FORGET_AFTER,
    MOST_EMPTY,
    KnownLane,
    Lanes,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MAIL = Lane("default", 0, "mail")
BILL = Lane("default", 0, "bill")
URGENT = Lane("default", 9, "urgent")


def job(lane: Lane, second: int) -> ClaimedJob:
    """A claimed job of this lane, due at this second after noon."""
    due = (NOON + timedelta(seconds=second)).timestamp()
    head = (UUID(int=second), lane.job_type, lane.queue, lane.priority, "{}")
    return ClaimedJob(*head, 1, None, 0, 1, due, due, 0.0, None)


def at(second: int) -> Mark:
    return (NOON + timedelta(seconds=second), UUID(int=second))


def lanes_of(*lanes: Lane) -> Lanes:
    known = Lanes()
    known.learn([Head(lane, -1.0, START) for lane in lanes])
    return known


def in_order(lanes: Lanes) -> list[Lane]:
    return [known.lane for known in lanes.in_turn(lambda lane: True)]


def test_more_urgent_lanes_come_first_and_unwanted_ones_are_left_out() -> None:
    lanes = lanes_of(MAIL, URGENT, BILL)
    assert in_order(lanes)[0] == URGENT
    wanted = lanes.in_turn(lambda lane: lane.job_type == "bill")
    assert [known.lane for known in wanted] == [BILL]


def test_lanes_of_one_priority_take_turns() -> None:
    lanes = lanes_of(MAIL, BILL)
    served = []
    for second in range(4):
        ordered = lanes.in_turn(lambda lane: True)
        served.append(ordered[0].lane)
        lanes.claimed(ordered, [job(ordered[0].lane, second)], full=True)
    assert served in ([MAIL, BILL] * 2, [BILL, MAIL] * 2)


def claim(lanes: Lanes, *jobs: ClaimedJob, full: bool = True) -> KnownLane | None:
    asked = lanes.in_turn(lambda lane: True)
    lanes.starts(asked)
    return lanes.claimed(asked, jobs, full=full)


def start_of(lanes: Lanes) -> LaneMark:
    (start,) = lanes.starts(lanes)
    return start


def test_a_claim_moves_the_mark_of_each_lane_to_its_last_claimed_job() -> None:
    lanes = lanes_of(MAIL)
    assert start_of(lanes) == LaneMark(MAIL, START, START)
    stop = claim(lanes, job(MAIL, 1), job(MAIL, 5))
    assert stop.lane == MAIL
    assert start_of(lanes).mark == at(5)
    assert lanes.marks() == [LaneMark(MAIL, at(5), at(5))]  # a scan starts there

    lanes = lanes_of(MAIL, BILL, URGENT)
    assert in_order(lanes) == [URGENT, MAIL, BILL]
    claim(lanes, job(URGENT, 7), job(BILL, 1), job(BILL, 5))
    marks = {start.lane: start.mark for start in lanes.starts(lanes)}
    assert marks == {URGENT: at(7), MAIL: START, BILL: at(5)}


def test_a_claim_goes_on_behind_the_mark_if_there_were_more_than_it_took() -> None:
    lanes = lanes_of(MAIL)
    claim(lanes, job(MAIL, 9))
    claim(lanes, job(MAIL, 2), full=False)  # a straggler; there are no more
    assert start_of(lanes).mark == at(9)
    claim(lanes, job(MAIL, 3))
    assert start_of(lanes).mark == at(3)
    claim(lanes, job(MAIL, 12))
    assert start_of(lanes).mark == at(12)


@pytest.mark.parametrize("full", [True, False])
def test_jobs_behind_the_mark_are_claimed_to_the_last(full: bool) -> None:
    """A limit may end the claim as well as its number."""
    lanes = lanes_of(MAIL)
    claim(lanes, job(MAIL, 9))
    lanes.marks()
    lanes.learn([Head(MAIL, -1.0, at(2))])
    assert start_of(lanes) == LaneMark(MAIL, at(2), at(2))
    claim(lanes, job(MAIL, 2), job(MAIL, 4), full=full)
    assert start_of(lanes).mark == at(4)
    claim(lanes, full=False)
    assert start_of(lanes).mark == at(4)
    lanes.marks()
    lanes.learn([Head(MAIL, None, at(20))])
    assert start_of(lanes) == LaneMark(MAIL, at(20), at(9))


@pytest.mark.parametrize("scans", [True, False])
def test_what_another_process_passed_meanwhile_is_not_behind(scans: bool) -> None:
    """Most of it is claimed already: it would pass thousands of jobs in vain."""
    shared = SharedLaneProgress()
    ours, theirs = Lanes(shared=shared), Lanes(shared=shared)
    for lanes in (ours, theirs):
        lanes.learn([Head(MAIL, -1.0, at(1))])
    ours.marks()
    claim(theirs, job(MAIL, 9))
    if scans:
        ours.learn([Head(MAIL, -1.0, at(5))])
    else:
        ours.claimed([*ours], [job(MAIL, 5)], full=True)
    assert start_of(ours).mark == at(9)


def test_a_scan_goes_back_by_some_thousand_jobs() -> None:
    lanes = lanes_of(MAIL)
    backs = []
    for second in range(1, 8):
        claim(lanes, *[job(MAIL, second)] * (REREAD // 2))
        start = start_of(lanes)
        backs.append(start.back)
        assert start.mark == at(second)
    assert backs == [at(1), at(1), at(1), at(2), at(2), at(4), at(4)]


def test_a_clock_that_was_set_back_takes_the_mark_along() -> None:
    """Else each job of the next hour would be behind the mark."""
    lanes = lanes_of(MAIL)
    claim(lanes, job(MAIL, 3_600))
    lanes.marks()
    lanes.learn([Head(MAIL, None, at(5))])
    assert start_of(lanes) == LaneMark(MAIL, at(5), START)


def test_a_claim_says_where_it_stopped_and_which_lanes_are_empty() -> None:
    lanes = lanes_of(MAIL, URGENT)
    asked = lanes.in_turn(lambda lane: True)
    stop = lanes.claimed(asked, [job(MAIL, 1)], full=True)
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
    assert found[MAIL].first == found[URGENT].first == at(5)
    assert found[BILL].first == at(3)


def test_lanes_that_are_empty_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    every = [Lane(f"tenant-{n}", 0, "send") for n in range(MOST_EMPTY + 100)]
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
    assert len(kept) == MOST_EMPTY
    assert {future, claimed} < kept
    assert kept == look()
    lanes.learn([Head(lane, -1.0, at(1)) for lane in every])
    assert set(in_order(lanes)) == set(every)
