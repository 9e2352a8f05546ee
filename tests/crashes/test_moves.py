"""kill -9 of moves beside workers on both databases: each job runs once."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from django_jobqueue.models import ArchivedJob, QueuedJob, Worker
from tests.commands.conftest import jobqueue
from tests.crashes.seen import starts
from tests.sample import jobs
from tests.support.commands import start_command, worker_environment
from tests.support.run_workers import RunWorkers
from tests.support.second_database import SECOND, second  # noqa: F401
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.processes,
    pytest.mark.django_db(transaction=True, databases=["default", SECOND]),
]

JOBS = 200
KILLS = 2
MOVE = ("move", "--to", SECOND, "--queue", "default", "--yes")
SMALL = {"contrib.transfer.moving_jobs.BATCH": 20}


def test_workers_on_both_sides_and_kills_at_random_run_each_job_once(
    runworkers: Callable[..., RunWorkers], journal: str, tmp_path: Path
) -> None:
    names = [connections[alias].settings_dict["NAME"] for alias in ("default", SECOND)]
    first = worker_environment()["DATABASE_URL"]
    other = first.removesuffix(names[0]) + names[1]
    words = [str(number) for number in range(JOBS)]
    jobs.write.enqueue_many(
        {"journal": journal, "word": word, "seconds": 0.005} for word in words
    )
    runworkers("--threads", "1")
    runworkers("--threads", "1", DATABASE_URL=other)

    # Some before they hold anything, most while they do.
    chance, ends = random.Random(1), set()
    for _ in range(KILLS):
        process = start_command(
            *("jobqueue", *MOVE),
            output=tmp_path / "moves.log",
            SAMPLE_SECOND_DATABASE=other,
            SAMPLE_CONSTANTS=json.dumps(SMALL),
        )
        moves = Worker.objects.filter(state="moving", pid=process.pid)
        eventually(lambda: process.poll() is not None or moves.exists())  # noqa: B023
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
        ends.add(process.wait())
    assert -signal.SIGKILL in ends
    jobqueue(*MOVE)

    def are_over() -> bool:
        return not any(
            QueuedJob.objects.using(alias).exists() for alias in ("default", SECOND)
        )

    eventually(are_over, within=60)
    assert starts(journal) == Counter(words)
    over = [ArchivedJob.objects.using(alias).all() for alias in ("default", SECOND)]
    ids = [set(rows.values_list("id", flat=True)) for rows in over]
    assert len(ids[0]) + len(ids[1]) == JOBS == len(ids[0] | ids[1])
    assert not any(rows.exclude(attempts=1, crashes=0).exists() for rows in over)
