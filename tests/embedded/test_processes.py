"""Processes with a worker inside: how they end, fork, and are killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue.models import Worker
from tests.embedded.programs import Run
from tests.sample import jobs
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

STAY = "threading.Event().wait()"


def test_a_process_that_ends_without_a_stop_lets_its_jobs_end(
    program: Run, journal: str
) -> None:
    """An async handler can use the database meanwhile."""
    run = program(
        f"""
import asyncio
from django.contrib.auth.models import Group

@django_jobqueue.job(name="tests.at_the_end")
async def handler() -> int:
    jobs.note({journal!r}, "start", "count")
    await asyncio.sleep(0.3)
    return await Group.objects.acount()

worker = django_jobqueue.worker(threads=1)
worker.start()
jobs.write.enqueue({journal!r}, "sync", seconds=0.3)
handler.enqueue()
while len(jobs.notes({journal!r})) < 2:
    time.sleep(0.01)
print("the main thread ends")
"""
    )
    assert run.wait() == 0, run.output
    assert {(job.status, job.result, job.error_message) for job in archived()} == {
        ("succeeded", None, ""),
        ("succeeded", 0, ""),
    }
    assert [row.state for row in Worker.objects.all()] == ["stopped"]
    assert run.output == "the main thread ends\n"


def test_a_fork_has_no_worker_but_can_have_one_of_its_own(
    program: Run, journal: str
) -> None:
    """And harms that of its parent not."""
    of_child = jobs.add.using(queue="child").enqueue(1)
    run = program(
        f"""
worker = django_jobqueue.worker(threads=1, queues=["parent"])
worker.start()
jobs.see_session.using(queue="parent").enqueue()
worker.wait_idle()
import warnings
from django.db import connections
warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
for has_its_own in (False, True):
    child = os.fork()
    if child == 0:
        assert not worker.is_running
        worker.stop()
        if has_its_own:
            django_jobqueue.worker(threads=1, queues=["child"]).run_until_idle(20)
        sys.exit(0)  # with all that an interpreter does at its end
    assert os.waitpid(child, 0)[1] == 0
    jobs.write.using(queue="parent").enqueue({journal!r}, "after")
    worker.wait_idle()
    connections.close_all()  # that the next child has none of its parent's
worker.stop()
"""
    )
    assert run.wait() == 0, run.output
    assert [job.status for job in archived()] == ["succeeded"] * 4, run.output
    workers = {row.id: row.state for row in Worker.objects.all()}
    assert list(workers.values()) == ["stopped"] * 2
    names = {job.id: job.worker for job in archived()}
    assert list(names.values()).count(names.pop(of_child.id)) == 1
    assert run.output == ""


def test_a_successor_on_the_same_host_does_not_wait_for_the_lease(
    program: Run, journal: str
) -> None:
    code = f"with django_jobqueue.worker(threads=1): {STAY}"
    victim = program(code, is_forked=True)
    jobs.write.enqueue(journal, "a", seconds=1.0)
    eventually(lambda: jobs.notes(journal))
    victim.process.kill()
    victim.wait()
    program(code, is_forked=True)
    eventually(lambda: archived())  # the lease is 15 s, and more is not waited for
    assert archived()[0].crashes == 1


def test_a_handler_that_holds_the_interpreter_longer_than_the_lease_is_refused(
    program: Run, runworkers: Callable[..., RunWorkers], journal: str, tmp_path: Path
) -> None:
    """No thread of its process can renew meanwhile, so another worker rescues the job;
    what the first attempt says in the end changes nothing. It may end before it is told
    to stop, or not, and while the next one runs already."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    other = runworkers("--threads", "1", "--lease", "2", SAMPLE_HOST="another")
    other.started()
    held = program(
        f"""
from django.test import override_settings

@django_jobqueue.job(name="tests.hold", takes_context=True)
def hold(context: django_jobqueue.Context) -> str:
    jobs.note({journal!r}, "start", context.crashes)
    if not context.crashes:
        # A C function that keeps the lock until the gate is opened at its other end.
        ctypes.PyDLL(None).open({str(gate)!r}.encode(), os.O_RDONLY)
    jobs.note({journal!r}, "end", context.crashes)
    return f"after {{context.crashes}} crashes"

with override_settings(JOBQUEUE={{"LEASE": 2}}), django_jobqueue.worker(threads=1):
    hold.enqueue()
    {STAY}
""",
        is_forked=True,
    )
    try:
        eventually(lambda: queued(crashes=1), within=60, what="the job to be rescued")
    finally:
        os.close(os.open(gate, os.O_RDWR))
    (job,) = eventually(lambda: archived(), within=60, what=held.output)
    assert job.status == "succeeded"
    assert job.crashes >= 1
    assert job.result == f"after {job.crashes} crashes"
    assert jobs.notes(journal)[0] == ["start", "0"]
    assert jobs.notes(journal)[-1] == ["end", str(job.crashes)]
    assert "another worker takes its place" in held.output
    assert not queued()


def test_a_handler_that_holds_the_interpreter_past_its_timeout_is_told_once(
    program: Run,
) -> None:
    """Nobody can end it; who reads the log learns what to do."""
    held = program(
        f"""
from django.test import override_settings
from django_jobqueue.embedded import threaded_worker
threaded_worker.MARGIN = 0.2

@django_jobqueue.job(name="tests.hold", timeout=0.1, max_attempts=1)
def hold(number: int) -> None:
    ctypes.PyDLL(None).usleep(500_000)

settings = {{"CANCEL_GRACE": 0.1}}
with override_settings(JOBQUEUE=settings), django_jobqueue.worker(threads=1):
    for number in range(2):
        hold.enqueue(number)
    {STAY}
""",
        is_forked=True,
    )
    eventually(lambda: len(archived()) == 2, within=60, what=held.output)
    assert held.output.count("no other thread of this process ran") == 1
    assert "(tests.hold)" in held.output
    assert "run such jobs with runworkers" in held.output
