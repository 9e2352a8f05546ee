"""The database backend of Django's tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from benchmarks.processes import Command
from benchmarks.systems.base import Load, Sizes, System, django

OFTEN: Final = 0.05  # seconds between two polls
INSERT: Final = """
INSERT INTO django_tasks_database_dbtaskresult (
       id, status, args_kwargs, priority, task_path, queue_name, backend_name,
       run_after, enqueued_at, exception_class_path, traceback, worker_ids)
SELECT gen_random_uuid(), '%s', '{{"args": [1, 0], "kwargs": {{}}}}', 0,
       'benchmarks.apps.django_tasks.work', '%s', 'default', %s,
       clock_timestamp(), '', '', '[]'
  FROM generate_series(1, {n})
"""


def _commands(load: Load, processes: int) -> Sequence[Command]:
    command = django("db_worker", "-v", "0", "--no-startup-delay")
    if load is Load.STEADY:  # one process cannot run 200 jobs of 5 ms in a second
        processes *= 3
        command = (*command, "--interval", str(OFTEN))
    if load is Load.CRASH:  # each process runs one at a time
        processes *= SYSTEM.sizes.crash
    return [Command(arguments=command)] * processes


def _commands_often(load: Load, processes: int) -> Sequence[Command]:
    return [
        replace(command, arguments=(*command.arguments, "--interval", str(OFTEN)))
        for command in _commands(load, processes)
    ]


SYSTEM: Final = System(
    name="django-tasks-db",
    distribution="django-tasks-db",
    app="django_tasks_db_app",
    is_django=True,
    keeps="every finished task",
    settings=(
        "`db_worker` with `CONN_MAX_AGE=None`: one sync task at a time, a poll every "
        "second. Pickup also, and the steady load with three processes, with "
        f"`--interval {OFTEN}`; crash: four processes."
    ),
    sizes=Sizes(
        drain=600,
        bulk=2_000,
        async_sleeps=0,
        sync_sleeps=50,
        memory=(200, 400, 400),
        crowded=400,
        crash=4,
    ),
    commands=_commands,
    running=(
        "SELECT count(*) FROM django_tasks_database_dbtaskresult "
        "WHERE status = 'RUNNING'"
    ),
    kept=(
        "SELECT count(*) FROM django_tasks_database_dbtaskresult "
        "WHERE status = 'SUCCESSFUL'"
    ),
    load_future=(INSERT % ("READY", "default", "now() + interval '1 year'"),),
    load_other=(INSERT % ("READY", "other", "'9999-01-01 00:00+00'"),),
    load_kept=(INSERT % ("SUCCESSFUL", "default", "'9999-01-01 00:00+00'"),),
    churn=(
        f"""
        WITH enqueued AS (
             {INSERT % ("READY", "default", "'9999-01-01 00:00+00'")} RETURNING id)
        INSERT INTO churned SELECT id FROM enqueued
        """,
        """
        UPDATE django_tasks_database_dbtaskresult
           SET status = 'RUNNING', started_at = now(), worker_ids = '[1]'
         WHERE id IN (SELECT id FROM churned)
        """,
        """
        UPDATE django_tasks_database_dbtaskresult
           SET status = 'SUCCESSFUL', finished_at = now()
         WHERE id IN (SELECT id FROM churned)
        """,
    ),
    churn_key="uuid",
)

# The same, polling often: quick to pick up, at a price while it is idle.
OFTEN_SYSTEM: Final = replace(
    SYSTEM, name=f"django-tasks-db, {OFTEN} s", commands=_commands_often
)
