"""A real ``runworkers``, and what it said."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from django.db import connection

from tests.support.commands import kill_all, start_command
from tests.support.waiting import eventually

# Everybody looks around more often, and gives up sooner what stands still.
BRISK: Final[Mapping[str, float]] = {
    "host.maintenance.renewer.CHECK_EVERY": 0.05,
    "host.process_health.CHECK_EVERY": 0.05,
    "host.process_health.PAUSED_TOO_LONG": 0.2,
    "host.restarts.LONGEST_PAUSE": 0.05,
    "host.supervisor.CHECK_EVERY": 0.05,
    "workers.watchdog.CHECK_EVERY": 0.05,
    "workers.worker_main.BEAT": 0.05,
    "workers.worker_main.IDLE_BEAT": 0.05,
}


class RunWorkers:
    """A supervisor and its workers, in processes of their own."""

    def __init__(
        self,
        log: Path,
        *flags: str,
        within: tuple[str, ...] = (),
        constants: Mapping[str, float] | None = None,
        **env: str,
    ) -> None:
        self.log = log
        log.touch()
        if constants:
            env["SAMPLE_CONSTANTS"] = json.dumps(constants)
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
    that starts others, ``constants`` are other values than those of the package:
    ``{"host.process_health.PAUSED_TOO_LONG": 0.2}``."""
    made: list[RunWorkers] = []

    def start(*flags: str, **options: Any) -> RunWorkers:
        log = tmp_path / f"runworkers-{len(made)}.log"
        made.append(RunWorkers(log, *flags, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()
