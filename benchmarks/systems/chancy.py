"""Chancy with its async executor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System

CONCURRENCY: Final = {
    Load.DRAIN: 300,
    Load.CROWDED: 300,
    Load.ASYNC: 1_000,
    Load.CRASH: 20,
}
USUAL: Final = 100
INSERT: Final = """
INSERT INTO chancy_jobs (
       id, queue, func, kwargs, state, scheduled_at, attempts, completed_at)
SELECT gen_random_uuid(), '%s', 'benchmarks.apps.chancy_app.work',
       '{{"number": 1, "ms": 0}}', '%s', %s, %s, %s
  FROM generate_series(1, {n})
"""


def _commands(load: Load, processes: int) -> Sequence[Command]:
    many = str(CONCURRENCY.get(load, USUAL))
    module = (sys.executable, "-m", "benchmarks.apps.chancy_app", many)
    return [Command(arguments=module)] * processes


SYSTEM: Final = System(
    name="chancy",
    distribution="chancy",
    app="chancy_app",
    keeps="finished jobs for a day",
    settings=(
        "`chancy worker start` with the async executor, eager polling and async "
        "handlers. Concurrency: 300 for drains (best of 100, 300, 1,000), 1,000 for "
        "sleeps, 20 for the crash, otherwise 100."
    ),
    sizes=Sizes(
        drain=20_000,
        bulk=20_000,
        async_sleeps=5_000,
        memory=(500, 10_000, 10_000),
        crowded=10_000,
        crash=20,
    ),
    commands=_commands,
    running="SELECT count(*) FROM chancy_jobs WHERE state = 'running'",
    kept="SELECT count(*) FROM chancy_jobs WHERE state = 'succeeded'",
    load_future=(
        INSERT % ("default", "pending", "now() + interval '1 year'", 0, "NULL"),
    ),
    load_other=(INSERT % ("other", "pending", "now()", 0, "NULL"),),
    load_kept=(INSERT % ("default", "succeeded", "now()", 1, "now()"),),
    churn=(
        f"""
        WITH enqueued AS (
             {INSERT % ("default", "pending", "now()", 0, "NULL")} RETURNING id)
        INSERT INTO churned SELECT id FROM enqueued
        """,
        """
        UPDATE chancy_jobs
           SET state = 'running', started_at = now(), taken_by = 'x',
               claim_id = gen_random_uuid()
         WHERE id IN (SELECT id FROM churned)
        """,
        """
        UPDATE chancy_jobs
           SET state = 'succeeded', completed_at = now(), attempts = 1
         WHERE id IN (SELECT id FROM churned)
        """,
    ),
    churn_key="uuid",
)
