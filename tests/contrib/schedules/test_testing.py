"""Schedules in the tests of a project: ``fire_schedules()``, ``firings()``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_jobqueue import cron, current_job, every, job, testing
from django_jobqueue.contrib.schedules.testing import fire_schedules, firings
from django_jobqueue.exceptions import UnknownSchedule
from tests.sample import jobs
from tests.testing import tasks

BEFORE = datetime(2026, 3, 28, 12, tzinfo=UTC)


def test_firings_are_listed_without_a_database() -> None:
    nightly = cron("30 2 * * *", tz="Europe/Berlin")
    jobs.add.at(nightly, name="nightly", ends=datetime(2026, 3, 31, tzinfo=UTC))(1)
    assert firings("nightly", BEFORE, BEFORE + timedelta(days=30)) == [
        datetime(2026, 3, 29, 1, 0, tzinfo=UTC),  # in the gap: 3:00 in Berlin
        datetime(2026, 3, 30, 0, 30, tzinfo=UTC),
    ]


def test_a_handler_stands_for_all_its_schedules() -> None:
    jobs.add.at(every(hours=6))(1)
    assert len(firings(jobs.add, BEFORE, BEFORE + timedelta(days=1))) == 4
    jobs.add.at(every(hours=12), name="noon")(1)
    both = firings(jobs.add, BEFORE, BEFORE + timedelta(days=1))
    assert len(both) == 6
    assert both == sorted(both)
    with pytest.raises(UnknownSchedule):
        firings(jobs.keep, BEFORE, BEFORE)
    with pytest.raises(UnknownSchedule, match=r"Did you mean 'tests\.sample\.add'"):
        firings("tests.sample.ad", BEFORE, BEFORE)


@pytest.mark.django_db
def test_time_passes_and_schedules_fire_in_a_test() -> None:
    seen: list[tuple[str | None, datetime | None]] = []

    @job(name="schedules.note")
    def note() -> None:
        seen.append((current_job().schedule, current_job().fires_at))

    note.at(cron("30 2 * * *", tz="Europe/Berlin"), name="nightly")()
    with testing.clock(BEFORE) as time:
        assert fire_schedules("nightly") == []
        time.move(days=1)
        (made,) = fire_schedules("nightly")
        assert fire_schedules("nightly") == []
        note.enqueue()  # which no schedule made
        testing.drain()
    assert made.job_type == "schedules.note"
    fired = ("nightly", datetime(2026, 3, 29, 1, 0, tzinfo=UTC))
    assert sorted(seen, key=str) == [fired, (None, None)]


@pytest.mark.django_db
def test_a_task_of_django_fires_too() -> None:
    greet = tasks.greet.using(priority=5)
    made = greet.at(every(hours=1), name="greetings")("Eve", loud=True)
    assert made.job_type == tasks.greet.module_path
    with testing.clock(BEFORE) as time:
        fire_schedules("greetings")
        time.move(hours=1)
        (fired,) = fire_schedules("greetings")
        (ran,) = testing.drain()
    assert fired.priority == 5
    assert ran.job.result == "Hello, EVE!"
    with pytest.raises(TypeError, match="is missing 'name'"):
        tasks.greet.at(every(hours=1))()
