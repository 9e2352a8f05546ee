"""Programs and processes that handlers start, when their worker ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue.models import Worker
from tests.crashes.test_kills import children, kill
from tests.sample import jobs
from tests.sample.jobs import is_running
from tests.sample.programs import (
    count_zombies,
    hang_with_program,
    leave_program,
    orphan,
    programs,
    use_process,
    use_program,
)
from tests.support.commands import worker_environment
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
STOPS = ("--grace", "0.2", "--cancel-grace", "0.2")


def first(journal: str) -> int:
    """The first program, once it runs."""
    return eventually(lambda: programs(journal))[0]


def starts(journal: str) -> list[str]:
    """Whether each attempt was alone."""
    return [words[1] for words in jobs.notes(journal) if words[0] == "start"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
@pytest.mark.parametrize("kind", ["program", "process"])
def test_what_a_killed_handler_started_ends_before_its_next_attempt(
    runworkers: Run, journal: str, kind: str, number: int
) -> None:
    """A worker that is stopped (SIGSTOP) is killed by its supervisor."""
    run = runworkers("--threads", "1")
    (pid,) = run.started()
    if kind == "program":
        use_program.enqueue(journal, 60.0)
    else:
        use_process.enqueue(journal)
    program = first(journal)
    os.kill(pid, number)

    eventually(lambda: len(starts(journal)) == 2)
    assert not is_running(program)
    assert starts(journal) == ["alone", "alone"]


def test_what_a_handler_started_that_does_not_stop_ends_before_its_next_attempt(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", *STOPS)
    run.started()
    hang_with_program.enqueue(journal)
    eventually(lambda: archived(status="failed"))
    assert starts(journal) == ["alone", "alone"]
    eventually(lambda: not any(map(is_running, programs(journal))))


@pytest.mark.parametrize("signals", [1, 2])
def test_what_handlers_started_that_a_stop_cuts_off_ends_with_them(
    runworkers: Run, journal: str, signals: int
) -> None:
    run = runworkers("--threads", "1", *STOPS)
    run.started()
    use_program.enqueue(journal, 60.0)
    program = first(journal)
    for _ in range(signals):
        run.signal(signal.SIGTERM)
        eventually(lambda: "stopping" in run.output)
    run.wait()
    assert not is_running(program)


def test_a_program_in_a_session_of_its_own_lives_on(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1")
    (pid,) = run.started()
    use_program.enqueue(journal, 60.0, start_new_session=True)
    program = first(journal)
    kill(pid)
    eventually(lambda: len(starts(journal)) == 2)
    assert is_running(program)


def test_a_program_that_a_finished_job_left_lives_on_when_its_worker_stops(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1")
    run.started()
    leave_program.enqueue(journal)
    program = first(journal)
    eventually(lambda: archived(status="succeeded"))
    assert run.stop() == 0
    assert is_running(program)


IN_A_CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_the_first_process_of_a_container_reaps_those_without_parents(
    transactional_db: None, tmp_path: Path
) -> None:
    if subprocess.run([*IN_A_CONTAINER, "true"], capture_output=True).returncode:
        pytest.skip("only root may make a namespace of processes")
    with (tmp_path / "log").open("wb") as log:
        run = subprocess.Popen(
            [*IN_A_CONTAINER, sys.executable, "-m", "django", "runworkers"],
            env=worker_environment(),
            stdout=log,
            stderr=log,
        )
    try:
        orphan.enqueue(20)
        eventually(lambda: archived(status="succeeded"))

        def zombies() -> int:
            job = count_zombies.enqueue()
            return eventually(lambda: archived(id=job.id))[0].result

        eventually(lambda: zombies() == 0)
        (supervisor,) = children(run.pid)
        os.kill(supervisor, signal.SIGTERM)
        assert run.wait(40) == 0
    finally:
        run.kill()
        run.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_group_does_not_reach_the_programs_of_handlers(
    runworkers: Run, journal: str, number: int
) -> None:
    """As Ctrl-C in a terminal does: running jobs have their grace."""
    run = runworkers("--threads", "1")
    run.started()
    use_program.enqueue(journal, 2.0)
    first(journal)
    os.killpg(run.process.pid, number)
    assert run.wait() == 0
    assert [job.result for job in archived()] == [0]


def test_a_restart_by_an_operator_lets_programs_end_with_their_jobs(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", "--lease", "2")
    (pid,) = run.started()
    use_program.enqueue(journal, 2.0)
    first(journal)
    Worker.objects.filter(pid=pid).update(desired="restart")
    eventually(lambda: run.workers() not in ([], [pid]))
    eventually(lambda: archived(status="succeeded"))
    assert [job.result for job in archived()] == [0]
