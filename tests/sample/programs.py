"""Handlers that start programs, and fork."""

from __future__ import annotations

import contextlib
import multiprocessing
import subprocess
import time
from pathlib import Path
from typing import Any

from django_jobqueue import job
from tests.sample.jobs import is_running, note, notes


def programs(journal: str) -> list[int]:
    return [int(words[1]) for words in notes(journal) if words[0] == "program"]


@job(timeout=60, backoff="immediate", max_attempts=3)
def use_program(journal: str, seconds: float, **options: Any) -> int:
    beside = [pid for pid in programs(journal) if is_running(pid)]
    note(journal, "start", "beside" if beside else "alone")
    program = subprocess.Popen(["sleep", str(seconds)], **options)
    note(journal, "program", program.pid)
    return program.wait()


@job(timeout=0.5, backoff="immediate", max_attempts=2)
def hang_with_program(journal: str) -> None:
    beside = [pid for pid in programs(journal) if is_running(pid)]
    note(journal, "start", "beside" if beside else "alone")
    note(journal, "program", subprocess.Popen(["sleep", "600"]).pid)
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(0.05)


@job
def leave_program(journal: str) -> None:
    program = subprocess.Popen(["sleep", "600"], start_new_session=False)
    note(journal, "program", program.pid)
    program.returncode = 0  # nobody is to complain that it still runs


@job
def orphan(count: int) -> None:
    for _ in range(count):
        subprocess.run(["sh", "-c", "sleep 0.1 &"], check=True)


@job
def count_zombies() -> int:
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            states.append(path.read_text().rsplit(")", 1)[1].split()[0])
    return states.count("Z")


@job(backoff="immediate")
def use_process(journal: str) -> None:
    """Have a process made by a fork work, and wait for it."""
    beside = [pid for pid in programs(journal) if is_running(pid)]
    note(journal, "start", "beside" if beside else "alone")
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=[60])
    process.start()
    note(journal, "program", process.pid)
    process.join()
