"""Limits by key with real processes that are killed: never above, by what the database
wrote down of claims, and by what handlers noted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from django_jobqueue import cancel, operations
from django_jobqueue.models import QueuedJob
from tests.crashes.claim_log import claim_log as claim_log
from tests.crashes.claim_log import events, most_at_once
from tests.crashes.seen import kill
from tests.sample import jobs
from tests.store.rows import KEYED
from tests.support.rows import archived, queued
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("claim_log")]

Run = Callable[..., RunWorkers]


def most_noted(journal: str) -> Counter[str]:
    """The greatest number of attempts of each key that ran at one time, of those that
    noted their end: what is killed or cancelled does not."""
    lines = [line.split() for line in Path(journal).read_text().splitlines()]
    noted = sorted((int(at), what, (pid, *rest)) for at, pid, what, *rest in lines)
    ended = {attempt for _, what, attempt in noted if what == "end"}
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for _, what, attempt in noted:
        if attempt in ended:
            key = attempt[1]
            running[key] += 1 if what == "start" else -1
            most[key] = max(most[key], running[key])
    return most


def run_under_kill(run: RunWorkers, journal: str) -> Counter[str | None]:
    """Jobs of some keys in turn; when some have started, a worker is killed, and a
    running job cancelled. Returns how many of each key ran at once."""
    Path(journal).unlink(missing_ok=True)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE claim_log")
    enqueued = [
        {"journal": journal, "key": key, "word": f"{key}-{number}", "seconds": 0.1}
        for number in range(8)
        for key in range(3)
    ]
    jobs.write_keyed.enqueue_many(enqueued)
    eventually(lambda: len(jobs.notes(journal)) > len(enqueued) / 3, within=60)
    kill(run.started(2)[0])
    if row := QueuedJob.objects.filter(status="running").first():
        cancel(row.id)
    eventually(lambda: not queued(), within=120, what=lambda: run.output)
    most = most_at_once(events(), KEYED)
    assert len(most) == 3
    assert max(most_noted(journal).values()) <= max(most.values())
    return most


def test_no_key_is_ever_above_its_limit_though_workers_are_killed(
    runworkers: Run, journal: str
) -> None:
    flags = ("--processes", "2", "--threads", "4", "--lease", "60")
    run = runworkers(*flags, constants=BRISK)
    run.started(2)
    assert set(run_under_kill(run, journal).values()) == {2}

    operations.override_limit(KEYED, 1)
    assert set(run_under_kill(run, journal).values()) == {1}
    assert {job.status for job in archived()} <= {"succeeded", "cancelled"}
