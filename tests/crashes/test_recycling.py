"""Worker processes that are replaced when they reach a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from django_jobqueue.models import ArchivedJob, Worker
from tests.sample import jobs
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]


def processes(journal: str) -> set[str]:
    return {line.split()[1] for line in Path(journal).read_text().splitlines()}


def test_jobs_run_once_each_while_their_processes_are_replaced(
    runworkers: Run, journal: str
) -> None:
    count = 200
    jobs.write.enqueue_many(
        {"journal": journal, "word": str(n), "seconds": 0.02} for n in range(count)
    )
    flags = ("--processes", "2", "--threads", "4", "--max-jobs", "25")
    run = runworkers(*flags, constants=BRISK)
    eventually(
        lambda: ArchivedJob.objects.count() == count, within=60, what=lambda: run.output
    )
    ends = Counter(words[1] for words in jobs.notes(journal) if words[0] == "end")
    assert ends == {str(n): 1 for n in range(count)}
    assert set(ArchivedJob.objects.values_list("status", "attempts", "crashes")) == {
        ("succeeded", 1, 0)
    }
    assert len(processes(journal)) >= 4
    assert run.stop() == 0
    assert set(Worker.objects.values_list("state", flat=True)) == {"stopped"}
    # Each ended only when another one had registered: never were there fewer than two,
    # from the second start to the stop of the host.
    rows = list(Worker.objects.order_by("started_at"))
    for row in rows[1:]:
        assert row.stopped_at is not None
        others = [r for r in rows if r.started_at <= row.stopped_at <= r.stopped_at]
        is_stop_of_host = row.stopped_at >= rows[-1].stopped_at - timedelta(seconds=1)
        assert is_stop_of_host or len(others) > 2, run.output


def test_a_process_whose_handlers_leak_is_replaced_and_its_long_job_finishes(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "2", "--max-memory", "150MB", constants=BRISK)
    (first,) = run.started()
    jobs.await_leave.enqueue(journal, "long")
    eventually(lambda: jobs.notes(journal))
    jobs.leak_memory.enqueue(200)
    eventually(lambda: "has reached MAX_MEMORY" in run.output)
    eventually(lambda: first not in run.workers(), what=lambda: run.output)
    jobs.give_leave(journal, "long")
    eventually(lambda: not jobs.is_running(first), what=lambda: run.output)
    assert jobs.notes(journal) == [["start", "long"], ["end", "long"]]
    assert set(ArchivedJob.objects.values_list("status", "attempts")) == {
        ("succeeded", 1)
    }
    (second,) = run.started()
    assert second != first
    assert run.output.count("has reached") == 1
    assert run.stop() == 0
