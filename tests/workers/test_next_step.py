"""``next_step``: every rule of the dispatcher, and which one comes first."""

from __future__ import annotations

from typing import Any

from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.workers.claiming.next_step import (
    BUSY_AFTER,
    FAST_AFTER,
    FIRST,
    LIMIT_RETRY,
    LONGEST_UNHEARD,
    NUDGE_EVERY,
    POLL,
    SCAN_EVERY,
    Because,
    Do,
    Known,
    next_step,
    next_wait,
)
from tests.support.tables import differing

NOW = 1_000.0
POLL_IN = 5.0  # seconds


def known(**given: Any) -> Known:
    """What a worker that is idle and listens for long knows at the end of a round that
    found nothing; but for what is given."""
    made = Known()
    end_of_round: dict[str, Any] = {
        "policies_changed": False,
        "policies_due_at": NOW + 60,
        "jobs_arrived": False,
        "may_have_more": False,
        "began": NOW - 0.001,
        "ended": NOW - 1,
        "fast_since": NOW - 1,
        "has_claimed": True,
        "has_scanned": True,
        "has_scanned_since": True,
        "has_room": True,
        "scan_at": NOW + 0.4,
        "poll_in": POLL_IN,
        "hears": True,
        "is_listening": True,
        "listening_since": NOW - 60,
        "empty_rounds": len(FIRST),
    }
    for name, value in {**end_of_round, **given}.items():
        assert hasattr(Known, name), name
        setattr(made, name, value)
    return made


def step(given: dict[str, Any]) -> Do | tuple[float, Because]:
    """What is next, or for how long it waits and why."""
    one = known(**given)
    wait = next_wait(one, NOW)
    return next_step(one, NOW) or (round(wait.seconds, 6), wait.because)


BEGUN = {"has_claimed": False, "has_scanned": False}
CLAIMED = {"has_scanned": False, "has_scanned_since": False}
MORE = {"may_have_more": True, "has_room": False}
RATED = {"is_for_rate": True, "next_start_in": 1}
FAST = {
    "taken": 1,
    "fast_since": NOW - 1 - 2 * FAST_AFTER,
    "ended": NOW - 0.001,
    "has_room": False,
}
UNHEARD = {"is_listening": False, "listen_at": NOW + 1}  # somebody locked its row

