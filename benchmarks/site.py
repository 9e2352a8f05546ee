"""Where a run takes place: its server and folder, and the trials that they see."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.enqueuer import Enqueuer
from benchmarks.environment import ROOT
from benchmarks.journal import VARIABLE, Journal
from benchmarks.processes import Command, Failed, Workers, environment
from benchmarks.redis import Redis
from benchmarks.server import Database, Postgres
from benchmarks.systems.base import Load, System

QUICK: Final = 0.05  # of the jobs
FEWEST: Final = 100  # jobs


class Watcher(Protocol):
    """Who looks at the workers of a trial."""

    def watch(self, trial: Trial, workers: Workers) -> None:
        """They were just started."""

    def write(self, trial: Trial) -> None:
        """They are gone; their database is still there."""


@dataclass
class Site:
    """A server and a folder for a run; a scale below 1 makes every trial small.

    ``root`` is the checkout whose code runs, ``prefix`` begins the names of databases,
    where several sites share a server.
    """

    server: Postgres
    folder: Path
    scale: float = 1.0
    watcher: Watcher | None = None
    root: Path = ROOT
    prefix: str = ""
    _templates: set[str] = field(default_factory=set)
    _trials: int = 0

    def jobs(self, wanted: int) -> int:
        """How many jobs to do where this many are wanted."""
        return max(min(wanted, FEWEST), round(wanted * self.scale))

    def seconds(self, wanted: float, *, least: float = 0.0) -> float:
        """How long to look on where so long is wanted."""
        return wanted if self.scale >= 1 else max(least, wanted * sqrt(self.scale))

    def template(
        self, system: System, suffix: str = "", statements: Sequence[str] = ()
    ) -> str:
        """The name of a database with the system's tables, made at first use.

        With statements they are run on a copy; ``suffix`` is to tell it from others.
        """
        name = f"{self.prefix}template_{system.app}{suffix}"
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

    @contextmanager
    def trial(self, system: System, template: str | None = None) -> Iterator[Trial]:
        """A place of its own, which is gone at the end, with all who use it."""
        self._trials += 1
        name = f"{self.prefix}trial_{self._trials}"
        place: Database | Redis = (
            Redis(self.folder / name)
            if system.on_redis
            else Database(self.server, name, template or self.template(system))
        )
        trial = Trial(self, system, name, place)
        try:
            yield trial
        finally:
            trial.close()

    def environment(self, system: System, place: Mapping[str, str]) -> dict[str, str]:
        """What a process of the system finds in its environment."""
        env = environment(PYTHONPATH=str(self.root), BENCH_APP=system.app, **place)
        if system.is_django:
            env["DJANGO_SETTINGS_MODULE"] = "benchmarks.apps.settings"
        return env

    def _install(self, system: System, database: str) -> None:
        subprocess.run(
            system.producer("install"),
            env=self.environment(system, self.server.env(database)),
            cwd=self.folder,
            check=True,
        )


class Trial:
    """One system's jobs, what enqueues them, and the workers that run them."""

    def __init__(
        self, site: Site, system: System, name: str, place: Database | Redis
    ) -> None:
        self.site = site
        self.system = system
        self.place = place
        self.journal = Journal(site.folder / f"{name}.journal")
        self._log = site.folder / f"{name}.log"
        self._env = {
            **site.environment(system, place.env()),
            VARIABLE: str(self.journal.path),
        }
        self._workers: list[Workers] = []

    @property
    def database(self) -> Database:
        """The place of a system that keeps its jobs in PostgreSQL."""
        assert isinstance(self.place, Database)
        return self.place

    def enqueuer(self, **extra: str) -> Enqueuer:
        """A process that enqueues, to be closed."""
        command = self.system.producer("enqueue")
        return Enqueuer(command, {**self._env, **extra}, self._log)

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
        if self.site.watcher is not None:
            self.site.watcher.watch(self, workers)
        return workers

    def call(self, command: Command) -> str:
        """Run a command to its end; returns what it said. Raises Failed."""
        done = subprocess.run(
            command.arguments,
            env={**self._env, **command.env},
            cwd=self.site.folder,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Failed(f"{command.arguments} failed:\n{done.stderr}")
        return done.stdout

    def bare(self, **command: Any) -> dict[str, float]:
        """Run the statements of our worker with nothing around them; see ``bare``."""
        module = (sys.executable, "-m", "benchmarks.bare", json.dumps(command))
        found: dict[str, float] = json.loads(self.call(Command(arguments=module)))
        return found

    def running(self) -> int:
        """How many jobs are claimed and not recorded as finished."""
        return self.place.number(self.system.running)

    def kept(self) -> int | None:
        """How many are kept as finished; None if the system does not tell."""
        return self.place.number(self.system.kept) if self.system.kept else None

    def analyse(self) -> None:
        """Tell the planner, if there is one, what the tables look like now."""
        if isinstance(self.place, Database):
            self.place.connection.execute("VACUUM ANALYZE")

    def close(self) -> None:
        """End everything."""
        for workers in self._workers:
            workers.kill()
        if self.site.watcher is not None:
            self.site.watcher.write(self)
        self.place.close()
        self.journal.path.unlink()
        self._log.unlink(missing_ok=True)
