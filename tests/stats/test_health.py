"""Judging the job queue by thresholds, without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from django_jobqueue.stats.current_state import Present
from django_jobqueue.stats.health import ENOUGH, MOST, Health, Thresholds, judge
from django_jobqueue.store.reading.failure_stats import Crashes
from django_jobqueue.store.reading.stats import CAP, Depth, Pause, Recent, WorkerRow
from tests.support.tables import differing

ADD = "shop.add"


def depth(queue: str = "mail", **columns: Any) -> Depth:
    return Depth(queue, columns.pop("job_type", ADD), **columns)


def worker(**columns: Any) -> WorkerRow:
    """A living worker of all queues."""
    values: dict[str, Any] = {"queues": None, "state": "running", "lease": 12.0}
    row: dict[str, Any] = {"id": 1, "name": "web-1:7", "threads": 4, "async_slots": 0}
    row |= {"running": 0, "rss": 0, "listening": True, "age": 60.0, "release": ""}
    return WorkerRow(**{**row, "end": "", **values, **columns})


def finished(succeeded: int, failed: int, *, queue: str = "mail") -> Recent:
    """What one job type did lately."""
    return Recent(ADD, queue, succeeded, failed, 0, 0, [], [])


def health(
    depths: Sequence[Depth] = (),
    workers: Sequence[WorkerRow] = (worker(),),
    recent: Sequence[Recent] = (),
    closed: Sequence[Pause] = (),
    crashes: Mapping[str, Crashes] = MappingProxyType({}),
    **thresholds: Any,
) -> Health:
    now = datetime(2026, 11, 25, tzinfo=UTC)
    present = Present(
        time=now, depths=[*depths], workers=[*workers], known={}, closed=[*closed]
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
    many = [depth(f"tenant-{n}", ready=1, oldest=float(n)) for n in range(1_000)]
    queues = [f.of for f in health(many).figures if f.name == "oldest" and f.of]
    assert queues == [f"tenant-{n}" for n in range(999, 999 - MOST, -1)]


DRAINING, LAPSED = worker(state="draining"), worker(lease=-1.0)
OLD, SLOW = depth(ready=1, oldest=420.0), frozenset(["slow"])
FEW, NONE = "few_workers", "no worker claims jobs"
DIED = (
    "many_crashes",
    "shop.add: 3 workers died while its jobs ran, and perhaps by them",
)
CRASHES = {
    ADD: Crashes(unexplained=3),
    "shop.resize": Crashes(unexplained=2),
    "shop.mail": Crashes(beside=99),
}
POISON = {ADD: Crashes(by_culprits=2, took_along=4)}
KILLS = (
    "many_crashes",
    f"{ADD}: its jobs kill their workers, also alone: 2 attempts",
)
TWO_TYPES = [depth(ready=2), depth(job_type="b", ready=2)]
TWO_QUEUES = [finished(90, 5), finished(0, 5, queue="slow")]
PROBLEMS: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"workers": []}, [(FEW, NONE)]),
    ({"workers": [DRAINING]}, [(FEW, f"{NONE} (1 draining)")]),
    ({"workers": [LAPSED]}, [(FEW, NONE)]),
    ({"min_workers": 2}, [(FEW, "1 of the 2 workers that are wanted")]),
    (
        {"workers": [worker(queues=["mail"])], "queues": {"mail", "slow"}},
        [(FEW, f"slow: {NONE}")],
    ),
    ({"workers": [], "min_workers": 0}, []),
    ({"depths": [OLD]}, [("old_job", "mail: oldest ready job 7 m")]),
    ({"depths": [OLD], "queues": SLOW}, []),
    ({"depths": TWO_TYPES, "max_ready": 3}, [("many_ready", "mail: 4 ready jobs")]),
    (
        {"depths": [depth(ready=CAP + 1)], "max_ready": CAP},
        [("many_ready", "mail: 10,000+ ready jobs")],
    ),
    ({"depths": [depth(ready=CAP + 1)]}, []),
    ({"recent": TWO_QUEUES}, [("many_failed", "shop.add: 10.0 % of 100 jobs failed")]),
    ({"recent": [finished(0, ENOUGH - 1)]}, []),
    ({"recent": [finished(0, 99)], "queues": SLOW}, []),
    ({"crashes": CRASHES}, [DIED]),
    ({"crashes": CRASHES, "max_crashes": 3}, []),
    ({"crashes": POISON, "max_crashes": 9}, [KILLS]),
    ({"crashes": CRASHES, "recent": [finished(0, 1)], "queues": {"mail"}}, [DIED]),
    ({"crashes": CRASHES, "recent": [finished(0, 1)], "queues": SLOW}, []),
]


def test_what_is_beyond_a_threshold_is_a_problem_unless_it_is_paused() -> None:
    assert differing(PROBLEMS, lambda given: said(**given)) == []
    waiting = [depth(ready=9, oldest=9_000.0)]
    assert said(depths=waiting, max_ready=1) != []
    for what, name in (("queue", "mail"), ("job type", ADD)):
        pause = Pause(what, name, "anna", "down")
        assert said(depths=waiting, max_ready=1, closed=[pause]) == []


def test_figures_are_given_beside_their_thresholds() -> None:
    judged = health(
        [depth(ready=2, oldest=8.04), depth("slow", ready=1, oldest=1.0)],
        recent=[finished(99, 1)],
        crashes={ADD: Crashes(unexplained=1), "shop.mail": Crashes(beside=1)},
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
    figures = health(queues=SLOW).figures  # though it is empty
    assert ("oldest", "slow", 0.0) in [(f.name, f.of, f.value) for f in figures]
