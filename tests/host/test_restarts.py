"""When a process that died is started again, how often that is told, and when to have a
worker for quarantined jobs; time is a parameter."""

from __future__ import annotations

from django_jobqueue.host.restarts import (
    LOGGED_EVERY,
    LONGEST_PAUSE,
    SHORT_LIFE,
    QuarantineRestarts,
    Restarts,
)
from django_jobqueue.host.restarts import LONGEST_QUARANTINE_PAUSE as LONGEST
from django_jobqueue.host.restarts import SHORTEST_QUARANTINE_PAUSE as SHORTEST


def rests(*lives: float) -> list[float]:
    """The rest after each of these deaths, in seconds."""
    restarts, now, found = Restarts(), 1_000.0, []
    for lived in lives:
        restarts.died(lived=lived, now=now)
        found.append(round(max(0.0, restarts.next_at - now), 3))
        now = max(now, restarts.next_at)
    return found


def test_who_dies_young_again_and_again_is_replaced_later_and_later() -> None:
    assert rests(*[0.0] * 8) == [0.0, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert rests(*[0.0] * 50)[-1] == LONGEST_PAUSE
    # Who lived for long is replaced at once.
    assert rests(0, 0, 0, SHORT_LIFE + 1, 0) == [0.0, 0.4, 0.8, 0.0, 0.0]
    assert rests(0, 0, SHORT_LIFE) == [0.0, 0.4, 0.8]


def test_an_orderly_end_is_no_death() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.died(lived=0.0, now=10.0)
    assert not restarts.is_due(11.0)
    assert restarts.is_due(15.0)
    restarts.reset()
    assert restarts.is_due(11.0)
    assert (restarts.in_row, restarts.how_often) == (0, "")


def told(restarts: Restarts, cause: str, now: float) -> bool:
    restarts.died(lived=0.0, now=now)
    return restarts.note_cause(cause, now)


def test_the_same_trouble_is_told_once_a_minute_with_a_count() -> None:
    restarts = Restarts()
    assert told(restarts, "signal 9", 0.0)
    assert restarts.how_often == ""
    assert not told(restarts, "signal 9", 1.0)
    assert not told(restarts, "signal 9", LOGGED_EVERY - 1)
    assert told(restarts, "signal 9", LOGGED_EVERY + 1)
    assert restarts.how_often == ", 4 times in a row"
    assert not told(restarts, "signal 9", LOGGED_EVERY + 2)
    assert told(restarts, "code 1", LOGGED_EVERY + 3)  # another one at once
    assert not told(restarts, "code 1", LOGGED_EVERY + 4)
    assert told(restarts, "signal 9", LOGGED_EVERY + 5)


def test_the_first_two_and_one_a_minute_tell_at_length_why_they_fail() -> None:
    restarts, loud = Restarts(), []
    for now in (0.0, 1.0, 2.0, 3.0, LOGGED_EVERY + 4, LOGGED_EVERY + 5):
        loud.append(restarts.is_verbose(now))
        told(restarts, "code 1", now + 0.5)
    assert loud == [True, True, False, False, True, False]


def test_whoever_was_seen_before_the_last_worker_ended_wants_no_other() -> None:
    quarantine = QuarantineRestarts()
    assert not quarantine.wants_worker(0.0, 100.0)  # nothing was seen
    assert quarantine.wants_worker(99.0, 100.0)
    quarantine.ended(101.0, has_claimed=True)
    assert not quarantine.wants_worker(99.0, 102.0)
    assert quarantine.wants_worker(101.5, 102.0)


def test_those_that_claim_nothing_come_later_and_later_until_one_does() -> None:
    quarantine, now, rests = QuarantineRestarts(), 100.0, []
    for _ in range(9):
        quarantine.ended(now, has_claimed=False)
        before = now
        while not quarantine.wants_worker(now, now):
            now += 0.25
        rests.append(now - before)
    assert rests == [SHORTEST, 1, 2, 4, 8, 16, LONGEST, LONGEST, LONGEST]
    quarantine.ended(now, has_claimed=True)
    assert quarantine.wants_worker(now + 0.01, now + 0.01)
    quarantine.ended(now, has_claimed=False)
    assert quarantine.wants_worker(now + SHORTEST, now + SHORTEST)
