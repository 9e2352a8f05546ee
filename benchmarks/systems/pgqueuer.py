"""PgQueuer with psycopg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System, script

FLAGS: Final = {
    Load.DRAIN: ("--batch-size", "100"),
    Load.CROWDED: ("--batch-size", "100"),
    Load.ASYNC: ("--batch-size", "500"),
    Load.SYNC: ("--batch-size", "100"),
    Load.CRASH: ("--max-concurrent-tasks", "20"),
}
INSERT: Final = """
INSERT INTO pgqueuer (priority, status, entrypoint, payload, execute_after)
SELECT 0, 'queued', '{entrypoint}', '1 0', {due} FROM generate_series(1, {{n}})
"""
LOG: Final = "INSERT INTO pgqueuer_log (job_id, status, entrypoint, priority)"


def _commands(load: Load, processes: int) -> Sequence[Command]:
    factory = "benchmarks.apps.pgqueuer_app:main"
    flags = ("--log-level", "WARNING", *FLAGS.get(load, ()))
    command = Command(arguments=script("pgq", "run", factory, *flags))
    return [command] * processes


SYSTEM: Final = System(
    name="pgqueuer",
    distribution="pgqueuer",
    app="pgqueuer_app",
    is_django=False,
    keeps="three rows of its log for each job",
    settings=(
        "`pgq run` on uvloop with psycopg and the autovacuum settings that it "
        "advises; async handlers. Drains: `--batch-size 100` (best of 10, 100, 500; "
        "the default is 10); sleeps: 500, or `asyncio.to_thread` on 100 threads; "
        "crash: `--max-concurrent-tasks 20`."
    ),
    sizes=Sizes(
        drain=50_000,
        bulk=100_000,
        async_sleeps=5_000,
        sync_sleeps=2_000,
        memory=(2_000, 49_000, 49_000),
        crowded=20_000,
        crash=20,
    ),
    commands=_commands,
    running="SELECT count(*) FROM pgqueuer WHERE status = 'picked'",
    kept="SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'",
    load_future=(INSERT.format(entrypoint="work", due="now() + interval '1 year'"),),
    load_other=(INSERT.format(entrypoint="other", due="now()"),),
    load_kept=(
        f"""
        {LOG}
        SELECT -n, status.name::pgqueuer_status, 'work', 0
          FROM generate_series(1, {{n}}) AS n,
               (VALUES ('queued'), ('picked'), ('successful')) AS status (name)
        """,
    ),
    churn=(
        f"""
        WITH enqueued AS ({INSERT.format(entrypoint="work", due="now()")} RETURNING id),
             logged AS ({LOG} SELECT id, 'queued', 'work', 0 FROM enqueued)
        INSERT INTO churned SELECT id FROM enqueued
        """,
        f"""
        WITH picked AS (
             UPDATE pgqueuer
                SET status = 'picked', updated = now(), heartbeat = now(),
                    queue_manager_id = '00000000-0000-0000-0000-000000000001'
              WHERE id IN (SELECT id FROM churned) RETURNING id)
        {LOG} SELECT id, 'picked', 'work', 0 FROM picked
        """,
        f"""
        WITH gone AS (
             DELETE FROM pgqueuer WHERE id IN (SELECT id FROM churned) RETURNING id)
        {LOG} SELECT id, 'successful', 'work', 0 FROM gone
        """,
    ),
)
