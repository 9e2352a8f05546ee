"""Schedules that operators make, by code."""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from django_jobqueue.contrib.schedules import operations as schedule_operations
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.exceptions import InvalidArguments
from tests.sample import jobs, tasks
from tests.support.tables import differing, refusal

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_schedule_is_made_of_a_handler_a_task_or_a_name() -> None:
    add, task = jobs.add.name, tasks.add.module_path
    jobs.add.enqueue(1)  # its row is there from now on
    tasks.add.enqueue(1)
    given: dict[str, tuple[Any, str]] = {
        "handler": (jobs.add, add),
        "name": (add, add),
        "task": (tasks.add, task),
    }
    for name, (of, _) in given.items():
        schedule_operations.create(name, of, rule="every 5 minutes", data={"a": 1})
    made = dict(Schedule.objects.filter(name__in=given).values_list("name", "job_type"))
    assert made == {name: expected for name, (_, expected) in given.items()}


def test_what_is_wrong_is_named() -> None:
    wrong = [
        ({"time_zone": "Europe/Berlim"}, "time_zone: there is no time zone"),
        ({"rule": "every 5 minuets"}, "rule: cannot read the rule"),
        ({"rule": "every 1 second since 2026"}, "since takes the seconds from 1970"),
        ({"rule": "every 5000000 days"}, "every() takes at most 36,500 days"),
        ({"rule": "every 1 s since 253402300799"}, "since= takes a time from"),
        ({"starts": datetime.min.replace(tzinfo=UTC)}, "starts must be from 0001-01-"),
        ({"ends": datetime.max.replace(tzinfo=UTC)}, "ends must be from 0001-01-03"),
        ({"data": [1]}, "data must be an object, not list"),
        ({"data": "x"}, "data must be an object, not str"),
    ]

    def ask(given: dict[str, Any]) -> str:
        values = {"rule": "@daily", "data": {"a": 1}, **given}
        check = partial(schedule_operations.check, "often", jobs.add, **values)
        return refusal(InvalidArguments, check)

    assert differing(wrong, ask, operator.contains) == []


def test_a_moment_in_an_offset_that_postgresql_does_not_know_is_stored() -> None:
    jobs.add.enqueue(1)
    starts = datetime(2030, 1, 1, tzinfo=timezone(timedelta(hours=23)))
    values: dict[str, Any] = {"rule": "@daily", "data": {"a": 1}, "starts": starts}
    schedule_operations.create("far", jobs.add, **values)
    assert Schedule.objects.get(name="far").starts_at == starts
