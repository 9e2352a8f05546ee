"""graphile-worker, with and without its batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System, node

# Those of its own performance tests.
BATCHES: Final = {
    "concurrentJobs": 24,
    "localQueue": {"size": 500, "refetchDelay": {"durationMs": 10}},
    "completeJobBatchDelay": 0,
    "failJobBatchDelay": 0,
}
OPTIONS: Final[Mapping[Load, Mapping[str, Any]]] = {
    Load.DRAIN: {"worker": BATCHES, "poolSize": 25},
    Load.CROWDED: {"worker": BATCHES, "poolSize": 25},
    Load.ASYNC: {
        "worker": {
            **BATCHES,
            "concurrentJobs": 1_000,
            "localQueue": {"size": 1_001},
        },
        "poolSize": 25,
    },
    Load.STEADY: {"worker": {"concurrentJobs": 10}, "poolSize": 11},
    Load.CRASH: {"worker": {"concurrentJobs": 20}, "poolSize": 21},
}
PLAIN: Final = {"worker": {"concurrentJobs": 24}, "poolSize": 25}
KNOWN: Final = """
INSERT INTO graphile_worker._private_tasks (identifier) VALUES ('%s')
    ON CONFLICT DO NOTHING
"""
INSERT: Final = """
INSERT INTO graphile_worker._private_jobs (task_id, payload, run_at)
SELECT id, '{{"number": 1, "ms": 0}}', %s
  FROM graphile_worker._private_tasks, generate_series(1, {n})
 WHERE identifier = '%s'
"""


def _command(options: Mapping[str, Any]) -> Command:
    env = {"BENCH_OPTIONS": json.dumps(options)}
    return Command(arguments=node("graphile_worker", "work"), env=env)


def _commands(load: Load, processes: int) -> Sequence[Command]:
    return [_command(OPTIONS.get(load, {}))] * processes


def _plain_commands(load: Load, processes: int) -> Sequence[Command]:
    return [_command(PLAIN)] * processes


SYSTEM: Final = System(
    name="graphile-worker",
    distribution="graphile-worker",
    app="graphile_worker",
    is_node=True,
    keeps="nothing: finished jobs are deleted",
    settings=(
        "A library, with the settings of its own performance tests for drains: 24 "
        "jobs at once, a local queue of 500, completions in batches "
        "(`graphile-worker, one by one` is without the latter two, as by default). "
        "1,000 at once for sleeps, 10 for the steady load, 20 for the crash."
    ),
    sizes=Sizes(
        drain=50_000,
        bulk=100_000,
        async_sleeps=5_000,
        memory=(2_000, 100_000, 100_000),
        crowded=150_000,
        crash=20,
    ),
    commands=_commands,
    running=(
        "SELECT count(*) FROM graphile_worker._private_jobs WHERE locked_at IS NOT NULL"
    ),
    load_future=(KNOWN % "work", INSERT % ("now() + interval '1 year'", "work")),
    load_other=(KNOWN % "other", INSERT % ("now()", "other")),
    churn=(
        KNOWN % "work",
        f"""
        WITH enqueued AS ({INSERT % ("now()", "work")} RETURNING id)
        INSERT INTO churned SELECT id FROM enqueued
        """,
        """
        UPDATE graphile_worker._private_jobs
           SET locked_at = now(), locked_by = 'x', attempts = 1
         WHERE id IN (SELECT id FROM churned)
        """,
        """
        DELETE FROM graphile_worker._private_jobs
         WHERE id IN (SELECT id FROM churned)
        """,
    ),
)

# With a round trip for each claim and each completion, as it comes.
ONE_BY_ONE: Final = replace(
    SYSTEM,
    name="graphile-worker, one by one",
    commands=_plain_commands,
    sizes=replace(SYSTEM.sizes, drain=10_000),
)
