"""What a benchmarked system says about itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from benchmarks.processes import Command


class Load(StrEnum):
    """What a worker is started for."""

    DRAIN = "drain"
    PICKUP = "pickup"
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
    async_sleeps: int
    sync_sleeps: int
    memory: tuple[int, int, int]  # drained in turn by the same worker
    crowded: int
    crash: int  # jobs that one start of the workers runs at once


@dataclass(frozen=True, kw_only=True)
class System:
    """A job queue under test.

    In the statements ``{n}`` is a number of rows. ``load_future`` enqueues that many
    jobs that are due in a year, ``load_kept`` writes as many finished ones in the form
    in which they are kept, ``churn`` puts as many through their life, by way of a
    table ``churned`` of their ids.
    """

    name: str
    distribution: str  # on PyPI
    app: str  # module of ``benchmarks.apps`` with its handlers and producers
    is_django: bool
    keeps: str  # of finished jobs
    settings: str  # how it was run, for people
    sizes: Sizes
    commands: Callable[[Load, int], Sequence[Command]]  # for a number of processes
    running: str  # counts jobs that are claimed and not recorded as finished
    kept: str  # counts jobs that are kept as finished
    load_future: Sequence[str] = ()
    load_kept: Sequence[str] = ()
    churn: Sequence[str] = ()
    churn_key: str = "bigint"


def django(*arguments: str) -> tuple[str, ...]:
    """A management command."""
    return (sys.executable, "-m", "django", *arguments)


def script(name: str, *arguments: str) -> tuple[str, ...]:
    """A console script of this environment."""
    return (str(Path(sys.executable).with_name(name)), *arguments)
