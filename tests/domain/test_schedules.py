"""Schedules are declared beside handlers, and mistakes are told where they are made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from django_jobqueue import cron, every, job
from django_jobqueue.domain.schedules import Missed, Overlap, schedules
from django_jobqueue.exceptions import InvalidArguments
from tests.sample import jobs
from tests.support.tables import differing, refusal


def test_a_schedule_has_the_arguments_and_options_that_it_is_given() -> None:
    starts = datetime(2026, 1, 1, tzinfo=UTC)
    made = jobs.add.using(priority=3, expires_in=90).at(
        cron("30 2 * * *", tz="Europe/Berlin"),
        name="nightly",
        missed="all",
        missed_within=timedelta(hours=2),
        missed_most=5,
        overlap="skip",
        jitter=60,
        starts=starts,
    )(1, b=2)
    assert schedules.get("nightly") is made
    assert (made.job_type, made.data) == (jobs.add.name, {"a": 1, "b": 2})
    assert (made.rule.text, made.time_zone) == ("cron 30 2 * * *", "Europe/Berlin")
    assert made.options == {"priority": 3, "expires_in": 90.0}
    assert made.missed.missed is Missed.ALL
    assert (made.missed.within, made.missed.most) == (timedelta(hours=2), 5)
    assert (made.overlap, made.jitter) == (Overlap.SKIP, timedelta(seconds=60))
    assert (made.starts_at, made.ends_at) == (starts, None)


def test_the_time_zone_of_the_settings_holds_where_none_is_given(settings: Any) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    assert jobs.add.at(cron("@daily"))(1).time_zone == "Asia/Tokyo"
    assert cron("@daily").time_zone == "Asia/Tokyo"


def test_the_decorator_takes_a_rule_unless_the_handler_needs_arguments() -> None:
    def sync_stock() -> None: ...
    def sync_region(region: str) -> None: ...

    job(name="schedules.sync", schedule=every(minutes=5))(sync_stock)
    made = schedules.get("schedules.sync")
    assert made is not None
    assert (made.rule.text, made.data) == ("every 300", {})
    with pytest.raises(ImproperlyConfigured, match=r"sync_region.at\(…\)\(…\)"):
        job(name="schedules.refused", schedule=every(minutes=5))(sync_region)


HOURLY = every(hours=1)
FIRST, SECOND = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
MISTAKES: list[tuple[Any, dict[str, Any], str]] = [
    ("30 2 * * *", {}, "takes a rule, such as cron"),
    (HOURLY, {"nmae": "x"}, "no option 'nmae'. Did you mean 'name'?"),
    (HOURLY, {"tz": "UTC"}, "The rule has it: cron("),
    (HOURLY, {"queue": "mail"}, "before it: .using(queue=…).at(…)"),
    (HOURLY, {"missed": "some"}, "missed must be 'once', 'skip' or 'all'"),
    (HOURLY, {"missed_most": 1_001}, "missed_most must be at most 1,000"),
    (HOURLY, {"missed_within": -1}, "missed_within must be more than"),
    (HOURLY, {"overlap": "queue"}, "overlap must be 'allow' or 'skip'"),
    (HOURLY, {"jitter": "1m"}, "jitter must be a timedelta or a number"),
    (HOURLY, {"name": "a b"}, "name must have no space"),
    (HOURLY, {"starts": datetime(2026, 1, 1)}, "with its time zone"),
    (HOURLY, {"starts": SECOND, "ends": FIRST}, "ends must not be before starts"),
]


def test_mistakes_and_options_of_a_single_job_are_told() -> None:
    def why(rule: Any, options: dict[str, Any]) -> str:
        return refusal(ImproperlyConfigured, lambda: jobs.add.at(rule, **options))

    assert differing(MISTAKES, why, str.__contains__) == []
    moment = timezone.now()
    id = "01890000-0000-7000-8000-000000000000"
    single: dict[str, Any] = {"run_after": moment, "expires_at": moment, "id": id}
    for name, value in {**single, "using": "default"}.items():
        with pytest.raises(ImproperlyConfigured, match=f"cannot have {name}: "):
            jobs.add.using(**{name: value}).at(HOURLY)


def test_arguments_are_checked_and_the_same_twice_is_one() -> None:
    before, hourly = schedules.names, jobs.add.at(every(hours=1))
    with pytest.raises(InvalidArguments):
        hourly()  # type: ignore[call-arg]
    with pytest.raises(InvalidArguments):
        hourly(a=object())  # type: ignore[arg-type]
    assert schedules.names == before
    hourly(1)
    jobs.add.at(every(hours=1))(1)
    with pytest.raises(ImproperlyConfigured, match="another name"):
        jobs.add.at(every(hours=2))(1)
