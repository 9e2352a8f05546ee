"""pg-boss."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System, node

BATCHES: Final = {"batchSize": 500, "localConcurrency": 2, "burstWhenBatchFull": True}
OPTIONS: Final[Mapping[Load, Mapping[str, Any]]] = {
    Load.DRAIN: BATCHES,
    Load.CROWDED: BATCHES,
    Load.ASYNC: {**BATCHES, "batchSize": 1_000, "localConcurrency": 1},
    Load.PICKUP: {"localConcurrency": 4},
    Load.STEADY: {"localConcurrency": 10},
    Load.CRASH: {"localConcurrency": 20},
}
INSERT: Final = """
INSERT INTO pgboss.job (name, data, state, start_after, completed_on, policy)
SELECT '%s', '{{"number": 1, "ms": 0}}', '%s', %s, %s, 'standard'
  FROM generate_series(1, {n})
"""


def _commands(load: Load, processes: int) -> Sequence[Command]:
    env = {"BENCH_OPTIONS": json.dumps(OPTIONS.get(load, {}))}
    return [Command(arguments=node("pg_boss", "work"), env=env)] * processes


SYSTEM: Final = System(
    name="pg-boss",
    distribution="pg-boss",
    app="pg_boss",
    is_node=True,
    keeps="finished jobs for a week",
    settings=(
        "A library, with LISTEN/NOTIFY and a poll every 0.5 s. Drains: two batches of "
        "500 at once; sleeps: one of 1,000. A batch is one call of the handler and "
        "ends as a whole. At once: 4 for pickup, 10 for the steady load, 20 for the "
        "crash."
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
    running="SELECT count(*) FROM pgboss.job WHERE state = 'active'",
    kept="SELECT count(*) FROM pgboss.job WHERE state = 'completed' AND name = 'work'",
    load_future=(INSERT % ("work", "created", "now() + interval '1 year'", "NULL"),),
    load_other=(
        "SELECT pgboss.create_queue('other', '{{\"policy\": \"standard\"}}')",
        INSERT % ("other", "created", "now()", "NULL"),
    ),
    load_kept=(INSERT % ("work", "completed", "now()", "now()"),),
    churn=(
        f"""
        WITH enqueued AS (
             {INSERT % ("work", "created", "now()", "NULL")} RETURNING id)
        INSERT INTO churned SELECT id FROM enqueued
        """,
        """
        UPDATE pgboss.job SET state = 'active', started_on = now()
         WHERE name = 'work' AND id IN (SELECT id FROM churned)
        """,
        """
        UPDATE pgboss.job SET state = 'completed', completed_on = now()
         WHERE name = 'work' AND id IN (SELECT id FROM churned)
        """,
    ),
    churn_key="uuid",
)
