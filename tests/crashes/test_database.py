"""The database goes away under load: nobody exits, and no job is run again for it.

One server and one host serve these tests, and are as before when each has ended; hosts
with other flags serve another queue.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress

import psycopg
import pytest

from tests.crashes.seen import children, ends, is_gone, starts
from tests.sample import jobs
from tests.support.doomed_server import Doomed, doomed_server
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.servers]

WORDS = "abcd"
OTHERS = ("--queues", "others", "--threads", "5", "--lease", "2")
CONSTANTS = {**BRISK, "store.connection.LONGEST_PAUSE": 0.5}


@pytest.fixture(scope="module")
def server() -> Iterator[Doomed]:
    with doomed_server() as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_is_left_to_the_next_test(
    server: Doomed, host: RunWorkers, journal: str
) -> Iterator[None]:
    """Whatever happens in one of them."""
    yield
    for word in WORDS:
        jobs.give_leave(journal, word)
    for run in server.made:
        if run is not host:
            run.close()
    eventually(lambda: is_started(server), what="the server to start again")
    server.query("DELETE FROM jobqueue_queuedjob")
    server.query("DELETE FROM jobqueue_archivedjob")


@pytest.fixture(scope="module")
def host(server: Doomed) -> RunWorkers:
    flags = ("--threads", "4", "--queues", "default", "--lease", "60")
    run = server.runworkers(*flags, constants=CONSTANTS)
    server.started(run)
    use_the_database(server)
    return run


def use_the_database(server: Doomed) -> None:
    for handler in ("see_session", "aquery"):
        server.enqueue(handler)
    eventually(server.is_empty)
    assert set(server.statuses()) == {"succeeded"}


def running(server: Doomed, run: RunWorkers, journal: str, handler: str) -> list[int]:
    """Have one job for each of four threads running; return the host's processes."""
    queue = "others" if "queues: others" in run.output else "default"
    for word in WORDS:
        server.enqueue(handler, journal, word, queue)
    eventually(lambda: len(starts(journal)) == len(WORDS), what=lambda: run.output)
    return children(run.process.pid)


def end_once_each(server: Doomed, run: RunWorkers, journal: str) -> None:
    eventually(server.is_empty, what=lambda: run.output)
    assert starts(journal) == ends(journal) == dict.fromkeys(WORDS, 1)
    assert set(server.statuses()) == {"succeeded"}


def stop_at_once(server: Doomed) -> None:
    server.server.stop("immediate")


def kill_postmaster(server: Doomed) -> None:
    pid = server.server.pid
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: is_gone(pid))


def is_started(server: Doomed) -> bool:
    """Start it, if it is not; after a kill -9 its old processes may still hold its
    memory."""
    try:
        server.query("SELECT 1")
    except psycopg.OperationalError:
        with suppress(subprocess.CalledProcessError):
            server.server.start_again()
        return False
    return True


@pytest.mark.parametrize("bring_down", [stop_at_once, kill_postmaster])
def test_jobs_that_run_across_a_restart_are_not_run_again(
    server: Doomed, host: RunWorkers, journal: str, bring_down: Callable[[Doomed], None]
) -> None:
    """And handlers get new connections afterwards."""
    processes = running(server, host, journal, "await_leave")
    bring_down(server)
    for word in WORDS:
        jobs.give_leave(journal, word)
    eventually(lambda: len(ends(journal)) == len(WORDS))  # they end in the outage
    eventually(lambda: is_started(server), what="the server to start again")

    end_once_each(server, host, journal)
    use_the_database(server)
    assert server.query("SELECT max(attempts) FROM jobqueue_archivedjob") == [(1,)]
    assert children(host.process.pid) == processes  # nobody exited


def terminate_connections(server: Doomed) -> None:
    server.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name LIKE 'jobqueue %'"
    )


