"""What a benchmarked system says about itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from benchmarks.environment import NODE
from benchmarks.processes import Command


class Load(StrEnum):
    """What a worker is started for."""

    DRAIN = "drain"
    CROWDED = "crowded"  # the same, of the default queue alone
    PICKUP = "pickup"
    DEAF = "deaf"  # the same, of a worker that polls and hears no notification
    STEADY = "steady"  # 200 jobs of 5 ms a second
    ASYNC = "async"  # async handlers that sleep
    SYNC = "sync"  # sync handlers that sleep
    CRASH = "crash"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How many jobs a system is given, so that each trial takes some seconds.

    0 where it has no such thing.
    """

    drain: int
    bulk: int
    async_sleeps: int = 0
    sync_sleeps: int = 0
    memory: tuple[int, int, int]  # drained in turn by the same worker
    crowded: int = 0
    crash: int = 0  # jobs that one start of the workers runs at once


@dataclass(frozen=True, kw_only=True)
class System:
    """A job queue under test.

    In the statements ``{n}`` is a number of rows. ``load_future`` enqueues that many
    jobs that are due in a year, ``load_other`` as many into queues that no worker
    serves, ``load_kept`` writes as many finished ones in the form in which they are
    kept, ``churn`` puts as many through their life, by way of a table ``churned`` of
    their ids.
    """

    name: str
    distribution: str  # on PyPI or in the registry of npm
    app: str  # module of ``benchmarks.apps``, or script of ``benchmarks/node``
    is_django: bool = False
    is_node: bool = False
    on_redis: bool = False
    keeps: str  # of finished jobs
    settings: str  # how it was run, for people
    sizes: Sizes
    commands: Callable[[Load, int], Sequence[Command]]  # for a number of processes
    running: str  # counts jobs that are claimed and not recorded as finished
    kept: str = ""  # counts jobs that are kept as finished
    load_future: Sequence[str] = ()
    load_other: Sequence[str] = ()
    load_kept: Sequence[str] = ()
    churn: Sequence[str] = ()
    churn_key: str = "bigint"

    def producer(self, verb: str) -> Sequence[str]:
        """The command that makes its tables (``install``), or ``enqueue``."""
        if self.is_node:
            return node(self.app, verb)
        arguments = [verb] if verb == "install" else []
        return [sys.executable, "-m", "benchmarks.client", self.app, *arguments]


def django(*arguments: str) -> tuple[str, ...]:
    """A management command."""
    return (sys.executable, "-m", "django", *arguments)


def script(name: str, *arguments: str) -> tuple[str, ...]:
    """A console script of this environment."""
    return (str(Path(sys.executable).with_name(name)), *arguments)


def node(script: str, verb: str) -> tuple[str, ...]:
    """A script of those that run on Node."""
    binary = NODE / "node_modules" / "node" / "bin" / "node"
    return (str(binary), str(NODE / f"{script}.mjs"), verb)
