"""Rules of schedules, and cron rules against an oracle that looks at every minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.conf import CENTURY
from django_jobqueue.domain.policy import READABLE
from django_jobqueue.domain.schedule_rules import (
    EPOCH,
    Cron,
    cron,
    every,
    firings,
    next_firings,
    parse,
)
from django_jobqueue.domain.schedules import Period
from tests.support.selection import some_slow
from tests.support.tables import differing, refusal

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
EXPRESSIONS = (
    *("*/15 * * * *", "*/30 * * * *", "0 * * * *", "15,45 * * * *", "0 */2 * * *"),
    *("30 */3 * * *", "*/20 2 * * *", "0 0 * * *", "1 0 * * *", "30 0 * * *"),
    *("0 1 * * *", "30 1 * * *", "0 2 * * *", "30 2 * * *", "15,45 1-3 * * *"),
    *("0 3 * * *", "30 2 * * 0", "0 0 30 12 *", "0 12 L * *"),
)
CHANGES = {  # the UTC day of a change of clocks
    "Europe/Berlin": ("2025-03-30", "2025-10-26"),
    "America/New_York": ("2025-03-09", "2025-11-02"),
    "Australia/Lord_Howe": ("2025-04-05", "2025-10-04"),  # by half an hour
    "Pacific/Apia": ("2011-12-30",),  # a day that there was not
    "America/Havana": ("2025-03-09", "2025-11-02"),  # at midnight
    "America/Santiago": ("2025-04-06", "2025-09-07"),
    "Africa/Casablanca": ("2025-02-23", "2025-04-06"),  # for Ramadan
    "America/St_Johns": ("2006-04-02", "2006-10-29"),  # at a minute past midnight
    "Asia/Beirut": ("2025-03-29", "2025-10-25"),
    "Antarctica/Troll": ("2025-03-30", "2025-10-26"),  # by two hours
    "Asia/Pyongyang": ("2015-08-14", "2018-05-04"),  # by half an hour, for good
    "America/Caracas": ("2007-12-09", "2016-05-01"),
    "Asia/Kolkata": ("2025-03-30",),  # none
    "UTC": ("2025-03-30",),
}


def numbers(field: str, least: int, most: int) -> set[int]:
    """Those of a field: ``*``, ``*/5``, ``1,2`` or ``1-3``."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        low, _, high = (f"{least}-{most}" if span == "*" else span).partition("-")
        found.update(range(int(low), int(high or low) + 1, int(step or 1)))
    return found


def matcher(expression: str) -> Callable[[datetime], bool]:
    """Whether a minute of a wall clock is the expression's."""
    minute, hour, day, month, weekday = expression.split()
    minutes, hours = numbers(minute, 0, 59), numbers(hour, 0, 23)
    days = set() if day == "L" else numbers(day, 1, 31)
    months, weekdays = numbers(month, 1, 12), numbers(weekday, 0, 6)
    return lambda wall: (
        wall.minute in minutes
        and wall.hour in hours
        and (wall.day in days or (day == "L" and (wall + DAY).day == 1))
        and wall.month in months
        and wall.isoweekday() % 7 in weekdays
    )


@lru_cache(maxsize=1)
def walk(
    zone: ZoneInfo, since: datetime, until: datetime
) -> list[tuple[datetime, datetime, list[datetime]]]:
    """Each minute of UTC, what a wall clock shows then, and which minutes the clock
    passes for the first time, jumped over or not."""
    found = []
    reached = since.astimezone(zone).replace(tzinfo=None)  # the wall clock's latest
    moment = since
    while moment < until:
        moment += MINUTE
        wall = moment.astimezone(zone).replace(tzinfo=None, fold=0)
        passed = []
        while reached < wall:
            reached += MINUTE
            passed.append(reached)
        found.append((moment, wall, passed))
    return found


def oracle(
    expression: str, zone: ZoneInfo, since: datetime, until: datetime
) -> Iterator[datetime]:
    """Look at each minute of UTC, as Debian's cron does: a fixed time fires for each
    time that the wall clock passes for the first time."""
    minute, hour, *_ = expression.split()
    fixed = not (minute.startswith("*") or hour.startswith("*"))
    matches = matcher(expression)
    for moment, wall, passed in walk(zone, since, until):
        if any(map(matches, passed)) if fixed else matches(wall):
            yield moment


