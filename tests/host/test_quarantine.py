"""When to have a worker for quarantined jobs; time is a parameter."""

from __future__ import annotations

from django_jobqueue.host.restarts import LONGEST_QUARANTINE_PAUSE as LONGEST
from django_jobqueue.host.restarts import SHORTEST_QUARANTINE_PAUSE as SHORTEST
from django_jobqueue.host.restarts import QuarantineRestarts


def test_nobody_is_wanted_where_nothing_was_seen() -> None:
    assert not QuarantineRestarts().wants_worker(0.0, 100.0)


def test_whoever_was_seen_before_the_last_worker_ended_wants_no_other() -> None:
    quarantine = QuarantineRestarts()
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
