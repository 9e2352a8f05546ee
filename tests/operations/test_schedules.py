"""Schedules that operators make, by code."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.models import Schedule
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
        operations.schedules.create(name, of, rule="every 5 minutes", data={"a": 1})
    made = dict(Schedule.objects.filter(name__in=given).values_list("name", "job_type"))
    assert made == {name: expected for name, (_, expected) in given.items()}


def test_what_is_wrong_is_named() -> None:
    wrong = [
        ({"time_zone": "Europe/Berlim"}, "time_zone: there is no time zone"),
        ({"rule": "every 5 minuets"}, "rule: cannot read the rule"),
        ({"rule": "every 1 second since 2026"}, "since takes the seconds from 1970"),
    ]

    def ask(given: dict[str, Any]) -> str:
        values = {"rule": "@daily", "data": {"a": 1}, **given}
        check = partial(operations.schedules.check, "often", jobs.add, **values)
        return refusal(InvalidArguments, check)

    assert differing(wrong, ask, operator.contains) == []
