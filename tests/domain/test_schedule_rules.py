"""Rules of schedules, and cron rules against an oracle that looks at every minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from django_jobqueue.domain.due_firings import Period
from django_jobqueue.domain.schedule_rules import (
    EPOCH,
    Cron,
    Every,
    cron,
    every,
    firings,
    next_firings,
    parse,
)

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
EXPRESSIONS = (
    "* * * * *",
    "*/5 * * * *",
    "*/30 * * * *",
    "0 * * * *",
    "15,45 * * * *",
    "0 */2 * * *",
    "30 */3 * * *",
    "*/20 2 * * *",
    "0 0 * * *",
    "1 0 * * *",
    "30 0 * * *",
    "0 1 * * *",
    "30 1 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "15,45 1-3 * * *",
    "0 3 * * *",
    "30 2 * * 0",
    "0 0 30 12 *",
    "0 12 L * *",
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
CASES = [
    (expression, zone, day)
    for expression, zone in product(EXPRESSIONS, CHANGES)
    for day in CHANGES[zone]
]


def matches(expression: str, since: datetime, until: datetime) -> set[datetime]:
    """The minutes of a wall clock that are the expression's."""
    found = CronSim(expression, since - MINUTE)
    return set(takewhile(lambda wall: wall <= until, found))


def oracle(
    expression: str, zone: ZoneInfo, since: datetime, until: datetime
) -> Iterator[datetime]:
    """Look at each minute of UTC, as Debian's cron does: a fixed time fires for each
    time that the wall clock passes for the first time, jumped over or not."""
    minute, hour, *_ = expression.split()
    fixed = not (minute.startswith("*") or hour.startswith("*"))
    reached = since.astimezone(zone).replace(tzinfo=None)  # the wall clock's latest
    length = until - since + 2 * DAY
    minutes = matches(expression, reached - 2 * DAY, reached + length)
    moment = since
    while moment < until:
        moment += MINUTE
        wall = moment.astimezone(zone).replace(tzinfo=None, fold=0)
        if not fixed:
            if wall in minutes:
                yield moment
            continue
        fires = False
        while reached < wall:
            reached += MINUTE
            fires |= reached in minutes
        if fires:
            yield moment


@pytest.mark.parametrize(("expression", "zone", "day"), CASES)
def test_a_cron_rule_fires_as_each_minute_says(
    expression: str, zone: str, day: str
) -> None:
    middle = datetime.fromisoformat(day).replace(tzinfo=UTC)
    since, until = middle - timedelta(days=1.25), middle + timedelta(days=2.25)
    expected = list(oracle(expression, ZoneInfo(zone), since, until))
    assert list(firings(cron(expression, tz=zone), since, until)) == expected


@given(case=st.sampled_from(CASES), thousandths=st.integers(0, 999))
@settings(max_examples=300, deadline=None)
def test_the_next_firing_is_the_same_from_wherever_one_asks(
    case: tuple[str, str, str], thousandths: int
) -> None:
    expression, zone, day = case
    rule = cron(expression, tz=zone)
    since = datetime.fromisoformat(day).replace(tzinfo=UTC) - DAY
    first, second = next_firings(rule, since, 2)
    assert rule.next_after(first + thousandths / 1000 * (second - first)) == second


def test_a_rule_of_six_fields_counts_seconds() -> None:
    rule = cron("*/20 30 2 * * *", tz="Europe/Berlin")
    since = datetime(2025, 6, 1, tzinfo=UTC)
    assert [f"{at:%H:%M:%S}" for at in next_firings(rule, since, 4)] == [
        "00:30:00",
        "00:30:20",
        "00:30:40",
        "00:30:00",
    ]


def test_a_day_that_seldom_comes_is_found() -> None:
    rule = cron("0 0 29 2 *", tz="UTC")
    assert rule.next_after(datetime(2096, 3, 1, tzinfo=UTC)) == datetime(
        2104, 2, 29, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("nickname", "means"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        (" @Daily ", "0 0 * * *"),
        ("0  9 * *  mon-fri", "0 9 * * MON-FRI"),
    ],
)
def test_an_expression_has_one_normal_form(nickname: str, means: str) -> None:
    assert cron(nickname, tz="UTC") == Cron(means, "UTC")


