"""What processes of runworkers have of the one that forked them, row by row of a table
in the architecture page."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from django_jobqueue.models import Lease
from tests.docs.pages import pages
from tests.sample import inherited
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Test = TypeVar("Test")


class Trial:
    """A runworkers whose project did something before the forks."""

    def __init__(self, start: Callable[..., RunWorkers], folder: Path) -> None:
        self._start = start
        self._journal = folder / "inherited"
        self._journal.touch()
        self.run: RunWorkers

    def begin(self, name: str, *flags: str, **env: str) -> list[int]:
        """Start it; returns the process ids of its workers."""
        self.run = self._start(
            *("--processes", "2", "--threads", "2", *flags),
            SAMPLE_INHERITED=name,
            SAMPLE_JOURNAL=str(self._journal),
            **env,
        )
        return self.run.started(2)

    def results(self, count: int) -> list[Any]:
        """What the handlers returned."""
        jobs = eventually(
            lambda: (found := archived())[: len(found) if len(found) >= count else 0],
            within=60,
            what=f"jobs to end:\n{self.run.output}",
        )
        assert {(job.status, job.error_message) for job in jobs} == {("succeeded", "")}
        return [job.result for job in jobs]

    def noted(self) -> Counter[tuple[int, str]]:
        """How often each process noted what."""
        lines = [line.split(" ", 1) for line in self._journal.read_text().splitlines()]
        return Counter((int(pid), words) for pid, words in lines)

    def words(self) -> set[str]:
        """What was noted."""
        return {words for _pid, words in self.noted()}

    def stop(self) -> None:
        """End it, in good order."""
        assert self.run.stop() == 0, self.run.output


@pytest.fixture
def trial(runworkers: Callable[..., RunWorkers], tmp_path: Path) -> Trial:
    """A runworkers that is about to start."""
    return Trial(runworkers, tmp_path)


rows: list[str] = []


def row(title: str) -> Callable[[Test], Test]:
    """The test of the row that begins with this."""
    rows.append(title)
    return lambda test: test


POOLS = pytest.mark.parametrize("env", [{}, {"JOBQUEUE_POOL": "1"}], ids=["", "pool"])
CONNECTIONS = pytest.mark.parametrize(
    "name", ["query", "query_in_a_thread", "query_in_the_log"]
)


@row("connections of Django, and its pools")
@POOLS
@CONNECTIONS
def test_each_process_gets_the_answers_to_its_own_queries(
    trial: Trial, name: str, env: dict[str, str]
) -> None:
    """Also those that are forked later, and the one that forks them."""
    pids = trial.begin(name, "--processes", "3", **env)
    inherited.ask.enqueue_many([{"count": 200} for _ in range(12)])
    assert trial.results(12) == [{"wrong": 0}] * 12
    for pid in pids[:2]:
        os.kill(pid, signal.SIGKILL)
        eventually(lambda pid=pid: pid not in trial.run.workers())
    trial.run.started(3)
    inherited.ask.enqueue_many([{"count": 200} for _ in range(12)])
    assert trial.results(24) == [{"wrong": 0}] * 24
    trial.stop()
    assert {words.split()[-1] for words in trial.words()} <= {"right"}


@row("asgiref's thread for async code")
@POOLS
def test_async_code_in_sync_handlers_finds_the_thread_that_it_needs(
    trial: Trial, env: dict[str, str]
) -> None:
    trial.begin("run_async_code", **env)
    inherited.ask_async.enqueue_many([{}] * 4)
    assert trial.results(4) == [0] * 4
    trial.stop()


@row("context variables, language, time zone")
def test_handlers_begin_with_a_context_of_their_own(trial: Trial) -> None:
    trial.begin("set_context")
    inherited.see_context.enqueue_many([{}] * 4)
    assert trial.results(4) == [["", "en-us", "UTC"]] * 4
    trial.stop()


@row("clients of Django's caches")
def test_clients_of_caches_are_closed_before_the_fork(trial: Trial) -> None:
    trial.begin("use_a_cache")
    trial.stop()
    supervisor = trial.run.process.pid
    assert set(trial.noted()) == {
        (supervisor, "cache set"),
        (supervisor, "cache closed"),
    }


@row("signals of ours that wait for their receivers")
def test_signals_that_the_supervisor_was_about_to_send_are_not_sent_by_others(
    trial: Trial,
) -> None:
    trial.begin("announce", "--threads", "1")
    done = [str(inherited.see_context.enqueue().id) for _ in range(4)]
    trial.results(4)
    trial.stop()
    by_workers = Counter(
        words for pid, words in trial.noted().elements() if pid != trial.run.process.pid
    )
    assert by_workers == dict.fromkeys((f"sent {id}" for id in done), 1)


@row("locks that another thread holds")
def test_locks_that_a_thread_held_are_free(trial: Trial) -> None:
    """A thread that holds the locks of ids and of the logging again and again."""
    trial.begin("hold_locks")
    inherited.see_process.enqueue_many([{}] * 4)
    threads = [result["threads"] for result in trial.results(4)]
    assert all("busy" not in names for names in threads)
    trial.stop()


@row("leases by name")
def test_a_lease_of_the_supervisor_stays_its_own(trial: Trial) -> None:
    trial.begin("hold_a_lease")
    inherited.see_lease.enqueue_many([{}] * 4)
    lost = "it belongs to the process that this one was forked from"
    assert trial.results(4) == [[lost, "None"]] * 4
    before = Lease.objects.get(name="inherited")
    eventually(
        lambda: Lease.objects.filter(renewed_at__gt=before.renewed_at, fence=1).exists()
    )
    trial.stop()


@row("handlers of signals")
def test_signals_are_handled_by_the_supervisor_or_as_the_project_wants(
    trial: Trial,
) -> None:
    trial.begin("change_signals")
    inherited.see_process.enqueue()
    (result,) = trial.results(1)
    ours = "_leave_it_to_the_supervisor"
    assert result["signals"] == {
        "SIGUSR1": "<lambda>",
        "SIGTERM": ours,
        "SIGINT": ours,
        "SIGHUP": ours,
        "SIGCHLD": "0",  # SIG_DFL
    }
    trial.stop()


@row("folder, environment, umask")
def test_a_worker_has_folder_environment_and_umask_of_the_supervisor(
    trial: Trial,
) -> None:
    trial.begin("change_process")
    inherited.see_process.enqueue()
    (result,) = trial.results(1)
    assert result["umask"] == 0o027
    assert result["folder"] == tempfile.gettempdir()
    assert result["environment"] == "yes"
    trial.stop()
    assert trial.noted() == {(trial.run.process.pid, "atexit"): 1}


@row("`random`, ids")
def test_each_process_makes_ids_and_random_numbers_of_its_own(trial: Trial) -> None:
    trial.begin("hold_locks")
    inherited.see_process.enqueue_many([{}] * 8)
    results = {result["pid"]: result for result in trial.results(8)}
    ids = [id for result in results.values() for id in result["ids"]]
    assert len(set(ids)) == len(ids)
    assert len({result["random"] for result in results.values()}) == len(results)
    trial.stop()


@row("session, process group")
def test_a_worker_is_in_a_session_of_its_own(trial: Trial) -> None:
    trial.begin("query")
    inherited.see_process.enqueue()
    (result,) = trial.results(1)
    assert result["session"] == result["group"] == result["pid"]
    assert result["supervisor"] == trial.run.process.pid
    trial.stop()


@row("open files")
def test_files_of_the_project_are_open_in_workers_and_not_in_programs(
    trial: Trial, tmp_path: Path
) -> None:
    trial.begin("open_a_file")
    inherited.see_process.enqueue()
    inherited.see_program.enqueue()
    results = trial.results(2)
    (program,) = (result for result in results if isinstance(result, list))
    (worker,) = (result for result in results if isinstance(result, dict))
    assert str(tmp_path / "inherited") in worker["open"]
    assert [line.split()[-1].startswith("/proc/") for line in program] == [True]
    trial.stop()


@row("what was printed, and what a log handler keeps back")
def test_what_was_printed_or_logged_appears_once(trial: Trial) -> None:
    trial.begin("print_without_a_line_end", PYTHONUNBUFFERED="")
    for number in range(3):
        inherited.say.enqueue(f"word {number}")
    trial.results(3)
    trial.stop()
    words = ("said before", "kept back", *(f"word {number}" for number in range(3)))
    assert {
        word: trial.run.output.count(f"{word}; ") for word in words
    } == dict.fromkeys(words, 1)


def test_the_page_has_each_of_these_rows() -> None:
    page = pages()["docs/explanation/architecture.md"]
    table = page.partition("### What a fork inherits")[2].partition("\n\nThreads")[0]
    found = re.findall(r"^\| (.+?) \|", table, re.M)[2:]
    assert sorted(found) == sorted(rows)
