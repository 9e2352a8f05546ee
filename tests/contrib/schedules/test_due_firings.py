"""What is fired and what is missed after an outage, for each policy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from django_jobqueue.contrib.schedules.due_firings import MOST_WALKED, due_firings
from django_jobqueue.domain.schedule_rules import ScheduleRule, cron, every, firings
from django_jobqueue.domain.schedules import Missed, MissedPolicy, Period

NOW = datetime(2026, 3, 10, 12, 0, 30, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOURLY = cron("0 * * * *", tz="UTC")
ALWAYS = Period()


def noon(hours_ago: int = 0) -> datetime:
    return NOW.replace(second=0) - hours_ago * HOUR


DAILY = cron("0 3 * * *", tz="UTC")
ALL, SKIP = Missed.ALL, Missed.SKIP
LATER = NOW + 10 * MINUTE
OLD = MissedPolicy(missed=ALL, within=2 * HOUR + MINUTE)
# When it was due, in hours before noon, and which firings are missed and made up for.
Case = tuple[ScheduleRule, MissedPolicy, datetime, int, list[int], list[int]]
CASES: dict[str, Case] = {
    **{
        f"on time, {one}": (HOURLY, MissedPolicy(missed=one), NOW, 0, [], [0])
        for one in Missed
    },
    "once": (HOURLY, MissedPolicy(), NOW, 5, [5, 4, 3, 2, 1], [0]),
    "once is late": (DAILY, MissedPolicy(), NOW, 9, [], [9]),
    "skip": (HOURLY, MissedPolicy(missed=SKIP), LATER, 2, [2, 1, 0], []),
    "all": (HOURLY, MissedPolicy(missed=ALL, most=3), NOW, 5, [5, 4, 3], [2, 1, 0]),
    "all of two hours": (HOURLY, OLD, NOW, 50, [50], [2, 1, 0]),
    **{
        f"no host is that quick, {one}": (
            HOURLY,
            MissedPolicy(missed=one, within=SECOND),
            NOW,
            0,
            [],
            [0],
        )
        for one in Missed
    },
    "too old": (DAILY, MissedPolicy(within=HOUR), NOW, 9, [9], []),
}


def test_what_is_missed_and_what_is_fired_of_each_policy() -> None:
    for name, (rule, policy, now, due, missed, fire) in CASES.items():
        decided = due_firings(rule, ALWAYS, policy, noon(due), now)
        assert decided.missed == [noon(n) for n in missed], name
        assert decided.fire == [noon(n) for n in fire], name
        assert decided.next_at == (noon(-1) if rule is HOURLY else noon(9) + DAY), name


def test_a_period_ends_and_of_very_many_the_newest_are_made_up_for() -> None:
    period = Period(ends_at=noon(1) + MINUTE)
    decided = due_firings(HOURLY, period, MissedPolicy(missed=ALL), noon(3), NOW)
    assert decided.fire == [noon(3), noon(2), noon(1)]
    assert decided.next_at is None
    period = Period(starts_at=noon(-5))
    assert period.next_after(HOURLY, NOW) == noon(-5)
    assert period.next_after(HOURLY, noon(-5)) == noon(-6)
    each, policy = every(seconds=1), MissedPolicy(missed=ALL, most=50)
    decided = due_firings(each, ALWAYS, policy, NOW - DAY, NOW)
    assert decided.fire == [NOW - n * SECOND for n in range(49, -1, -1)]
    assert MOST_WALKED > len(decided.missed) > 1_000


RULES = (HOURLY, every(minutes=7), cron("30 2 * * *", tz="Europe/Berlin"))
OFTEN = (every(seconds=1), every(seconds=25))
OUTAGES = (timedelta(0), 3 * SECOND, 59 * SECOND, 61 * SECOND, HOUR, 25 * HOUR, 9 * DAY)


@pytest.mark.dear
def test_no_moment_is_missed_that_is_less_than_a_minute_late() -> None:
    for rule, missed, outage in product((*RULES, *OFTEN), Missed, OUTAGES):
        next_at = next(firings(rule, NOW))
        now = next_at + outage
        decided = due_firings(rule, ALWAYS, MissedPolicy(missed=missed), next_at, now)
        assert all(now - moment > MINUTE for moment in decided.missed)
        in_time = {moment for moment in decided.fire if now - moment <= MINUTE}
        assert in_time == {
            moment
            for moment in (next_at, *firings(rule, max(next_at, now - HOUR), now))
            if now - moment <= MINUTE
        }
        made_up_for = {*decided.fire} - in_time
        if missed is not Missed.ALL:
            most = 1 if missed is Missed.ONCE and not in_time else 0
            assert len(made_up_for) <= most


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
