"""System checks of schedules."""

from __future__ import annotations

from datetime import timedelta

from django.core.checks import run_checks

from django_jobqueue import every
from tests.sample import jobs


def found() -> list[tuple[str | None, str]]:
    messages = run_checks(tags=["jobqueue"])
    return [(message.id, message.msg) for message in messages]


def test_e025_a_schedule_that_is_not_called() -> None:
    scheduled = jobs.add.at(every(minutes=5), name="often")
    said = (
        "The schedule 'often' was not called with its job's arguments, so it does "
        "not exist."
    )
    assert found() == [("jobqueue.E025", said)]
    scheduled(1)
    assert found() == []


def test_w014_jobs_that_expire_while_they_are_spread() -> None:
    jobs.add.using(expires_in=timedelta(minutes=2)).at(every(hours=1), jitter=60)(1)
    jobs.add.at(every(hours=1), name="without", jitter=60)(1)
    assert found() == []
    jobs.add.using(expires_in=30).at(every(hours=1), name="often", jitter=60)(1)
    said = "Jobs of the schedule 'often' are spread over more time (0:01:00) than "
    assert found() == [("jobqueue.W014", f"{said}they may wait (0:00:30).")]
