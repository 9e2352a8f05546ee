"""Limits by key with real processes that are killed: never above, by the handlers' own
journal."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from django_jobqueue import cancel, operations
from django_jobqueue.models import QueuedJob
from tests.sample import jobs
from tests.store.rows import KEYED
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
Ended = tuple[
    int, str, str
]  # when (time.monotonic_ns()), "killed" or "cancelled", what


def most_at_once(journal: str, ended: list[Ended]) -> Counter[str]:
    """The greatest number of attempts of each key that ran at one time. Those of a
    process that was killed, and a job that was cancelled, note no end themselves."""
    lines = [line.split() for line in Path(journal).read_text().splitlines()]
    events = [(int(at), pid, words) for at, pid, *words in lines]
    events += [(at, what, [how]) for at, how, what in ended]
    running: set[tuple[str, str, str]] = set()  # pid, key, word
    most: Counter[str] = Counter()
    for _, pid, words in sorted(events, key=lambda event: event[0]):
        match words:
            case ["killed"]:
                running = {one for one in running if one[0] != pid}
            case ["cancelled"]:
                running = {one for one in running if one[2] != pid}
            case ["start", key, word]:
                running.add((pid, key, word))
                count = sum(one[1] == key for one in running)
                most[key] = max(most[key], count)
            case ["end", key, word]:
                running.discard((pid, key, word))
    return most


def has_noted(journal: str, lines: int) -> bool:
    """Whether handlers have noted more than so many lines."""
    return len(jobs.notes(journal)) > lines


def run_under_kill(
    run: RunWorkers, journal: str, *, keys: int, each: int, kills: int, processes: int
) -> list[Ended]:
    """Jobs of some keys in turn; each time that some more have started, a worker is
    killed, and a running job cancelled."""
    enqueued = [
        {"journal": journal, "key": key, "word": f"{key}-{number}", "seconds": 0.1}
        for number in range(each)
        for key in range(keys)
    ]
    before = len(archived())
    jobs.write_keyed.enqueue_many(enqueued)
    ended: list[Ended] = []
    for number in range(1, kills + 1):
        step = number * len(enqueued) // (kills + 2)
        eventually(partial(has_noted, journal, step), within=60)
        pid = run.started(processes)[0]
        ended.append((time.monotonic_ns(), "killed", str(pid)))
        os.kill(pid, signal.SIGKILL)
        row = QueuedJob.objects.filter(status="running").first()
        if row is not None:
            ended.append((time.monotonic_ns(), "cancelled", row.data["word"]))
            cancel(row.id)
    eventually(
        lambda: len(archived()) - before == len(enqueued) and not queued(), within=120
    )
    return ended


def test_no_key_is_ever_above_its_limit_though_workers_are_killed(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--processes", "2", "--threads", "4", "--lease", "60")
    run.started(2)
    shape = {"keys": 3, "each": 8, "kills": 1, "processes": 2}
    ended = run_under_kill(run, journal, **shape)
    assert most_at_once(journal, ended) == dict.fromkeys("012", 2)

    Path(journal).unlink()
    operations.override_limit(KEYED, 1)
    ended = run_under_kill(run, journal, **shape)
    assert most_at_once(journal, ended) == dict.fromkeys("012", 1)
    assert {job.status for job in archived()} <= {"succeeded", "cancelled"}


@pytest.mark.slow("eight processes")
def test_no_key_is_ever_above_its_limit_with_many_processes(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--processes", "8", "--threads", "4", "--lease", "60")
    run.started(8)
    shape = {"keys": 200, "each": 20, "kills": 12, "processes": 7}
    ended = run_under_kill(run, journal, **shape)
    most = most_at_once(journal, ended)
    assert len(most) == 200
    assert max(most.values()) == 2
