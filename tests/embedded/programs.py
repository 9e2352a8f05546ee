"""Programs with a worker inside, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commands import Process, start_code, worker_environment

HEAD = """
import django
django.setup()
import ctypes, os, sys, threading, time
import django_jobqueue
from tests.sample import jobs
"""


class Program:
    """A process that runs this code, and what it said. One that is forked has no end of
    an interpreter, and starts faster."""

    def __init__(self, code: str, log: Path, *, is_forked: bool) -> None:
        self.log = log
        self.process: Process
        if is_forked:
            self.process = start_code(HEAD + code, log)
            return
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-c", HEAD + code],
                env=worker_environment(),
                stdout=file,
                stderr=file,
            )

    @property
    def output(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def wait(self) -> int:
        return self.process.wait(60)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(20)


Run = Callable[..., Program]


@pytest.fixture
def program(transactional_db: None, tmp_path: Path) -> Iterator[Run]:
    """Run code: ``program("…")``, or ``program("…", is_forked=True)``."""
    made: list[Program] = []

    def run(code: str, *, is_forked: bool = False) -> Program:
        log = tmp_path / f"program-{len(made)}.log"
        made.append(Program(code, log, is_forked=is_forked))
        return made[-1]

    yield run
    for one in made:
        one.close()
