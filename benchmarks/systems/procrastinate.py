"""procrastinate with its own asynchronous connector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System, script

CONCURRENCY: Final = {
    Load.DRAIN: 4,
    Load.CROWDED: 4,
    Load.STEADY: 10,
    Load.ASYNC: 100,
    Load.CRASH: 20,
}
INSERT: Final = """
INSERT INTO procrastinate_jobs (queue_name, task_name, args, status, scheduled_at)
SELECT '%s', 'work', '{{"number": 1, "ms": 0}}', '%s', %s
  FROM generate_series(1, {n})
"""
EVENTS: Final = """
INSERT INTO procrastinate_events (job_id, type)
SELECT job.id, event.type::procrastinate_job_event_type
  FROM procrastinate_jobs AS job, unnest('{{%s}}'::text[]) AS event (type)
"""
# The rows that its triggers would write one by one are written at once.
QUICKLY: Final = "SET session_replication_role = replica"
AS_USUAL: Final = "RESET session_replication_role"


def _commands(load: Load, processes: int) -> Sequence[Command]:
    app = "--app=benchmarks.apps.procrastinate_app.app"
    many = CONCURRENCY.get(load)
    flags = () if many is None else ("--concurrency", str(many))
    if load is Load.CROWDED:
        flags = (*flags, "--queues", "default")
    command = Command(
        arguments=script(
            "procrastinate", app, "--log-level", "warning", "worker", *flags
        ),
        env={"BENCH_POOL": str(min(many or 1, 10) + 4)},
    )
    return [command] * processes


SYSTEM: Final = System(
    name="procrastinate",
    distribution="procrastinate",
    app="procrastinate_app",
    is_django=False,
    keeps="every job, and about three rows of events for each",
    settings=(
        "`procrastinate worker` with psycopg and LISTEN/NOTIFY; async handlers. "
        "`--concurrency`: 4 for drains (the default is 1), 10 for the steady load, "
        "100 for sleeps, 20 for the crash."
    ),
    sizes=Sizes(
        drain=1_000,
        bulk=20_000,
        async_sleeps=2_000,
        sync_sleeps=0,
        memory=(200, 800, 1_000),
        crowded=500,
        crash=20,
    ),
    commands=_commands,
    running="SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing'",
    kept="SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'",
    load_future=(
        QUICKLY,
        INSERT % ("default", "todo", "now() + interval '1 year'"),
        EVENTS % "deferred,scheduled",
        AS_USUAL,
    ),
    load_other=(
        QUICKLY,
        INSERT % ("other", "todo", "NULL"),
        EVENTS % "deferred",
        AS_USUAL,
    ),
    load_kept=(
        QUICKLY,
        INSERT % ("default", "succeeded", "NULL"),
        EVENTS % "deferred,started,succeeded",
        AS_USUAL,
    ),
    churn=(
        f"""
        WITH enqueued AS ({INSERT % ("default", "todo", "NULL")} RETURNING id)
        INSERT INTO churned SELECT id FROM enqueued
        """,
        """
        UPDATE procrastinate_jobs SET status = 'doing'
         WHERE id IN (SELECT id FROM churned)
        """,
        """
        UPDATE procrastinate_jobs SET status = 'succeeded', attempts = attempts + 1
         WHERE id IN (SELECT id FROM churned)
        """,
    ),
)