def around(day: str) -> tuple[datetime, datetime]:
    """Half a day before and after a day in UTC."""
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return begin - DAY / 2, begin + 1.5 * DAY


@pytest.mark.dear
@pytest.mark.parametrize("step", some_slow([1, 3], [3]))
def test_a_cron_rule_fires_as_each_minute_says(step: int) -> None:
    """Each rule at every third change of a clock, or at all."""
    wrong = []
    changes = [(zone, day) for zone, days in CHANGES.items() for day in days]
    for number, (zone, day) in enumerate(changes):
        for expression in EXPRESSIONS[number % step :: step]:
            since, until = around(day)
            expected = list(oracle(expression, ZoneInfo(zone), since, until))
            if list(firings(cron(expression, tz=zone), since, until)) != expected:
                wrong.append((expression, zone, day))
    assert wrong == []


@given(
    change=st.sampled_from([(zone, day) for zone in CHANGES for day in CHANGES[zone]]),
    expression=st.sampled_from(EXPRESSIONS),
    thousandths=st.integers(0, 999),
)
def test_the_next_firing_is_the_same_from_wherever_one_asks(
    change: tuple[str, str], expression: str, thousandths: int
) -> None:
    zone, day = change
    rule = cron(expression, tz=zone)
    first, second = next_firings(rule, around(day)[0], 2)
    assert rule.next_after(first + thousandths / 1000 * (second - first)) == second


def test_what_fired_in_the_first_passage_of_an_hour_is_over_in_the_second() -> None:
    rule = cron("30 2 * * *", tz="Europe/Berlin")
    in_the_second = datetime(2025, 10, 26, 1, 15, tzinfo=UTC)
    assert rule.next_after(in_the_second) == datetime(2025, 10, 27, 1, 30, tzinfo=UTC)


def test_a_rule_may_count_seconds_and_seldom_fire() -> None:
    rule = cron("*/20 30 2 * * *", tz="Europe/Berlin")
    found = next_firings(rule, datetime(2025, 6, 1, tzinfo=UTC), 4)
    assert [at.second for at in found] == [0, 20, 40, 0]
    assert {(at.hour, at.minute) for at in found} == {(0, 30)}
    leap = cron("0 0 29 2 *", tz="UTC").next_after(datetime(2096, 3, 1, tzinfo=UTC))
    assert leap == datetime(2104, 2, 29, tzinfo=UTC)


def test_an_expression_has_one_normal_form() -> None:
    normal = [
        *(("@hourly", "0 * * * *"), ("@daily", "0 0 * * *"), (" @Daily ", "0 0 * * *")),
        *(("@midnight", "0 0 * * *"), ("@weekly", "0 0 * * 0")),
        *(("@monthly", "0 0 1 * *"), ("@yearly", "0 0 1 1 *")),
        ("0  9 * *  mon-fri", "0 9 * * MON-FRI"),
    ]
    rows = [(given, Cron(means, "UTC")) for given, means in normal]
    assert differing(rows, lambda given: cron(given, tz="UTC")) == []
    zone = ZoneInfo("Asia/Tokyo")
    assert cron("30 2 * * *", tz=zone) == cron("30 2 * * *", tz="Asia/Tokyo")


