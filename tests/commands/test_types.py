"""``jobqueue types``: job types, their policies and overrides."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.management.jobqueue.types import Types
from django_jobqueue.models import JobType
from tests.commands.conftest import jobqueue, not_refused
from tests.sample import jobs

pytestmark = pytest.mark.django_db
ADD, ONCE, LIMITED = (
    f"tests.sample.{name}" for name in ("add", "write_once", "write_limited")
)


def line_of(name: str) -> list[str]:
    (line,) = (
        line.split()
        for line in jobqueue("types").out.splitlines()
        if line.startswith(f"{name} ")
    )
    return line


def facts(name: str) -> dict[str, str]:
    lines = jobqueue(f"types show {name}").out.splitlines()
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in lines)  # type: ignore[misc]


def shown(name: str) -> dict[str, Any]:
    found: dict[str, Any] = jobqueue(f"types show {name} --format json").json
    return found


def test_job_types_are_listed_with_what_holds() -> None:
    jobs.add.enqueue_many([{"a": 1}] * 3)
    assert line_of(ADD)[1:] == ["default", "5", "-", "3", "0", "-"]
    assert line_of(ONCE)[2] == "1"
    assert line_of(LIMITED)[3] == "2"


def test_an_override_is_marked() -> None:
    operations.override(ADD, max_attempts=-1, concurrency=7, timeout=timedelta(0))
    operations.pause(ADD, reason="why", by="anna")
    JobType.objects.create(name="elsewhere.report")
    assert line_of(ADD)[2:4] == ["-*", "7*"]
    assert line_of(ADD)[-1] == "paused"
    assert line_of("elsewhere.report")[-3:] == ["no", "handler", "here"]


def test_one_job_type_is_shown_with_where_each_value_comes_from() -> None:
    operations.override(ADD, max_attempts=9, keep_succeeded=timedelta(days=30))
    operations.pause(ADD, reason="the bank is closed", by="anna")
    found = facts(ADD)
    assert found["Job type"] == ADD
    assert found["Handler"] == "tests.sample.jobs:add"
    assert found["Max attempts"] == "9 (overridden; otherwise 5)"
    assert found["Timeout"] == "1 h"
    assert found["Concurrency"] == "unlimited"
    assert found["Keep succeeded"] == "30 d (overridden; otherwise as the settings say)"
    assert found["Keep unsuccessful"] == "as the settings say"
    assert found["Paused"] == "until it is resumed, anna, the bank is closed"


def test_a_handler_that_is_not_known_here_is_said() -> None:
    JobType.objects.create(name="elsewhere.report", handler="elsewhere.jobs:report")
    assert facts("elsewhere.report")["Handler"] == (
        "elsewhere.jobs:report (not known here)"
    )


def test_programs_are_told_the_documented_keys() -> None:
    words = set(re.findall(r"\w+", Types.json))
    one = shown(ADD)
    assert set(one) <= words
    assert set(one["policy"]) <= words
    assert (one["waiting"], one["running"]) == (0, 0)
    listed = jobqueue("types list --format json").json
    assert one in listed
    assert len(listed) == JobType.objects.count()


@pytest.mark.dear
def test_programs_are_told_code_override_and_what_holds() -> None:
    cases: list[tuple[str, Any, tuple[Any, Any, Any]]] = [
        ("max_attempts", None, (5, None, 5)),
        ("max_attempts", 9, (5, 9, 9)),
        ("max_attempts", -1, (5, -1, None)),
        ("concurrency", 0, (None, 0, 0)),
        ("concurrency", -1, (None, -1, None)),
        ("timeout", timedelta(seconds=5), (3600.0, 5.0, 5.0)),
        ("timeout", timedelta(0), (3600.0, 0.0, None)),
        ("priority", -1, (0, -1, -1)),
        ("keep_succeeded", timedelta(1), (None, 86400.0, 86400.0)),
    ]
    for option, value, policy in cases:
        operations.override(ADD, **{option: value})
        assert tuple(shown(ADD)["policy"][option].values()) == policy


def test_what_makes_no_sense_is_refused() -> None:
    reasons = {
        f"shwo {ADD}": "types has no verb 'shwo'. Did you mean 'show'? Its verbs are",
        f"{ADD}": f"types has no verb '{ADD}'. Its verbs are list, show.",
        f"list {ADD}": f"list takes no name. Did you mean 'show {ADD}'?",
        "show": "Say which job type to show.",
        f"show {ADD} {ONCE}": "Say which job type to show.",
        "show tests.sample.ad": "There is no job type 'tests.sample.ad'. Did you",
    }
    assert not_refused("types", reasons) == {}
