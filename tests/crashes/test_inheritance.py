"""What processes of runworkers have of the one that forked them, row by row of a table
in the architecture page: all of it in one host, but for connections."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from django_jobqueue.contrib.leases.models import Lease
from tests.docs.pages import pages
from tests.sample import inherited
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.undone import check_each
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Start = Callable[..., RunWorkers]


def begin(start: Start, folder: Path, names: str, **env: Any) -> RunWorkers:
    """Start a host whose project does these things before the forks."""
    run = start(
        *("--processes", "2", "--threads", "2"),
        SAMPLE_INHERITED=names,
        SAMPLE_JOURNAL=str(folder / "inherited"),
        **env,
    )
    run.started(2)
    return run


def noted(folder: Path) -> Counter[tuple[int, str]]:
    lines = (folder / "inherited").read_text().splitlines()
    return Counter((int(pid), words) for pid, words in (x.split(" ", 1) for x in lines))


def results(run: RunWorkers) -> dict[str, list[Any]]:
    """What the handlers returned, once all jobs are over."""
    eventually(lambda: not queued(), within=60, what=lambda: run.output)
    found: dict[str, list[Any]] = {}
    for job in archived():
        assert (job.status, job.error_message) == ("succeeded", "")
        found.setdefault(job.job_type_id.rpartition(".")[2], []).append(job.result)
    return found


POOL = pytest.param({"JOBQUEUE_POOL": "1"}, id="pool")
CONNECTIONS = [
    "connections of Django, and its pools",
    "asgiref's thread for async code",
]


@pytest.mark.parametrize(
    "env",
    [pytest.param({}, id="", marks=pytest.mark.slow("with a pool, too")), POOL],
)
def test_each_process_gets_the_answers_to_its_own_queries(
    runworkers: Start, tmp_path: Path, env: dict[str, str]
) -> None:
    """Also those that are forked later, and the one that forks them. Async code in sync
    handlers finds the thread that it needs."""
    names = "query query_in_a_thread query_in_the_log run_async_code"
    run = begin(runworkers, tmp_path, names, **env)

    def enqueue() -> None:
        inherited.ask.enqueue_many([{"count": 200}] * 8)
        inherited.ask_async.enqueue_many([{}] * 4)

    enqueue()
    results(run)
    victim = run.workers()[0]
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: victim not in run.workers())
    run.started(2)
    enqueue()
    right = {"ask": [{"wrong": 0}] * 16, "ask_async": [0] * 8}
    assert results(run) == right
    assert run.stop() == 0
    words = {words for _pid, words in noted(tmp_path)}
    assert words == {"thread right", "log right"}


BEFORE_THE_FORK = """
query query_in_a_thread run_async_code set_context use_a_cache announce hold_a_lease
hold_locks change_signals change_process open_a_file print_without_a_line_end
"""


class Host:
    """One that was stopped in good order; what it and its handlers wrote."""

    def __init__(self, run: RunWorkers, folder: Path) -> None:
        self.results = results(run)
        self.processes: list[Any] = self.results["see_process"]
        self.journal = folder / "inherited"
        before = Lease.objects.get(name="inherited")
        renewed = Lease.objects.filter(renewed_at__gt=before.renewed_at, fence=1)
        eventually(renewed.exists)
        assert run.stop() == 0, run.output
        self.pid, self.output = run.process.pid, run.output
        self.noted = noted(folder)

    def of_supervisor(self, word: str) -> dict[str, int]:
        """What it noted that begins so; nobody else did."""
        found = {key: n for key, n in self.noted.items() if key[1].startswith(word)}
        assert {pid for pid, _ in found} == {self.pid}
        return {words: n for (_, words), n in found.items()}


def check_contexts(host: Host) -> None:
    assert host.results["see_context"] == [["", "en-us", "UTC"]] * 4


def check_caches(host: Host) -> None:
    assert host.of_supervisor("cache").keys() == {"cache set", "cache closed"}


def check_signals_of_ours(host: Host) -> None:
    """Those that the supervisor was about to send are not sent by others."""
    sent = {k: n for k, n in host.noted.items() if k[1].startswith("sent")}
    by_workers = Counter(words for pid, words in sent if pid != host.pid)
    assert by_workers == {f"sent {job.id}": 1 for job in archived()}
    assert set(sent.values()) == {1}


def check_locks(host: Host) -> None:
    assert all("busy" not in process["threads"] for process in host.processes)


def check_leases(host: Host) -> None:
    lost = "it belongs to the process that this one was forked from"
    assert host.results["see_lease"] == [[lost, "None"]] * 4


def check_handlers_of_signals(host: Host) -> None:
    ours = "_leave_it_to_the_supervisor"
    assert host.processes[0]["signals"] == {
        "SIGUSR1": "<lambda>",
        "SIGTERM": ours,
        "SIGINT": ours,
        "SIGHUP": ours,
        "SIGCHLD": "0",  # SIG_DFL
    }


def check_what_belongs_to_a_process(host: Host) -> None:
    process = host.processes[0]
    found = [process[name] for name in ("umask", "folder", "environment")]
    assert found == [0o027, tempfile.gettempdir(), "yes"]
    assert host.of_supervisor("atexit") == {"atexit": 1}


def check_randomness(host: Host) -> None:
    last = {process["pid"]: process for process in host.processes}
    # Not only the moments differ, but also what is drawn.
    drawn = [id[-12:] for process in last.values() for id in process["ids"]]
    assert len(set(drawn)) == len(drawn)
    assert len(last) > 1
    assert len({process["random"] for process in last.values()}) == len(last)


def check_sessions(host: Host) -> None:
    for process in host.processes:
        assert process["session"] == process["group"] == process["pid"]
        assert process["supervisor"] == host.pid


def check_files(host: Host) -> None:
    (program,) = host.results["see_program"]
    assert str(host.journal) in host.processes[0]["open"]
    assert [line.split()[-1].startswith("/proc/") for line in program] == [True]


def check_output(host: Host) -> None:
    words = ("said before", "kept back", "word 0", "word 1", "word 2")
    counts = {word: host.output.count(f"{word}; ") for word in words}
    assert counts == dict.fromkeys(words, 1)


ROWS: dict[str, Callable[[Host], None]] = {
    "context variables, language, time zone": check_contexts,
    "clients of Django's caches": check_caches,
    "our signals that wait for their receivers": check_signals_of_ours,
    "locks that another thread holds": check_locks,
    "leases by name": check_leases,
    "handlers of signals": check_handlers_of_signals,
    "folder, environment, umask": check_what_belongs_to_a_process,
    "`random`, ids": check_randomness,
    "session, process group": check_sessions,
    "open files": check_files,
    "buffered output and log records": check_output,
}


def test_a_worker_has_of_its_supervisor_what_the_page_says(
    runworkers: Start, tmp_path: Path
) -> None:
    page = pages()["docs/explanation/architecture.md"]
    section = page.partition("### What a fork inherits")[2]
    table = section[section.index("\n|") :].partition("\n\n")[0]
    found = re.findall(r"^\| (.+?) \|", table, re.M)[2:]
    assert sorted(found) == sorted([*CONNECTIONS, *ROWS])

    # Executed, since a fork of the tests' own has no atexit functions, nor such output.
    executed = {"within": ("env",), "PYTHONUNBUFFERED": ""}
    run = begin(runworkers, tmp_path, BEFORE_THE_FORK, **executed)

    def both_have_run() -> bool:
        inherited.see_process.enqueue_many([{}] * 4)
        return len({process["pid"] for process in results(run)["see_process"]}) == 2

    eventually(both_have_run)
    inherited.see_context.enqueue_many([{}] * 4)
    inherited.see_lease.enqueue_many([{}] * 4)
    inherited.say.enqueue_many({"word": f"word {n}"} for n in range(3))
    inherited.see_program.enqueue()
    host = Host(run, tmp_path)
    check_each(lambda title: ROWS[title](host), [(title,) for title in ROWS])
