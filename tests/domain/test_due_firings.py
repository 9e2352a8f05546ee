"""What is fired and what is missed after an outage, for each policy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

from django_jobqueue.domain.due_firings import (
    MOST_WALKED,
    Missed,
    MissedPolicy,
    Period,
    due_firings,
)
from django_jobqueue.domain.schedule_rules import cron, every, firings

NOW = datetime(2026, 3, 10, 12, 0, 30, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOURLY = cron("0 * * * *", tz="UTC")
ALWAYS = Period()


def noon(hours_ago: int = 0) -> datetime:
    return NOW.replace(second=0) - hours_ago * HOUR


def test_on_time_there_is_one() -> None:
    for missed in Missed:
        decided = due_firings(HOURLY, ALWAYS, MissedPolicy(missed=missed), noon(), NOW)
        assert (decided.fire, decided.missed) == ([noon()], [])
        assert decided.next_at == noon(-1)


def test_once_makes_up_for_the_newest() -> None:
    decided = due_firings(HOURLY, ALWAYS, MissedPolicy(), noon(5), NOW)
    assert decided.fire == [noon()]
    assert decided.missed == [noon(n) for n in (5, 4, 3, 2, 1)]


def test_once_is_late_if_its_newest_was_long_ago() -> None:
    daily = cron("0 3 * * *", tz="UTC")
    decided = due_firings(daily, ALWAYS, MissedPolicy(), noon(9), NOW)
    assert (decided.fire, decided.missed) == ([noon(9)], [])
    assert decided.next_at == noon(9) + DAY


def test_skip_makes_up_for_nothing() -> None:
    policy = MissedPolicy(missed=Missed.SKIP)
    decided = due_firings(HOURLY, ALWAYS, policy, noon(2), NOW + 10 * MINUTE)
    assert decided.fire == []
    assert decided.missed == [noon(2), noon(1), noon()]


def test_all_makes_a_job_for_each_up_to_a_number() -> None:
    policy = MissedPolicy(missed=Missed.ALL, most=3)
    decided = due_firings(HOURLY, ALWAYS, policy, noon(5), NOW)
    assert decided.fire == [noon(2), noon(1), noon()]
    assert decided.missed == [noon(5), noon(4), noon(3)]


def test_what_was_missed_longer_ago_is_not_made_up_for() -> None:
    policy = MissedPolicy(missed=Missed.ALL, within=2 * HOUR + MINUTE)
    decided = due_firings(HOURLY, ALWAYS, policy, noon(50), NOW)
    assert decided.fire == [noon(2), noon(1), noon()]
    assert decided.missed == [noon(50)]


def test_a_daily_firing_that_is_too_old_is_missed_and_nothing_is_fired() -> None:
    policy = MissedPolicy(within=HOUR)
    decided = due_firings(cron("0 3 * * *", tz="UTC"), ALWAYS, policy, noon(9), NOW)
    assert (decided.fire, decided.missed) == ([], [noon(9)])


def test_after_its_end_there_is_nothing_more() -> None:
    period = Period(ends_at=noon(1) + MINUTE)
    policy = MissedPolicy(missed=Missed.ALL)
    decided = due_firings(HOURLY, period, policy, noon(3), NOW)
    assert decided.fire == [noon(3), noon(2), noon(1)]
    assert decided.next_at is None


def test_before_its_start_there_is_nothing() -> None:
    period = Period(starts_at=noon(-5))
    assert period.next_after(HOURLY, NOW) == noon(-5)
    assert period.next_after(HOURLY, noon(-5)) == noon(-6)


def test_of_very_many_the_newest_are_made_up_for() -> None:
    each, policy = every(seconds=1), MissedPolicy(missed=Missed.ALL, most=50)
    decided = due_firings(each, ALWAYS, policy, NOW - DAY, NOW)
    assert decided.fire == [NOW - n * SECOND for n in range(49, -1, -1)]
    assert MOST_WALKED > len(decided.missed) > 1_000


RULES = (HOURLY, every(minutes=7), cron("30 2 * * *", tz="Europe/Berlin"))
OUTAGES = (timedelta(0), 3 * SECOND, 59 * SECOND, 61 * SECOND, HOUR, 25 * HOUR, 9 * DAY)


def test_each_moment_is_either_fired_or_missed() -> None:
    for rule, missed in product(RULES, Missed):
        policy = MissedPolicy(missed=missed, most=7)
        for outage, shift in product(OUTAGES, range(0, 86_400, 35_919)):
            next_at = next(firings(rule, NOW + shift * SECOND))
            now = next_at + outage
            decided = due_firings(rule, ALWAYS, policy, next_at, now)
            later = firings(rule, next_at, now)
            due = [next_at, *(moment for moment in later if moment >= now - DAY)]
            assert [*decided.missed, *decided.fire] == due, (rule.text, missed, outage)
            assert decided.next_at == next(firings(rule, now))
