"""What comes after a handler, or beside it, and hangs: signals, texts, threads."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crashes.seen import all_archived, is_gone, starts
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
FLAGS = ("--threads", "2", "--async-slots", "4", "--lease", "60", "--grace", "0.2")
CONSTANTS = {
    **BRISK,
    "processes.shutdown.WORKER_QUITS": 0.2,
    "workers.executors.base.LEAST_PATIENCE": 0.5,
}


def begin(runworkers: Run, *flags: str) -> RunWorkers:
    run = runworkers(*FLAGS, *flags, constants=CONSTANTS)
    run.started()
    return run


@pytest.mark.parametrize(
    ("handler", "how"),
    some_slow(
        [
            (jobs.end_stuck, "sync"),
            (jobs.aend_stuck, "async"),
            (jobs.end_stuck, "text"),
        ],
        [(jobs.aend_stuck, "async")],
    ),
)
def test_an_end_that_hangs_is_recorded_as_what_is_known_and_the_process_replaced(
    runworkers: Run, journal: str, handler: Any, how: str
) -> None:
    run = begin(runworkers, "--cancel-grace", "0.2")
    (pid,) = run.workers()
    handler.enqueue(journal, how)

    (job,) = eventually(archived, within=60, what=lambda: run.output)
    if how == "text":
        assert job.status == "failed"
        assert "its handler raised Unspeakable" in job.error_message
    else:
        assert (job.status, job.result) == ("succeeded", "done")
    assert starts(journal) == {"end": 1}
    eventually(lambda: is_gone(pid), what=lambda: run.output)
    assert run.output.count("will be replaced") == 1
    jobs.write.enqueue(journal, "next")
    eventually(all_archived(2), what=lambda: run.output)


def test_sync_code_that_blocks_the_thread_of_async_handlers_costs_only_its_process(
    runworkers: Run, journal: str
) -> None:
    run = begin(runworkers, "--cancel-grace", "0.2")
    (pid,) = run.workers()
    jobs.block_thread.using(timeout=0.3).enqueue(journal)
    eventually(lambda: starts(journal))
    for _ in range(3):
        jobs.afail.enqueue(journal)

    eventually(all_archived(4), within=60, what=lambda: run.output)
    errors = sorted(job.error_class.rpartition(".")[2] for job in archived())
    assert errors == ["JobTimeout", *["ValueError"] * 3]
    eventually(lambda: is_gone(pid), what=lambda: run.output)
    assert "This worker will be replaced" in run.output
    jobs.awrite.enqueue(journal, "next")
    eventually(all_archived(5), what=lambda: run.output)


def test_an_event_loop_goes_on_whatever_a_handler_does_to_it(
    runworkers: Run, journal: str
) -> None:
    run = begin(runworkers)
    (pid,) = run.workers()
    for count, how in enumerate(("stop", "cancel", "exit"), start=1):
        jobs.treat_loop.enqueue(journal, how)
        eventually(all_archived(2 * count - 1), what=lambda: run.output)
        eventually(lambda n=count: run.output.count("the loop continues") == n)
        jobs.awrite.enqueue(journal, "next")
        eventually(all_archived(2 * count), what=lambda: run.output)
    assert {job.status for job in archived()} == {"succeeded"}
    assert run.workers() == [pid]


def test_a_handler_that_puts_another_program_in_its_place_is_a_crash(
    runworkers: Run, journal: str
) -> None:
    """If the supervisor dies before it sees the program, the program dies, too: it was
    put there by a thread, and the kernel asks each thread."""
    run = begin(runworkers)
    (pid,) = run.workers()
    jobs.run_another_program.enqueue(journal)
    eventually(lambda: archived(status="failed"), what=lambda: run.output)
    assert archived()[0].crashes == 1
    assert is_gone(pid)
    assert "replaced it with another program" in run.output

    (pid,) = run.started()
    run.signal(signal.SIGSTOP)
    jobs.run_another_program.enqueue(journal)
    command = Path(f"/proc/{pid}/cmdline")
    eventually(lambda: b"sleep" in command.read_bytes())
    run.signal(signal.SIGKILL)
    eventually(lambda: is_gone(pid), what="the program to die")