def test_terminated_connections_run_no_job_again(
    server: Doomed, host: RunWorkers, journal: str
) -> None:
    words = [f"w{number}" for number in range(30)]
    for word in words:
        server.enqueue("write_slowly", journal, word)
    for _ in range(5):
        seen = sum(starts(journal).values())
        terminate_connections(server)
        eventually(
            lambda seen=seen: sum(starts(journal).values()) > seen or server.is_empty(),
            what=lambda: host.output,
        )
    eventually(server.is_empty, what=lambda: host.output)
    assert starts(journal) == dict.fromkeys(words, 1)
    assert set(server.statuses()) == {"succeeded"}


def test_workers_wait_for_a_read_only_database_to_become_writable(
    server: Doomed, host: RunWorkers, journal: str
) -> None:
    processes = running(server, host, journal, "await_leave")
    make_read_only(server, "on")
    for word in WORDS:
        jobs.give_leave(journal, word)
    # Who is in trouble already does not tell of it again.
    log = server.folder / "pg" / "log"
    eventually(lambda: "in a read-only transaction" in log.read_text())
    make_read_only(server, "off")

    end_once_each(server, host, journal)
    assert children(host.process.pid) == processes


def make_read_only(server: Doomed, read_only: str) -> None:
    server.query(
        f"ALTER DATABASE postgres SET default_transaction_read_only = {read_only}"
    )
    terminate_connections(server)


def test_a_host_that_cannot_renew_kills_its_handlers_before_others_may_start_them(
    server: Doomed, journal: str
) -> None:
    """Also one that holds the interpreter's lock, so that its process hears nothing."""
    run = server.runworkers(*OTHERS, "--cancel-grace", "60", constants=CONSTANTS)
    server.started(run)
    before = running(server, run, journal, "linger")
    server.enqueue("hold_lock_once", journal, queue="others")
    eventually(lambda: starts(journal)["hold"])
    server.server.stop("immediate")
    eventually(lambda: "could not be renewed in time; killing it" in run.output)
    eventually(lambda: set(children(run.process.pid)) - set(before))
    server.server.start_again()

    eventually(server.is_empty, what=lambda: run.output)
    assert starts(journal) == {**dict.fromkeys(WORDS, 2), "hold": 1}
    assert ends(journal) == dict.fromkeys(WORDS, 1)
    ((crashes,),) = server.query("SELECT max(crashes) FROM jobqueue_archivedjob")
    assert crashes <= 1  # by which host it was rescued decides
    assert run.stop() == 0


def test_a_paused_host_changes_nothing_when_it_wakes_up(
    server: Doomed, journal: str
) -> None:
    asleep = server.runworkers(*OTHERS, SAMPLE_HOST="asleep")
    server.started(asleep)
    pids = running(server, asleep, journal, "linger")
    awake = server.runworkers(*OTHERS, "--lease", "6", constants=CONSTANTS)
    server.started(awake)
    for pid in [asleep.process.pid, *pids]:
        os.kill(pid, signal.SIGSTOP)
    eventually(server.is_empty, what=lambda: awake.output)
    for pid in [*pids, asleep.process.pid]:
        os.kill(pid, signal.SIGCONT)

    eventually(lambda: "killing it" in asleep.output)
    server.started(asleep)
    assert starts(journal) == dict.fromkeys(WORDS, 2)
    assert ends(journal) == dict.fromkeys(WORDS, 1)  # the old handlers were killed
    assert set(server.statuses()) == {"succeeded"}


def test_workers_wait_for_a_migration_that_is_missing(
    server: Doomed, journal: str
) -> None:
    server.query("ALTER TABLE jobqueue_worker RENAME TO jobqueue_hidden")
    run = server.runworkers(*OTHERS, constants=CONSTANTS)
    eventually(lambda: "run manage.py migrate" in run.output)
    server.query("ALTER TABLE jobqueue_hidden RENAME TO jobqueue_worker")
    server.enqueue("write", journal, "a", "others")

    eventually(lambda: ends(journal)["a"], what=lambda: run.output)
    assert run.stop() == 0
