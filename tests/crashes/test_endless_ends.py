"""What comes after a handler, or beside it, and hangs: signals, texts, threads."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crashes.test_kills import all_archived, starts
from tests.sample import jobs
from tests.sample.jobs import is_running
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
PATIENT = ("--threads", "2", "--async-slots", "4", "--lease", "60", "--grace", "1")


@pytest.mark.parametrize(
    ("handler", "how"),
    [
        ("end_stuck", "sync"),
        ("aend_stuck", "async"),
        ("end_stuck", "text"),
        pytest.param(
            "aend_stuck", "sync", marks=pytest.mark.slow("further ways to hang")
        ),
        pytest.param(
            "end_stuck", "async", marks=pytest.mark.slow("further ways to hang")
        ),
        pytest.param(
            "aend_stuck", "text", marks=pytest.mark.slow("further ways to hang")
        ),
    ],
)
def test_an_end_that_hangs_is_recorded_as_what_is_known_and_the_process_replaced(
    runworkers: Run, journal: str, handler: str, how: str
) -> None:
    run = runworkers(*PATIENT)
    (pid,) = run.started()
    getattr(jobs, handler).enqueue(journal, how)

    eventually(all_archived(1), within=60, what=run.output)
    (job,) = archived()
    if how == "text":
        assert job.status == "failed"
        assert "its handler raised Unspeakable" in job.error_message
    else:
        assert (job.status, job.result) == ("succeeded", "done")
    assert starts(journal) == {"end": 1}
    eventually(lambda: pid not in run.workers(), within=30, what=run.output)
    assert "will be replaced" in run.output
    jobs.write.enqueue(journal, "next")
    eventually(all_archived(2), within=30, what=run.output)


def test_sync_code_that_blocks_the_thread_of_async_handlers_costs_only_its_process(
    runworkers: Run, journal: str
) -> None:
    run = runworkers(*PATIENT)
    (pid,) = run.started()
    jobs.block_thread.enqueue(journal)
    eventually(lambda: starts(journal))
    for _ in range(3):
        jobs.afail.enqueue(journal)

    eventually(all_archived(4), within=60, what=run.output)
    errors = sorted(job.error_class.rpartition(".")[2] for job in archived())
    assert errors == ["JobTimeout", *["ValueError"] * 3]
    eventually(lambda: pid not in run.workers(), within=30, what=run.output)
    assert "This worker will be replaced" in run.output
    jobs.awrite.enqueue(journal, "next")
    eventually(all_archived(5), within=30, what=run.output)


@pytest.mark.parametrize("how", ["stop", "cancel", "exit"])
def test_an_event_loop_goes_on_whatever_a_handler_does_to_it(
    runworkers: Run, journal: str, how: str
) -> None:
    run = runworkers(*PATIENT)
    (pid,) = run.started()
    jobs.treat_loop.enqueue(journal, how)
    eventually(all_archived(1), within=30, what=run.output)
    for _ in range(3):
        jobs.awrite.enqueue(journal, "next")

    eventually(all_archived(4), within=30, what=run.output)
    assert {job.status for job in archived()} == {"succeeded"}
    assert run.workers() == [pid]
    assert "the loop goes on" in run.output


def test_a_handler_that_puts_another_program_in_its_place_is_a_crash(
    runworkers: Run, journal: str
) -> None:
    run = runworkers(*PATIENT)
    (pid,) = run.started()
    jobs.run_another_program.enqueue(journal)

    eventually(lambda: archived(status="failed"), within=30, what=run.output)
    assert archived()[0].crashes == 1
    assert pid not in run.workers()
    assert "put another program in its place" in run.output


def test_a_program_in_the_place_of_a_worker_dies_with_the_supervisor(
    runworkers: Run, journal: str
) -> None:
    """It was put there by a thread, and the kernel asks each thread."""
    run = runworkers(*PATIENT)
    (pid,) = run.started()
    run.signal(signal.SIGSTOP)  # so that it does not see the program first
    jobs.run_another_program.enqueue(journal)
    command = Path(f"/proc/{pid}/cmdline")
    eventually(lambda: b"sleep" in command.read_bytes(), within=30)
    run.signal(signal.SIGKILL)
    eventually(lambda: not is_running(pid), what="the program to die")
