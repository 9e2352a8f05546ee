"""Ourselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System, django

FLAGS: Final = {
    Load.CROWDED: ("--queues", "default"),
    Load.ASYNC: ("--async-slots", "1000"),
    Load.SYNC: ("--threads", "100"),
    Load.DEAF: ("--listen", "false", "--poll-interval", "0.05"),
    Load.CRASH: ("--threads", "20"),
}
DATA: Final = """'{{"number": 1, "ms": 0}}'"""


def _commands(load: Load, processes: int) -> Sequence[Command]:
    flags = ("--processes", str(processes), *FLAGS.get(load, ()))
    return [Command(arguments=django("runworkers", *flags))]


SYSTEM: Final = System(
    name="django_jobqueue",
    distribution="django-jobqueue",
    app="django_jobqueue_app",
    is_django=True,
    keeps="every finished job, in the archive",
    settings=(
        "`runworkers` with its defaults: 4 threads, LISTEN/NOTIFY, a poll every 20 s, "
        "a lease of 15 s; sync handlers. Sleeping jobs: `--async-slots 1000` or "
        "`--threads 100`; crash: `--threads 20`."
    ),
    sizes=Sizes(
        drain=50_000,
        bulk=100_000,
        async_sleeps=5_000,
        sync_sleeps=5_000,
        memory=(2_000, 100_000, 1_000_000),
        crowded=150_000,
        crash=20,
    ),
    commands=_commands,
    running="SELECT count(*) FROM jobqueue_queuedjob WHERE status = 'running'",
    kept="SELECT count(*) FROM jobqueue_archivedjob WHERE status = 'succeeded'",
    load_future=(
        f"""
        INSERT INTO jobqueue_queuedjob (job_type, data, run_after)
        SELECT 'benchmarks.apps.work', {DATA}, now() + interval '1 year'
          FROM generate_series(1, {{n}})
        """,
    ),
    load_other=(
        f"""
        INSERT INTO jobqueue_queuedjob (job_type, queue, data)
        SELECT 'benchmarks.apps.work', 'other_' || n % 5, {DATA}
          FROM generate_series(1, {{n}}) AS n
        """,
    ),
    load_kept=(
        f"""
        INSERT INTO jobqueue_archivedjob (
               job_type, data, attempts, status, started_at, finished_at, wait_ms,
               run_ms, worker)
        SELECT 'benchmarks.apps.work', {DATA}, 1, 'succeeded', now(),
               now() - n * interval '1 ms', 5, 1, 'web-1:4112'
          FROM generate_series(1, {{n}}) AS n
        """,
    ),
    churn=(
        f"""
        WITH enqueued AS (
             INSERT INTO jobqueue_queuedjob (job_type, data)
             SELECT 'benchmarks.apps.work', {DATA} FROM generate_series(1, {{n}})
             RETURNING id)
        INSERT INTO churned SELECT id FROM enqueued
        """,
        """
        UPDATE jobqueue_queuedjob
           SET status = 'running', worker_id = 0, started_at = statement_timestamp(),
               fence = fence + 1, attempts = attempts + 1
         WHERE id IN (SELECT id FROM churned)
        """,
        """
        WITH gone AS (
             DELETE FROM jobqueue_queuedjob WHERE id IN (SELECT id FROM churned)
             RETURNING id, job_type, queue, priority, data, run_after, created_at,
                       attempts, started_at)
        INSERT INTO jobqueue_archivedjob (
               id, job_type, queue, priority, data, run_after, created_at, attempts,
               started_at, status, wait_ms, run_ms, worker)
        SELECT gone.*, 'succeeded', 5, 1, 'web-1:4112' FROM gone
        """,
    ),
    churn_key="uuid",
)
