"""django-ox, which keeps Django's tasks in the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System, django

THREADS: Final = {
    Load.DRAIN: 4,
    Load.CROWDED: 4,
    Load.STEADY: 4,
    Load.SYNC: 100,
    Load.CRASH: 20,
}
INSERT: Final = """
INSERT INTO django_ox_oxtask (
       id, task_path, args, kwargs, queue_name, priority, takes_context, backend_name,
       status, run_after, attempts, max_attempts, errors, worker_ids, enqueued_at,
       lease_epoch)
SELECT gen_random_uuid(), 'benchmarks.apps.django_tasks.work', '[1, 0]', '{{}}', '%s',
       0, false, 'default', '%s', %s, 0, 3, '[]', '[]', clock_timestamp(), 0
  FROM generate_series(1, {n})
"""


def _commands(load: Load, processes: int) -> Sequence[Command]:
    threads = str(THREADS.get(load, 1))
    flags = ("--processes", str(processes), "--concurrency", threads)
    if load is Load.STEADY:
        flags = (*flags, "--interval", "0.05")
    return [Command(arguments=django("ox_worker", "-v", "0", *flags))]


SYSTEM: Final = System(
    name="django-ox",
    distribution="django-ox",
    app="django_ox_app",
    is_django=True,
    keeps="every finished task",
    settings=(
        "`ox_worker` with `CONN_MAX_AGE=None`, as it advises, and a poll every "
        "second. `--concurrency`: 4 for drains and steady load (with `--interval "
        "0.05`), 100 for sleeps, 20 for the crash."
    ),
    sizes=Sizes(
        drain=800,
        bulk=20_000,
        sync_sleeps=500,
        memory=(200, 400, 400),
        crowded=400,
        crash=20,
    ),
    commands=_commands,
    running="SELECT count(*) FROM django_ox_oxtask WHERE status = 'RUNNING'",
    kept="SELECT count(*) FROM django_ox_oxtask WHERE status = 'SUCCESSFUL'",
    load_future=(INSERT % ("default", "READY", "now() + interval '1 year'"),),
    load_other=(INSERT % ("other", "READY", "NULL"),),
    load_kept=(INSERT % ("default", "SUCCESSFUL", "NULL"),),
    churn=(
        f"""
        WITH enqueued AS ({INSERT % ("default", "READY", "NULL")} RETURNING id)
        INSERT INTO churned SELECT id FROM enqueued
        """,
        """
        UPDATE django_ox_oxtask
           SET status = 'RUNNING', started_at = now(), locked_at = now(),
               locked_by = 'x', attempts = 1, lease_epoch = lease_epoch + 1,
               lease_expires_at = now() + interval '300 s'
         WHERE id IN (SELECT id FROM churned)
        """,
        """
        UPDATE django_ox_oxtask
           SET status = 'SUCCESSFUL', finished_at = now(), locked_at = NULL,
               locked_by = NULL, lease_expires_at = NULL
         WHERE id IN (SELECT id FROM churned)
        """,
    ),
    churn_key="uuid",
)
