"""Where a run takes place: its server and folder, and the trials that they see."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.enqueuer import Enqueuer
from benchmarks.journal import VARIABLE, Journal
from benchmarks.processes import Command, Workers, environment
from benchmarks.server import Connection, Postgres
from benchmarks.systems.base import Load, System

QUICK: Final = 0.05  # of the jobs
FEWEST: Final = 100  # jobs


@dataclass
class Site:
    """A server and a folder for a run; a scale below 1 makes every trial small."""

    server: Postgres
    folder: Path
    scale: float = 1.0
    _templates: set[str] = field(default_factory=set)
    _trials: int = 0

    def jobs(self, wanted: int) -> int:
        """How many jobs to do where this many are wanted."""
        return min(wanted, max(FEWEST, round(wanted * self.scale)))

    def seconds(self, wanted: float, *, least: float = 0.0) -> float:
        """How long to look on where so long is wanted."""
        return wanted if self.scale == 1 else max(least, wanted / 5)

    def template(
        self, system: System, suffix: str = "", statements: Sequence[str] = ()
    ) -> str:
        """The name of a database with the system's tables, made at first use.

        With statements they are run on a copy; ``suffix`` is to tell it from others.
        """
        name = f"template_{system.app}{suffix}"
        if name not in self._templates:
            if statements:
                self.server.create(name, self.template(system))
                with self.server.connect(name) as connection:
                    for statement in statements:
                        connection.execute(statement.encode())
                    connection.execute("VACUUM ANALYZE")
            else:
                self.server.create(name)
                self._install(system, name)
            self._templates.add(name)
        return name

    def environment(self, system: System, database: str) -> dict[str, str]:
        """What a process of the system finds in its environment."""
        env = environment(BENCH_APP=system.app, **self.server.env(database))
        if system.is_django:
            env["DJANGO_SETTINGS_MODULE"] = "benchmarks.apps.settings"
        return env

    @contextmanager
    def trial(self, system: System, template: str | None = None) -> Iterator[Trial]:
        """A fresh database, which is dropped at the end, with all who use it."""
        self._trials += 1
        name = f"trial_{self._trials}"
        self.server.create(name, template or self.template(system))
        trial = Trial(self, system, name)
        try:
            yield trial
        finally:
            trial.close()
            self.server.drop(name)

    def _install(self, system: System, database: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "benchmarks.client", system.app, "install"],
            env=self.environment(system, database),
            cwd=self.folder,
            check=True,
        )


class Trial:
    """One database of one system, what enqueues there, and the workers there."""

    def __init__(self, site: Site, system: System, database: str) -> None:
        self.site = site
        self.system = system
        self.database = database
        self.journal = Journal(site.folder / f"{database}.journal")
        self.connection: Connection = site.server.connect(database)
        self._log = site.folder / f"{database}.log"
        self._env = {
            **site.environment(system, database),
            VARIABLE: str(self.journal.path),
        }
        self._workers: list[Workers] = []

    def enqueuer(self) -> Enqueuer:
        """A process that enqueues, to be closed."""
        return Enqueuer(self.system.app, self._env, self._log)

    def fill(
        self, jobs: int, *, first: int = 0, ms: int = 0, is_async: bool = False
    ) -> None:
        """Enqueue this many jobs."""
        with self.enqueuer() as enqueuer:
            enqueuer.many(jobs, first=first, ms=ms, is_async=is_async)

    def start(self, load: Load, processes: int = 1) -> Workers:
        """Start workers; they are ended at the latest when the trial is over."""
        return self.run(*self.system.commands(load, processes))

    def run(self, *commands: Command) -> Workers:
        """Start these commands in the environment of a worker."""
        workers = Workers(commands, self._env, self._log)
        self._workers.append(workers)
        return workers

    def number(self, statement: str) -> int:
        """What a query counts."""
        row: Any = self.connection.execute(statement.encode()).fetchone()
        return int(row[0])

    def analyse(self) -> None:
        """Tell the planner what the tables look like now."""
        self.connection.execute("VACUUM ANALYZE")

    def close(self) -> None:
        """End everything."""
        for workers in self._workers:
            workers.kill()
        self.connection.close()
        self.journal.path.unlink()
        self._log.unlink(missing_ok=True)