@pytest.mark.parametrize(
    ("expression", "zone", "says"),
    [
        ("* * *", "UTC", "has 3 fields, not the five of minute, hour"),
        ("61 * * * *", "UTC", "cannot read the minute; it takes a number from 0 to 59"),
        ("0 25 * * *", "UTC", "cannot read the hour"),
        ("0 0 * * FOO", "UTC", "cannot read the day-of-week"),
        ("@often", "UTC", "the names are @hourly, @daily,"),
        ("@nightly", "UTC", "@annually. Did you mean '@midnight'?"),
        ("30", "UTC", "has 1 field, not the five"),
        ("", "UTC", "has 0 fields"),
        ("0 0 31 2 *", "UTC", "cannot read the day-of-month"),
        ("0 0 * * *", "Europe/Berlim", "Did you mean 'Europe/Berlin'?"),
        ("0 0 * * *", "../etc/passwd", "there is no time zone"),
        ("0 0 * * *", "", "there is no time zone"),
    ],
)
def test_a_bad_cron_rule_says_what_is_wrong(
    expression: str, zone: str, says: str
) -> None:
    with pytest.raises(ValueError, match=says.replace("?", r"\?")):
        cron(expression, tz=zone)


@pytest.mark.parametrize(
    ("seconds", "since"),
    [(0, None), (-1, None), (0.5, None), (1.5, None), (5, datetime(2025, 1, 1))],
)
def test_a_bad_interval_says_what_is_wrong(
    seconds: float, since: datetime | None
) -> None:
    with pytest.raises(ValueError, match="whole seconds|with its time zone"):
        every(seconds=seconds, since=since)


def test_intervals_are_counted_from_1970_so_that_a_restart_does_not_move_them() -> None:
    rule = every(minutes=5)
    asked = datetime(2025, 6, 1, 12, 3, 9, tzinfo=UTC)
    assert rule.next_after(asked) == datetime(2025, 6, 1, 12, 5, tzinfo=UTC)
    assert rule.next_after(asked + timedelta(seconds=30)) == rule.next_after(asked)
    assert rule.next_after(rule.next_after(asked)) == datetime(
        2025, 6, 1, 12, 10, tzinfo=UTC
    )


def test_an_interval_begins_at_the_moment_that_it_names() -> None:
    since = datetime(2025, 6, 1, 12, 0, 7, tzinfo=UTC)
    rule = every(hours=1, since=since)
    assert next_firings(rule, datetime(2025, 1, 1, tzinfo=UTC), 2) == [
        since,
        since + timedelta(hours=1),
    ]


@pytest.mark.parametrize(
    "rule",
    [
        cron("30 2 * * *", tz="Europe/Berlin"),
        every(minutes=5),
        every(days=1, since=datetime(2025, 6, 1, 6, tzinfo=UTC)),
    ],
)
def test_a_rule_is_read_back_from_its_text(rule: Cron | Every) -> None:
    assert parse(rule.text, "Europe/Berlin") == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cron",
        "at noon",
        "every",
        "every x",
        "every 5 since y",
        "every 1e99",
        "every 5 s since 2026",
    ],
)
def test_text_that_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="rule|field|read"):
        parse(text, "UTC")


def test_firings_end_where_they_are_told_to() -> None:
    found = list(firings(every(days=1), EPOCH, EPOCH + timedelta(days=2)))
    assert found == [EPOCH + timedelta(days=1), EPOCH + timedelta(days=2)]


@given(
    seconds=st.integers(1, 10**10),
    since=st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2500, 1, 1)),
)
def test_a_distance_of_any_length_is_read_as_it_was_written(
    seconds: int, since: datetime | None
) -> None:
    began = None if since is None else since.replace(tzinfo=UTC)
    rule = every(seconds=seconds, since=began)
    assert parse(rule.text, "UTC") == rule


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("every minute", 60),
        ("every 5 minutes", 300),
        ("every 2h", 7_200),
        ("Every 1.5 hours", 5_400),
        ("every day", 86_400),
        ("every 90", 90),
    ],
)
def test_operators_write_distances_in_words(text: str, seconds: int) -> None:
    assert parse(text, "UTC") == every(seconds=seconds)


@pytest.mark.parametrize("year", [2026, 2243, 2999])
def test_a_schedule_fires_at_the_moment_at_which_it_starts(year: int) -> None:
    starts = datetime(year, 1, 1, tzinfo=UTC)
    period = Period(starts_at=starts)
    for rule in (cron("0 0 * * *", tz="UTC"), every(days=1)):
        assert period.next_after(rule, EPOCH) == starts


def test_a_time_zone_may_be_an_object() -> None:
    zone = ZoneInfo("Asia/Tokyo")
    assert cron("30 2 * * *", tz=zone) == cron("30 2 * * *", tz="Asia/Tokyo")
