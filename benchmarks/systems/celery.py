"""Celery with Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System, script

PREFETCH: Final = 128


def _commands(load: Load, processes: int) -> Sequence[Command]:
    arguments = ["-A", "benchmarks.apps.celery_app", "worker", "-l", "WARNING"]
    arguments += ["--without-gossip", "--without-mingle"]
    env = {}
    match load:
        case Load.SYNC:
            arguments += ["-P", "threads", "-c", "100"]
        case Load.STEADY:
            arguments += ["-c", "4"]
        case Load.DRAIN:
            arguments += ["-c", str(processes)]
            env["BENCH_PREFETCH"] = str(PREFETCH)
        case _:
            arguments += ["-c", str(processes)]
    return [Command(arguments=script("celery", *arguments), env=env)]


SYSTEM: Final = System(
    name="celery",
    distribution="celery",
    app="celery_app",
    on_redis=True,
    keeps="nothing: there is no result backend by default",
    settings=(
        "`celery worker` on Redis with its prefork pool, without gossip and mingle; "
        "it acknowledges before it runs, as by default. Drains: a prefetch of 128; "
        "sleeps: `-P threads -c 100`; steady load: `-c 4`."
    ),
    sizes=Sizes(drain=4_000, bulk=4_000, sync_sleeps=2_000, memory=(200, 2_000, 2_000)),
    commands=_commands,
    running="LLEN celery; HLEN unacked",
)
