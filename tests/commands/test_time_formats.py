"""Durations and times as operators write and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.management.jobqueue.inputs import duration, moment
from django_jobqueue.models import JobType
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.text import timezones
from django_jobqueue.verbs.columns import local

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


DURATIONS = {
    "30s": 30,
    "10m": 600,
    "2h": 7_200,
    "7d": 604_800,
    "2w": 1_209_600,
    "1h30m": 5_400,
    "0.5h": 1_800,
    "90": 90,
    "1.5": 1.5,
    "0": 0,
    " 10M ": 600,
}
NO_DURATIONS = ("", "soon", "3 fortnights", "-5m", "5m later", "1e3", "m", "nan")


def test_a_duration_is_a_number_and_a_unit_or_plain_seconds() -> None:
    found = {text: duration("--for", text) for text in DURATIONS}
    assert found == {text: timedelta(seconds=each) for text, each in DURATIONS.items()}


def test_what_is_no_duration_is_refused_with_what_is_accepted() -> None:
    for text in NO_DURATIONS:
        with pytest.raises(CommandError) as refused:
            duration("--for", text)
        assert str(refused.value) == (
            f"--for: {text!r} is not a duration. Write 30s, 10m, 2h, 7d, 1h30m, or a "
            "plain number of seconds."
        )
    for text in ("101000d", "9" * 400, "99999999999999999999w"):
        with pytest.raises(CommandError, match="is more than a hundred years"):
            duration("--older-than", text)


def test_a_duration_counts_from_now_or_back_from_it() -> None:
    assert moment("--run-after", "2h", now=NOW) == NOW + timedelta(hours=2)
    assert moment("--since", "2h", now=NOW, ago=True) == NOW - timedelta(hours=2)


def test_a_time_without_an_offset_is_in_the_current_time_zone() -> None:
    with timezone.override("Europe/Vienna"):
        found = moment("--since", "2026-11-20T14:30", now=NOW)
        assert found == datetime(2026, 11, 20, 13, 30, tzinfo=UTC)
        assert moment("--since", "2026-11-20", now=NOW) == datetime(
            2026, 11, 19, 23, tzinfo=UTC
        )


def test_a_time_with_an_offset_keeps_it() -> None:
    assert moment("--since", "2026-11-20T14:30+05:00", now=NOW) == datetime(
        2026, 11, 20, 9, 30, tzinfo=UTC
    )
    assert moment("--since", "2026-11-20T14:30Z", now=NOW).hour == 14


def test_what_is_no_time_is_refused_with_what_is_accepted() -> None:
    for text in ("yesterday", "2026-13-01", "14:30", "2026-02-30"):
        with timezone.override("Europe/Vienna"), pytest.raises(CommandError) as refused:
            moment("--since", text, now=NOW)
        assert str(refused.value) == (
            f"--since: {text!r} is not a time. Write a duration (30s, 10m, 2h, 7d, "
            "1h30m, "
            "or a plain number of seconds) or an ISO time such as 2026-11-20T14:30; "
            "without an offset it is in the time zone Europe/Vienna."
        )


def test_a_time_is_shown_in_the_current_time_zone() -> None:
    with timezone.override("Europe/Vienna"):
        assert local(NOW) == "2026-11-20 13:00:00"
        assert timezones.aware(datetime(2026, 11, 20, 13, 0)) == NOW


@pytest.mark.django_db
def test_now_is_what_the_database_says_and_aware_of_its_zone() -> None:
    assert JobType.objects.exists()
    assert abs(database_now() - timezone.now()) < timedelta(minutes=5)
    assert database_now().utcoffset() is not None


@pytest.mark.django_db
def test_without_any_job_type_now_is_this_machine_s() -> None:
    Schedule.objects.all().delete()
    JobType.objects.all().delete()
    assert database_now().utcoffset() is not None