RULES: list[tuple[dict[str, Any], Any]] = [
    # 1, 2: it is to claim nothing
    ({"is_open": False, **BEGUN, "may_have_more": True}, Do.STOP_LISTENING),
    ({"is_open": False, **UNHEARD}, (FOREVER, Because.STOPPED)),
    ({"is_open": False, "listen_at": NOW + 1}, (FOREVER, Because.STOPPED)),
    # 3: policies
    ({"policies_changed": True, **BEGUN, "jobs_arrived": True}, Do.READ_POLICIES),
    ({"policies_due_at": NOW}, Do.READ_POLICIES),
    # 4, 5: claims
    ({"has_due_lanes": True}, Do.CLAIM),
    ({**BEGUN, "jobs_arrived": True}, Do.CLAIM),
    (
        {**BEGUN, "jobs_arrived": True, "may_scan": False, "pause": 2},
        (2, Because.LONG_SCAN),
    ),
    ({**BEGUN, "may_have_more": True}, Do.CLAIM),
    ({**BEGUN, "next_start_in": 0.0}, Do.CLAIM),
    ({"jobs_arrived": True}, (POLL_IN, Because.IDLE)),  # whoever said so wakes it
    # 6: scans
    (BEGUN, Do.SCAN),
    ({**CLAIMED, "is_for_news": True}, Do.SCAN),
    ({**CLAIMED, "has_room": False}, (POLL_IN, Because.IDLE)),
    ({**CLAIMED, "taken": 1}, (SCAN_EVERY, Because.UNSCANNED)),
    ({"taken": 1, "has_scanned_since": False}, (SCAN_EVERY, Because.UNSCANNED)),
    ({**CLAIMED, "taken": 1, "scan_at": NOW}, Do.SCAN),
    ({**CLAIMED, "taken": 1, "has_room": False, "scan_at": NOW}, Do.SCAN),
    ({**CLAIMED, **MORE, "scan_at": NOW}, (POLL_IN, Because.FULL)),
    ({**CLAIMED, "taken": 1, "is_out_of_lanes": True}, Do.SCAN),
    ({**CLAIMED, "taken": 1, "may_have_left_jobs": True}, Do.SCAN),
    (
        {**CLAIMED, "may_have_left_jobs": True, "has_room": False},
        (POLL_IN, Because.IDLE),
    ),
    ({**CLAIMED, **RATED}, (1, Because.RATE)),
    ({**CLAIMED, **RATED, "job_due_at": NOW}, Do.SCAN),
    ({**CLAIMED, **RATED, "is_for_news": True}, Do.SCAN),
    ({**CLAIMED, "is_for_rate": True}, Do.SCAN),  # whose jobs are for later now
    ({**BEGUN, "may_scan": False, "pause": 2}, (2, Because.LONG_SCAN)),
    # 7, 8: whether it listens
    ({**MORE, "full_since": NOW - BUSY_AFTER}, (POLL_IN, Because.FULL)),
    ({**MORE, "full_since": NOW - BUSY_AFTER - 1}, Do.STOP_LISTENING),
    (FAST, Do.STOP_LISTENING),
    ({"is_listening": False}, Do.LISTEN),
    ({"is_listening": False, "taken": 1}, (FIRST[0], Because.UNHEARD)),
    ({"is_listening": False, **MORE}, (POLL_IN, Because.FULL)),
    ({"is_listening": False, "hears": False}, (LONGEST_UNHEARD, Because.UNHEARD)),
    # 9: why it rests, and for how long at most
    ({}, (POLL_IN, Because.IDLE)),
    ({"has_listened": True}, (0, Because.NEW_LISTENER)),
    ({**FAST, "is_listening": False}, (POLL, Because.FAST)),
    (UNHEARD, (LONGEST_UNHEARD, Because.UNHEARD)),
    ({**MORE, "has_room_again": True, "has_buffered": True}, (0, Because.ROOM)),
    ({**MORE, "has_buffered": True, "has_room": True}, (NUDGE_EVERY, Because.BUFFER)),
    ({**MORE, "has_room": True}, (0.4, Because.SCAN)),
    ({**MORE, "has_room": True, "pause": 2}, (2, Because.SCAN)),
    ({**MORE, "next_start_in": 0.3}, (0.3, Because.RATE)),
    ({"next_start_in": 0.3}, (0.3, Because.RATE)),
    ({"is_limited": True}, (LIMIT_RETRY, Because.LIMIT)),
    ({"retry_in": 2}, (2, Because.REFUSED)),
    ({"job_due_at": NOW + 3}, (3, Because.LATER)),
    ({"full_scan_wanted": True}, (SCAN_EVERY, Because.PASSED)),
    ({"empty_rounds": 0}, (FIRST[0], Because.IDLE)),
    ({"taken": 1}, (POLL_IN, Because.IDLE)),  # it is told of the next job
    ({"taken": 1, "listening_since": NOW}, (FIRST[0], Because.IDLE)),
]


def test_what_is_known_decides_what_is_next() -> None:
    assert differing(RULES, step) == []


def test_rounds_that_find_nothing_are_farther_and_farther_apart() -> None:
    one, waits = known(empty_rounds=0), []
    for _ in range(len(FIRST) + 2):
        wait = next_wait(one, NOW)
        one.end(wait, NOW)
        waits.append(wait.seconds)
    assert waits == [*FIRST, POLL_IN, POLL_IN]


def test_a_wait_that_was_cut_short_is_not_followed_by_a_longer_one() -> None:
    """A commit may come late of whose job nobody is notified."""
    one = known(empty_rounds=0)
    for _ in range(20):
        wait = next_wait(one, NOW)
        one.end(wait, NOW)
        one.was_woken()
    assert wait.seconds == FIRST[0]


def test_every_step_and_every_reason_is_in_the_table() -> None:
    found = {outcome if isinstance(outcome, Do) else outcome[1] for _, outcome in RULES}
    assert found == {*Do, *Because}
