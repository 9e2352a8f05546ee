"""Judging the job queue by thresholds, without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from django_jobqueue.stats.current_state import Present
from django_jobqueue.stats.health import ENOUGH, MOST, Health, Thresholds, judge
from django_jobqueue.store.reading.stats import CAP, Depth, Pause, Recent, WorkerRow

ADD = "shop.add"


def depth(queue: str = "mail", **columns: Any) -> Depth:
    """Jobs that wait and run in a queue."""
    return Depth(queue, columns.pop("job_type", ADD), **columns)


def worker(**columns: Any) -> WorkerRow:
    """A living worker of all queues."""
    values: dict[str, Any] = {"queues": None, "state": "running", "lease": 12.0}
    return WorkerRow(
        id=1,
        name="web-1:7",
        threads=4,
        async_slots=0,
        running=0,
        rss=0,
        listening=True,
        age=60.0,
        release="",
        end="",
        **{**values, **columns},
    )


def finished(succeeded: int, failed: int, *, queue: str = "mail") -> Recent:
    """What one job type did lately."""
    return Recent(ADD, queue, succeeded, failed, 0, 0, [], [])


def health(
    depths: Sequence[Depth] = (),
    workers: Sequence[WorkerRow] = (worker(),),
    recent: Sequence[Recent] = (),
    closed: Sequence[Pause] = (),
    crashes: Mapping[str, int] = MappingProxyType({}),
    **thresholds: Any,
) -> Health:
    """The judgement about these rows."""
    present = Present(
        time=datetime(2026, 11, 25, tzinfo=UTC),
        depths=list(depths),
        workers=list(workers),
        known={},
        closed=list(closed),
    )
    wanted = {"max_age": 300.0, "max_failed": 5.0, **thresholds}
    return judge(present, recent, crashes, Thresholds(**wanted))


def said(**arguments: Any) -> list[tuple[str, str]]:
    """Code and message of each problem."""
    return [(one.code, one.message) for one in health(**arguments).problems]


def test_within_the_thresholds_all_is_well() -> None:
    judged = health(
        [depth(ready=3, oldest=299.0)], [worker()], [finished(95, 5)], max_ready=3
    )
    assert judged.is_healthy
    assert judged.summary == "1 worker, 3 ready jobs, the oldest for 4 m"
    assert health().summary == "1 worker, 0 ready jobs"


PROBLEMS: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"workers": []}, [("few_workers", "no worker claims jobs")]),
    (
        {"workers": [worker(state="draining")]},
        [("few_workers", "no worker claims jobs (1 draining)")],
    ),
    ({"workers": [worker(lease=-1.0)]}, [("few_workers", "no worker claims jobs")]),
    (
        {"min_workers": 2},
        [("few_workers", "1 of the 2 workers that are wanted")],
    ),
    (
        {"workers": [worker(queues=["mail"])], "queues": frozenset(["mail", "slow"])},
        [("few_workers", "slow: no worker claims jobs")],
    ),
    ({"workers": [], "min_workers": 0}, []),
    (
        {"depths": [depth(ready=1, oldest=420.0)]},
        [("old_job", "mail: oldest ready job 7 m")],
    ),
    (
        {"depths": [depth(ready=1, oldest=420.0)], "queues": frozenset(["slow"])},
        [],
    ),
    (
        {"depths": [depth(ready=2), depth(job_type="b", ready=2)], "max_ready": 3},
        [("many_ready", "mail: 4 ready jobs")],
    ),
    (
        {"depths": [depth(ready=CAP + 1)], "max_ready": CAP},
        [("many_ready", "mail: 10,000+ ready jobs")],
    ),
    ({"depths": [depth(ready=CAP + 1)]}, []),
    (
        {"recent": [finished(90, 5), finished(0, 5, queue="slow")]},
        [("many_failed", "shop.add: 10.0 % of 100 jobs failed")],
    ),
    ({"recent": [finished(0, ENOUGH - 1)]}, []),
    (
        {"recent": [finished(0, 99)], "queues": frozenset(["slow"])},
        [],
    ),
    (
        {"crashes": {ADD: 3, "shop.resize": 2}},
        [("many_crashes", "shop.add: 3 attempts ended with the death of the worker")],
    ),
    ({"crashes": {ADD: 3}, "max_crashes": 3}, []),
    (
        {"crashes": {ADD: 3}, "recent": [finished(0, 1)], "queues": {"mail"}},
        [("many_crashes", "shop.add: 3 attempts ended with the death of the worker")],
    ),
    ({"crashes": {ADD: 3}, "recent": [finished(0, 1)], "queues": {"slow"}}, []),
]


@pytest.mark.parametrize(("given", "problems"), PROBLEMS)
def test_what_is_beyond_a_threshold_is_a_problem(
    given: dict[str, Any], problems: list[tuple[str, str]]
) -> None:
    assert said(**given) == problems


@pytest.mark.parametrize("what", ["queue", "job type"])
def test_what_an_operator_paused_may_wait(what: str) -> None:
    name = "mail" if what == "queue" else ADD
    waiting = [depth(ready=9, oldest=9_000.0)]
    pause = Pause(what, name, "anna", "down")
    assert said(depths=waiting, max_ready=1) != []
    assert said(depths=waiting, max_ready=1, closed=[pause]) == []


def test_figures_are_given_beside_their_thresholds() -> None:
    judged = health(
        [depth(ready=2, oldest=8.04), depth("slow", ready=1, oldest=1.0)],
        recent=[finished(99, 1)],
        crashes={ADD: 1},
        max_ready=50,
    )
    assert [(f.name, f.of, f.value, f.unit, f.limit) for f in judged.figures] == [
        ("workers", None, 1, "", 1),
        ("oldest", None, 8.0, "s", 300.0),
        ("ready", None, 3, "", None),
        ("oldest", "mail", 8.0, "s", 300.0),
        ("ready", "mail", 2, "", 50),
        ("oldest", "slow", 1.0, "s", 300.0),
        ("ready", "slow", 1, "", 50),
        ("failed", ADD, 1.0, "%", 5.0),
        ("crashes", ADD, 1, "", 2),
    ]


def test_a_queue_that_was_named_has_figures_even_if_it_is_empty() -> None:
    figures = health(queues=frozenset(["slow"])).figures
    assert ("oldest", "slow", 0.0) in [(f.name, f.of, f.value) for f in figures]


def test_of_a_thousand_queues_those_that_wait_longest_have_figures() -> None:
    many = [depth(f"tenant-{n}", ready=1, oldest=float(n)) for n in range(1_000)]
    queues = [f.of for f in health(many).figures if f.name == "oldest" and f.of]
    assert queues == [f"tenant-{n}" for n in range(999, 999 - MOST, -1)]
