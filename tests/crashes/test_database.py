"""The database goes away under load: nobody exits, and no job is run again for it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import psycopg
import pytest

from tests.crashes.test_kills import children, ends, is_gone, starts
from tests.support.doomed_server import Doomed
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

WORDS = "abcd"
SQL = "INSERT INTO jobqueue_queuedjob (job_type) VALUES (%s)"


def running(doomed: Doomed, journal: str, run: RunWorkers, seconds: float) -> list[int]:
    """Have one job for each of four threads running; return the workers' pids."""
    for word in WORDS:
        doomed.enqueue("write", journal, word, seconds)
    eventually(lambda: len(starts(journal)) == len(WORDS), what=run.output)
    return children(run.process.pid)


def kill_postmaster(doomed: Doomed) -> None:
    os.kill(doomed.server.pid, signal.SIGKILL)
    eventually(lambda: is_gone(doomed.server.pid))


@pytest.mark.parametrize(
    "bring_down",
    [
        pytest.param(lambda doomed: doomed.server.stop("immediate"), id="immediate"),
        pytest.param(kill_postmaster, id="kill -9"),
    ],
)
def test_jobs_that_run_across_a_restart_are_not_run_again(
    doomed: Doomed, journal: str, bring_down: Callable[[Doomed], None]
) -> None:
    run = doomed.runworkers("--threads", "4")
    processes = running(doomed, journal, run, 1.0)
    bring_down(doomed)
    eventually(lambda: len(ends(journal)) == len(WORDS))  # they end in the outage
    eventually(lambda: is_started(doomed), what="the server to start again")

    eventually(doomed.is_empty)
    assert doomed.statuses() == ["succeeded"] * len(WORDS)
    assert starts(journal) == dict.fromkeys(WORDS, 1)
    doomed.enqueue("write", journal, "after", 0)
    eventually(lambda: ends(journal)["after"])
    assert children(run.process.pid) == processes  # nobody exited
    assert run.stop() == 0


def is_started(doomed: Doomed) -> bool:
    """Start it; after a kill -9 its old processes may still hold its memory."""
    try:
        doomed.server.start_again()
        doomed.query("SELECT 1")
    except (subprocess.CalledProcessError, psycopg.OperationalError):
        return False
    return True


def test_handlers_get_a_new_connection_after_a_restart(doomed: Doomed) -> None:
    run = doomed.runworkers("--threads", "1")
    for handler in ("see_session", "aquery"):
        doomed.query(SQL, f"tests.sample.{handler}")
    eventually(lambda: len(doomed.statuses()) == 2, what=run.output)
    doomed.server.stop("immediate")
    doomed.server.start_again()
    for handler in ("see_session", "aquery"):
        doomed.query(SQL, f"tests.sample.{handler}")
    eventually(lambda: len(doomed.statuses()) == 4, what=run.output)
    assert doomed.query("SELECT max(attempts) FROM jobqueue_archivedjob") == [(1,)]
    assert doomed.statuses() == ["succeeded"] * 4


def test_terminated_connections_run_no_job_again(doomed: Doomed, journal: str) -> None:
    run = doomed.runworkers("--threads", "4")
    words = [f"w{number}" for number in range(60)]
    for word in words:
        doomed.enqueue("write", journal, word, 0.05)
    for _ in range(8):
        seen = sum(starts(journal).values())
        doomed.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'jobqueue %'"
        )
        eventually(
            lambda seen=seen: sum(starts(journal).values()) > seen or doomed.is_empty(),
            what=run.output,
        )
    eventually(doomed.is_empty)
    assert doomed.statuses() == ["succeeded"] * len(words)
    assert starts(journal) == dict.fromkeys(words, 1)


def test_workers_wait_for_a_read_only_database_to_become_writable(
    doomed: Doomed, journal: str
) -> None:
    run = doomed.runworkers("--threads", "4")
    processes = running(doomed, journal, run, 0.5)
    demote(doomed, "on")
    eventually(lambda: "read-only" in run.output)
    demote(doomed, "off")

    eventually(doomed.is_empty)
    assert doomed.statuses() == ["succeeded"] * len(WORDS)
    assert starts(journal) == dict.fromkeys(WORDS, 1)
    assert children(run.process.pid) == processes


def demote(doomed: Doomed, read_only: str) -> None:
    doomed.query(
        f"ALTER DATABASE postgres SET default_transaction_read_only = {read_only}"
    )
    doomed.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name LIKE 'jobqueue %'"
    )


def test_a_host_that_cannot_renew_kills_its_handlers_before_others_may_start_them(
    doomed: Doomed, journal: str
) -> None:
    run = doomed.runworkers("--threads", "4", "--lease", "2")
    before = running(doomed, journal, run, 60)
    doomed.server.stop("immediate")
    eventually(lambda: "could not be renewed in time" in run.output)
    eventually(lambda: set(children(run.process.pid)) - set(before))
    doomed.server.start_again()

    eventually(lambda: sum(starts(journal).values()) == 2 * len(WORDS))
    ((crashes,),) = doomed.query("SELECT max(crashes) FROM jobqueue_queuedjob")
    assert crashes <= 1  # by which host it was rescued decides


def test_a_paused_host_changes_nothing_when_it_wakes_up(
    doomed: Doomed, journal: str
) -> None:
    asleep = doomed.runworkers("--threads", "4", "--lease", "2", SAMPLE_HOST="asleep")
    pids = running(doomed, journal, asleep, 8.0)
    awake = doomed.runworkers("--threads", "4", "--lease", "2")
    for pid in [asleep.process.pid, *pids]:
        os.kill(pid, signal.SIGSTOP)
    eventually(lambda: sum(starts(journal).values()) == 2 * len(WORDS))
    for pid in [*pids, asleep.process.pid]:
        os.kill(pid, signal.SIGCONT)

    eventually(doomed.is_empty, within=30)
    assert ends(journal) == dict.fromkeys(WORDS, 1)  # the old handlers were killed
    assert doomed.statuses() == ["succeeded"] * len(WORDS)
    assert awake.stop() == 0
    assert "killing it" in asleep.output


def test_workers_wait_for_a_migration_that_is_missing(
    doomed: Doomed, journal: str
) -> None:
    doomed.query("ALTER TABLE jobqueue_worker RENAME TO jobqueue_hidden")
    run = doomed.runworkers("--threads", "1")
    eventually(lambda: "run manage.py migrate" in run.output)
    doomed.query("ALTER TABLE jobqueue_hidden RENAME TO jobqueue_worker")
    doomed.enqueue("write", journal, "a", 0)

    eventually(lambda: ends(journal)["a"])
    assert run.stop() == 0
