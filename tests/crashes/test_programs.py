"""Programs and processes that handlers start, when their worker ends. What a signal to
the whole group does to them is in ``test_stopping.py``."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import pytest

from django_jobqueue import operations
from django_jobqueue.models import Worker
from tests.crashes.seen import children, is_gone, kill
from tests.crashes.seen import starts as words_started
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
from tests.support.rows import archived
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
STOPS = ("--grace", "0.1", "--cancel-grace", "0.1")
QUICK = {**BRISK, "processes.shutdown.WORKER_QUITS": 0.3}


def first(journal: str) -> int:
    return eventually(lambda: programs(journal))[0]


def starts(journal: str) -> list[str]:
    return [words[1] for words in jobs.notes(journal) if words[0] == "start"]


@pytest.mark.parametrize(
    ("kind", "number"),
    some_slow(
        [("program", signal.SIGKILL), ("process", signal.SIGSTOP)],
        [("process", signal.SIGSTOP)],
    ),
)
def test_what_a_killed_handler_started_ends_before_its_next_attempt(
    runworkers: Run, journal: str, kind: str, number: int
) -> None:
    """A worker that is stopped (SIGSTOP) is killed by its supervisor."""
    run = runworkers("--threads", "1", constants=QUICK)
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
    run = runworkers("--threads", "1", *STOPS, constants=QUICK)
    run.started()
    hang_with_program.using(timeout=0.2).enqueue(journal)
    eventually(lambda: archived(status="failed"))
    assert starts(journal) == ["alone", "alone"]
    eventually(lambda: not any(map(is_running, programs(journal))))


def test_what_handlers_started_that_a_stop_cuts_off_ends_with_them(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", *STOPS, constants=QUICK)
    run.started()
    use_program.enqueue(journal, 60.0)
    program = first(journal)
    run.signal(signal.SIGTERM)
    run.wait()
    assert not is_running(program)


def test_a_program_lives_on_in_a_session_of_its_own_or_when_its_job_has_finished(
    runworkers: Run, journal: str
) -> None:
    """The one when its worker is killed, the other when it stops."""
    run = runworkers("--threads", "1")
    (pid,) = run.started()
    use_program.enqueue(journal, 60.0, start_new_session=True)
    program = first(journal)
    kill(pid)
    eventually(lambda: len(programs(journal)) == 2)
    assert is_running(program)
    os.kill(programs(journal)[1], signal.SIGKILL)

    leave_program.enqueue(journal)
    eventually(lambda: archived(job_type=leave_program.name))
    assert run.stop() == 0
    assert is_running(programs(journal)[2])


CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_the_first_process_of_a_container_reaps_those_without_parents(
    runworkers: Run,
) -> None:
    if subprocess.run([*CONTAINER, "true"], capture_output=True).returncode:
        pytest.skip("needs the right to make a namespace of processes")
    run = runworkers("--threads", "1", within=CONTAINER)
    orphan.enqueue(5)
    eventually(lambda: archived(status="succeeded"), within=60)

    def zombies() -> int:
        job = count_zombies.enqueue()
        return eventually(lambda: archived(id=job.id))[0].result

    eventually(lambda: zombies() == 0)
    (supervisor,) = children(run.process.pid)
    os.kill(supervisor, signal.SIGTERM)
    assert run.wait() == 0


def test_a_restart_by_an_operator_lets_programs_end_with_their_jobs(
    runworkers: Run, journal: str
) -> None:
    run = runworkers("--threads", "1", constants=BRISK)
    (pid,) = run.started()
    use_program.enqueue(journal, 60.0)
    program = first(journal)
    operations.ask_workers([Worker.objects.get(pid=pid).id], "restart")
    eventually(lambda: run.workers() not in ([], [pid]))
    jobs.write.enqueue(journal, "by the successor")
    eventually(lambda: words_started(journal)["by"])
    os.kill(program, signal.SIGUSR1)  # nothing else has ended it
    eventually(lambda: archived(job_type=use_program.name))
    assert archived(job_type=use_program.name)[0].result == -signal.SIGUSR1
    eventually(lambda: is_gone(pid))
