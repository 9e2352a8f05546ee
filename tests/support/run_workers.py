"""A real ``runworkers``, and what it said."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection

from tests.support.commands import kill_all, start_command
from tests.support.waiting import eventually


class RunWorkers:
    """A supervisor and its workers, in processes of their own."""

    def __init__(
        self, log: Path, *flags: str, within: tuple[str, ...] = (), **env: str
    ) -> None:
        self.log = log
        log.touch()
        self.process = start_command(
            "runworkers", *flags, output=log, within=within, **env
        )

    @property
    def output(self) -> str:
        """Everything that it wrote."""
        return self.log.read_text()

    def workers(self) -> list[int]:
        """Process ids of its living workers, as the database knows them."""
        name = f":{self.process.pid}"
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pid FROM jobqueue_worker WHERE state = 'running' "
                "AND right(supervisor, length(%s)) = %s ORDER BY id",
                [name, name],
            )
            return [pid for (pid,) in cursor.fetchall()]

    def started(self, count: int = 1) -> list[int]:
        """Wait until this many workers are there; return their process ids."""
        pids: list[int] = eventually(
            lambda: (pids := self.workers())[: len(pids) if len(pids) >= count else 0],
            what=lambda: f"workers to start:\n{self.output}",
        )
        return pids

    def signal(self, number: int) -> None:
        """Send a signal to the supervisor."""
        os.kill(self.process.pid, number)

    def wait(self, within: float = 40.0) -> int:
        """Wait for its end; return the exit code."""
        return self.process.wait(within)

    def stop(self) -> int:
        """Stop it in good order."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def close(self) -> None:
        """End it in any case, and whatever it and its handlers started."""
        eventually(lambda: not kill_all(self.log), what="processes to die")
        self.process.wait(20)


@pytest.fixture
def runworkers(
    transactional_db: None, tmp_path: Path
) -> Iterator[Callable[..., RunWorkers]]:
    """Start real workers: ``runworkers("--threads", "2")``; ``within`` is a command
    that starts others."""
    made: list[RunWorkers] = []

    def start(*flags: str, within: tuple[str, ...] = (), **env: str) -> RunWorkers:
        log = tmp_path / f"runworkers-{len(made)}.log"
        made.append(RunWorkers(log, *flags, within=within, **env))
        return made[-1]

    yield start
    for one in made:
        one.close()
