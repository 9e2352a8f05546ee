"""Overrides: what operators say instead of the code, each by itself."""

from __future__ import annotations

import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from django_jobqueue import InvalidArguments, UnknownJobType, operations
from django_jobqueue.domain.job_options import OVERRIDES
from django_jobqueue.models import JobType
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.job_types import Change
from tests.store.meanwhile import (
    Hearing,
    open_transaction,
    submit,
    together,
    until_waiting,
)
from tests.support.tables import differing, refusal

ADD = "tests.sample.add"
HOUR = timedelta(hours=1)
EVERYTHING = {
    "priority": 7,
    "max_attempts": -1,
    "timeout": timedelta(0),
    "concurrency": 0,
    "rate": "7/2s burst 3",
    "summary": "order {a}",
    "keep_succeeded": HOUR,
    "keep_unsuccessful": timedelta(days=9),
}

Told = list[dict[str, Any]]


def held(name: str = ADD) -> dict[str, Any]:
    """The overrides of a job type, as its row has them."""
    row = JobType.objects.filter(name=name).values().get()
    return {option: row[f"{option}_override"] for option in OVERRIDES}


def test_an_override_is_written_and_told(transactional_db: None, told: Told) -> None:
    changed = operations.override(ADD, priority=7, timeout=HOUR, by="anna")
    assert changed == {"priority": Change(None, 7), "timeout": Change(None, HOUR)}
    assert held() == {**dict.fromkeys(OVERRIDES), "priority": 7, "timeout": HOUR}
    overrides = {"priority": "– → 7", "timeout": "– → 1:00:00"}
    details = {"job_type": ADD, "overrides": overrides}
    assert told == [{"verb": "override", "by": "anna", "count": 2, "details": details}]
    assert operations.override(ADD, priority=7) == {}
    assert operations.override(ADD) == {}


def test_each_can_be_overridden_and_cleared_alone(transactional_db: None) -> None:
    operations.override(ADD, **EVERYTHING)
    assert held() == EVERYTHING
    left = dict(EVERYTHING)
    for option, value in EVERYTHING.items():
        changed = operations.override(ADD, **{option: None})
        assert changed == {option: Change(value, None)}
        left[option] = None
        assert held() == left


def test_workers_hear_of_it_and_pauses_and_the_code_stay(own: OwnConnection) -> None:
    operations.pause([ADD], reason="look", by="carl")
    before = JobType.objects.filter(name=ADD).values().get()
    ear = Hearing(own)
    operations.override(ADD, keep_succeeded=HOUR)
    assert ear.heard() == ["t:"]
    after = JobType.objects.filter(name=ADD).values().get()
    assert after == {**before, "keep_succeeded_override": HOUR}


def test_overrides_at_the_same_time_all_stand(transactional_db: None) -> None:
    def say(option: str, value: Any) -> Callable[[], Any]:
        return lambda: operations.override(ADD, **{option: value})

    together([say(*said) for said in EVERYTHING.items()])
    assert held() == EVERYTHING


def test_a_change_tells_what_it_ended_not_what_it_had_seen(own: OwnConnection) -> None:
    with ThreadPoolExecutor(1) as pool:
        with open_transaction(own) as first:
            job_types.override(first, ADD, {"priority": 3, "concurrency": 5})
            second = submit(pool, lambda: operations.override(ADD, priority=9))
            until_waiting()
        assert second.result(10) == {"priority": Change(3, 9)}
    assert (held()["priority"], held()["concurrency"]) == (9, 5)


ATTEMPTS = "max_attempts must be a whole number from 1 to 2,147,483,647, or -1 for unl"
CONCURRENCY = "concurrency must be a whole number from 0 to 2,147,483,647, or -1 for u"
REFUSED = [
    ("priority", 101, "priority must be a whole number from -100 to 100"),
    ("priority", "high", "priority must be a whole number from -100 to 100"),
    *(("max_attempts", value, ATTEMPTS) for value in (0, -2, True, 2**31)),
    *(("concurrency", value, CONCURRENCY) for value in (-2, 1.5)),
    ("timeout", -HOUR, "timeout must be a timedelta from 0 to 36,500 days"),
    ("timeout", 60, "timeout must be a timedelta from 0 to 36,500 days"),
    ("keep_succeeded", timedelta(days=36_501), "keep_succeeded must be a timedelta fr"),
    ("keep_unsuccessful", -HOUR, "keep_unsuccessful must be a timedelta from 0"),
]


def test_a_wrong_override_is_refused(transactional_db: None, told: Told) -> None:
    def ask(option: str, value: Any) -> str:
        override = partial(operations.override, ADD, **{option: value})
        return refusal(InvalidArguments, override)

    assert differing(REFUSED, ask, operator.contains) == []
    with pytest.raises(UnknownJobType, match="Did you mean 'tests.sample.add'"):
        operations.override("tests.sample.ad", priority=1)
    assert (held(), told) == (dict.fromkeys(OVERRIDES), [])
