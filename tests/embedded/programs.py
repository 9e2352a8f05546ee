"""Programs with a worker inside, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commands import worker_environment

HEAD = """
import django
django.setup()
import ctypes, os, sys, threading, time
import django_jobqueue
from tests.sample import jobs
"""


class Program:
    """A process that runs this code, and what it said."""

    def __init__(self, code: str, log: Path) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-c", HEAD + code],
                env=worker_environment(),
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
            )

    @property
    def output(self) -> str:
        """Everything that it wrote."""
        return self.log.read_text()

    def wait(self) -> int:
        """Wait for its end; return the exit code."""
        return self.process.wait(40)

    def close(self) -> None:
        """End it in any case."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()


Run = Callable[[str], Program]


@pytest.fixture
def program(transactional_db: None, tmp_path: Path) -> Iterator[Run]:
    """Run code: ``program("…")``."""
    made: list[Program] = []

    def run(code: str) -> Program:
        made.append(Program(code, tmp_path / f"program-{len(made)}.log"))
        return made[-1]

    yield run
    for one in made:
        one.close()
