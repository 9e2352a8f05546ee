"""The very statements of a worker, in a loop with no worker around them.

    python -m benchmarks.bare '{"do": "drain", "batch": 200, "at_once": 2}'

``copy`` writes rows, ``drain`` claims and finishes all that waits, ``singles`` takes
each job through its life by itself. The answer is a line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from queue import Queue
from threading import Thread
from typing import Final

import django
import psycopg

from benchmarks.apps import django_jobqueue_app as app
from benchmarks.apps.jobs import work
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.claim import claim
from django_jobqueue.store.queue.finish import Finished, Holder, succeed
from django_jobqueue.store.queue.lanes import LaneMark
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.store.session import FINISHING, PINNED

PURPOSE: Final = "benchmark"
WORKER: Final = 1
AHEAD: Final = 2  # batches that wait to be finished


def drain(batch: int, at_once: int) -> dict[str, float]:
    """Claim and finish all that waits; answers the number of jobs and the seconds.

    With two at once, a batch is finished while the next one is claimed.
    """
    claiming = OwnConnection(PURPOSE, plans=PINNED)
    finishing = OwnConnection(PURPOSE, plans=FINISHING)
    _warm_up(claiming, finishing)
    done = 0
    began = time.monotonic()
    if at_once == 1:
        for jobs in _claimed(claiming, batch):
            _finish(finishing, jobs)
            done += len(jobs)
    else:
        waiting: Queue[list[ClaimedJob] | None] = Queue(AHEAD)
        finisher = Thread(target=_finish_all, args=(finishing, waiting))
        finisher.start()
        for jobs in _claimed(claiming, batch):
            waiting.put(jobs)
            done += len(jobs)
        waiting.put(None)
        finisher.join()
    return {"jobs": done, "seconds": time.monotonic() - began}


def copy(jobs: int) -> dict[str, float]:
    """Write so many rows by COPY."""
    began = time.monotonic()
    with psycopg.connect(autocommit=True) as connection:
        for start in range(0, jobs, app.CHUNK):
            numbers = range(start, min(start + app.CHUNK, jobs))
            app.copy(connection, app.rows(numbers))
    return {"jobs": jobs, "seconds": time.monotonic() - began}


def singles(jobs: int) -> dict[str, float]:
    """INSERT, claim and finish so many jobs, each by itself."""
    claiming = OwnConnection(PURPOSE, plans=PINNED)
    finishing = OwnConnection(PURPOSE, plans=FINISHING)
    _warm_up(claiming, finishing)
    claims = _claimed(claiming, 1)
    began = time.monotonic()
    with psycopg.connect(autocommit=True) as connection:
        for number in range(jobs):
            app.insert(connection, number)
            _finish(finishing, next(claims))
    return {"jobs": jobs, "seconds": time.monotonic() - began}


def _claimed(db: OwnConnection, batch: int) -> Iterator[list[ClaimedJob]]:
    """Batch after batch, as a worker claims them, until nothing is left."""
    lane = LaneMark(Lane("default", 0, work.name))
    while jobs := claim(db, WORKER, [lane], batch):
        mark = max((job.run_after, job.id) for job in jobs)
        lane = LaneMark(lane.lane, mark, mark)
        yield jobs


def _finish(db: OwnConnection, jobs: list[ClaimedJob]) -> None:
    now, outcome = time.monotonic(), Outcome(verb=Verb.SUCCEED)
    finished = [Finished(job.id, job.fence, outcome, 0.0, now) for job in jobs]
    succeed(db, Holder(WORKER, PURPOSE, ""), finished, now)


def _finish_all(db: OwnConnection, waiting: Queue[list[ClaimedJob] | None]) -> None:
    while (jobs := waiting.get()) is not None:
        _finish(db, jobs)


def _warm_up(claiming: OwnConnection, finishing: OwnConnection) -> None:
    """Have the statements planned."""
    claim(claiming, WORKER, [], 0)
    _finish(finishing, [])


def main() -> None:
    """Do what the one argument says."""
    django.setup()
    verbs: dict[str, Callable[..., dict[str, float]]] = {
        "drain": drain,
        "copy": copy,
        "singles": singles,
    }
    command = json.loads(sys.argv[1])
    print(json.dumps(verbs[command.pop("do")](**command)))


if __name__ == "__main__":
    main()