def test_a_bad_rule_says_what_is_wrong() -> None:
    wrong = [
        ("* * *", "UTC", "has 3 fields, not the five of minute, hour"),
        ("61 * * * *", "UTC", "cannot read the minute; it takes a number from 0 to 59"),
        ("0 25 * * *", "UTC", "cannot read the hour"),
        ("0 0 * * FOO", "UTC", "cannot read the day-of-week"),
        ("@often", "UTC", "the names are @hourly, @daily,"),
        ("@nightly", "UTC", "@annually. Did you mean '@midnight'?"),
        ("", "UTC", "has 0 fields"),
        ("0 0 31 2 *", "UTC", "cannot read the day-of-month"),
        ("0 0 * * *", "Europe/Berlim", "Did you mean 'Europe/Berlin'?"),
        ("0 0 * * *", "../etc/passwd", "there is no time zone"),
        ("0 0 * * *", "", "there is no time zone"),
    ]

    def why(expression: str, zone: str) -> str:
        return refusal(ValueError, lambda: cron(expression, tz=zone))

    assert differing(wrong, why, str.__contains__) == []
    for seconds in (0, -1, 0.5, 1.5):
        with pytest.raises(ValueError, match="whole seconds"):
            every(seconds=seconds)
    with pytest.raises(ValueError, match="with its time zone"):
        every(seconds=5, since=datetime(2025, 1, 1))
    with pytest.raises(ValueError, match="at most 36,500 days"):
        every(days=5_000_000)
    for moment in (datetime.min, datetime.max):
        with pytest.raises(ValueError, match="from 0001-01-03 to 9999-12-30"):
            every(seconds=5, since=moment.replace(tzinfo=UTC))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_no_rule_fires_at_a_moment_that_no_job_may_have(zone: str) -> None:
    """Whatever a row has that plain SQL wrote: pages and commands ask each schedule."""
    first, last = READABLE
    rules = (
        *(cron(text, tz=zone) for text in ("0 0 1 1 *", "0 0 * * *", "* * * * * *")),
        *(every(seconds=1), every(days=36_500), every(days=7, since=last - MINUTE)),
    )
    ends = [moment.replace(tzinfo=UTC) for moment in (datetime.min, datetime.max)]
    asked = (*ends, first, last - MINUTE, last)
    for rule, starts, moment in product(rules, (None, *asked), asked):
        found = Period(starts_at=starts).next_after(rule, moment)
        assert found is None or first <= found <= last
        begins = max(moment, starts or moment)
        assert found is None or found > begins or found == starts


def test_intervals_are_counted_from_1970_so_that_a_restart_does_not_move_them() -> None:
    rule, noon = every(minutes=5), datetime(2025, 6, 1, 12, tzinfo=UTC)
    asked = noon + timedelta(minutes=3, seconds=9)
    assert rule.next_after(asked) == noon + 5 * MINUTE
    assert rule.next_after(asked + MINUTE / 2) == noon + 5 * MINUTE
    assert rule.next_after(noon + 5 * MINUTE) == noon + 10 * MINUTE
    since = noon + timedelta(seconds=7)  # an interval may begin at a moment
    rule = every(hours=1, since=since)
    first = next_firings(rule, datetime(2025, 1, 1, tzinfo=UTC), 2)
    assert first == [since, since + 60 * MINUTE]
    assert list(firings(every(days=1), EPOCH, EPOCH + 2 * DAY)) == [
        EPOCH + DAY,
        EPOCH + 2 * DAY,
    ]
    for year, rule in product(
        (2026, 2243, 2999), (cron("0 0 * * *", tz="UTC"), every(days=1))
    ):
        starts = datetime(year, 1, 1, tzinfo=UTC)
        assert Period(starts_at=starts).next_after(rule, EPOCH) == starts


def test_a_rule_is_read_back_from_its_text_and_other_texts_are_refused() -> None:
    for rule in (
        cron("30 2 * * *", tz="Europe/Berlin"),
        every(minutes=5),
        every(days=1, since=datetime(2025, 6, 1, 6, tzinfo=UTC)),
    ):
        assert parse(rule.text, "Europe/Berlin") == rule
    texts = ("", "cron", "at noon", "every", "every x", "every 5 since y", "every 1e99")
    for text in (*texts, "every 5 s since 2026"):
        with pytest.raises(ValueError, match="rule|field|read"):
            parse(text, "UTC")
    # Operators write distances in words.
    words = [
        *(("every minute", 60), ("every 5 minutes", 300), ("every 2h", 7_200)),
        *(("Every 1.5 hours", 5_400), ("every day", 86_400), ("every 90", 90)),
    ]
    rows = [(text, every(seconds=seconds)) for text, seconds in words]
    assert differing(rows, lambda text: parse(text, "UTC")) == []


@pytest.mark.dear
@given(
    seconds=st.integers(1, CENTURY),
    since=st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2500, 1, 1)),
)
def test_a_distance_of_any_length_is_read_as_it_was_written(
    seconds: int, since: datetime | None
) -> None:
    began = None if since is None else since.replace(tzinfo=UTC)
    rule = every(seconds=seconds, since=began)
    assert parse(rule.text, "UTC") == rule
