"""Dramatiq with Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System, script

THREADS: Final = 8  # its default


def _commands(load: Load, processes: int) -> Sequence[Command]:
    threads = 100 if load is Load.SYNC else THREADS
    flags = ("-p", str(processes), "-t", str(threads))
    return [
        Command(arguments=script("dramatiq", "benchmarks.apps.dramatiq_app", *flags))
    ]


SYSTEM: Final = System(
    name="dramatiq",
    distribution="dramatiq",
    app="dramatiq_app",
    on_redis=True,
    keeps="nothing: there is no result backend by default",
    settings=(
        "`dramatiq` on Redis with its default middleware and 8 threads per process; "
        "100 for sleeps."
    ),
    sizes=Sizes(
        drain=10_000, bulk=10_000, sync_sleeps=2_000, memory=(500, 5_000, 5_000)
    ),
    commands=_commands,
    running="HLEN dramatiq:default.msgs",
)
