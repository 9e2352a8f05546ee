"""Schedules that operators make, by code."""

from __future__ import annotations

from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.models import Schedule
from tests.sample import jobs, tasks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("given", [jobs.add, jobs.add.name, tasks.add])
def test_a_schedule_is_made_of_a_handler_a_task_or_a_name(given: Any) -> None:
    jobs.add.enqueue(1)  # its row is there from now on
    tasks.add.enqueue(1)
    operations.schedules.create("often", given, rule="every 5 minutes", data={"a": 1})
    expected = tasks.add.module_path if given is tasks.add else jobs.add.name
    assert Schedule.objects.get(name="often").job_type_id == expected


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"time_zone": "Europe/Berlim"}, "time_zone: there is no time zone"),
        ({"rule": "every 5 minuets"}, "rule: cannot read the rule"),
        ({"rule": "every 1 second since 2026"}, "since takes the seconds from 1970"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], reason: str) -> None:
    values: dict[str, Any] = {"rule": "@daily", "data": {"a": 1}, **given}
    with pytest.raises(InvalidArguments) as refused:
        operations.schedules.check("often", jobs.add, **values)
    assert reason in str(refused.value)
