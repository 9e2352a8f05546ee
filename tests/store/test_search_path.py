"""Our functions find our tables whatever the search_path of a session is by then, as at
a commit, or while a dump is restored; and a restore of the archive ends no job."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)

# Whoever names a relation or a function of ours, in the body or as its caller.
FUNCTIONS = """
SELECT proname, prosrc, proconfig FROM pg_proc
 WHERE proname LIKE 'jobqueue\\_%' AND pg_function_is_visible(oid)
"""
# Each fires a trigger, or calls a function; their own names are qualified.
STATEMENTS = {
    "fill": "INSERT INTO public.jobqueue_queuedjob (job_type, data)"
    " VALUES ('tests.sample.add', '{}'), ('tests.sample.on_any', '{}')",
    "change_rate": "UPDATE public.jobqueue_jobtype SET rate_override = '5/1.0s burst 5'"
    " WHERE name = 'tests.sample.add'",
    "change_key_rate": "INSERT INTO public.jobqueue_keyoverride (limit_key, rate)"
    " VALUES ('a b', '5/1.0s burst 5')",
    "notify_limit": "DELETE FROM public.jobqueue_keyoverride",
    "follow": "WITH gone AS (DELETE FROM public.jobqueue_queuedjob"
    " WHERE followers IS NOT NULL RETURNING *)"
    " INSERT INTO public.jobqueue_archivedjob (id, job_type, followers, status)"
    " SELECT id, job_type, followers, 'succeeded' FROM gone",
    "wanted_slots": "SELECT public.jobqueue_wanted_slots('default')",
    "idle_hosts": "SELECT public.jobqueue_idle_hosts('default', 'x')",
    "is_new": "SELECT public.jobqueue_is_new(public.jobqueue_uuidv7())",
}


def test_each_function_names_what_is_ours_with_its_schema() -> None:
    """Or has a path of its own, which only one that runs as its owner needs."""
    with connection.cursor() as cursor:
        cursor.execute(FUNCTIONS)
        functions = {
            name: "" if config else source for name, source, config in cursor.fetchall()
        }
    bare = re.compile(r"(?<![.\w'])jobqueue_\w+")
    assert len(functions) >= 17
    assert sum(source.count("public.jobqueue_") for source in functions.values()) >= 20
    assert {name: set(bare.findall(source)) for name, source in functions.items()} == {
        name: set() for name in functions
    }


@pytest.mark.parametrize("path", ["pg_catalog", "''"])
def test_triggers_run_under_any_path(path: str) -> None:
    """Also under one that was set after an enqueue, when the triggers of a commit
    run."""
    with transaction.atomic(), connection.cursor() as cursor:
        jobs.add.using(on_success=jobs.on_any).enqueue(1)
        cursor.execute(f"SET LOCAL search_path = {path}")
        for statement in STATEMENTS.values():
            cursor.execute(statement)
    assert len(archived()) == 1
    assert len(queued(follows=archived()[0].id)) == 1


def test_what_is_loaded_into_the_archive_enqueues_no_follower(
    make_worker: Callable[..., HandDriven],
) -> None:
    """As a dump of the data is restored: rows are inserted, and none leaves the
    queue."""
    made = jobs.add.using(on_success=jobs.on_any).enqueue(1)
    waiting = jobs.add.using(on_success=jobs.on_any).enqueue(2)
    QueuedJob.objects.filter(pk=waiting.id).update(queue="nobody")
    make_worker(queues=["default"]).work()
    assert len(archived()) == 2
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = ''")
        for table in ("queuedjob", "archivedjob"):
            name = f"public.jobqueue_{table}"
            cursor.execute(f"CREATE TEMP TABLE {table} ON COMMIT DROP AS TABLE {name}")
            cursor.execute(f"TRUNCATE {name}")
            cursor.execute(f"INSERT INTO {name} TABLE pg_temp.{table}")
    assert {job.pk for job in queued()} == {waiting.id}
    assert ArchivedJob.objects.get(pk=made.id).status == "succeeded"
    assert len(archived()) == 2


def test_followers_are_enqueued_by_plain_sql_that_archives_in_two_statements() -> None:
    made = jobs.add.using(on_success=jobs.on_any).enqueue(1)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_archivedjob (id, job_type, followers, status)"
            " SELECT id, job_type, followers, 'succeeded' FROM jobqueue_queuedjob"
        )
        cursor.execute("DELETE FROM jobqueue_queuedjob")
    assert [job.follows for job in queued()] == [made.id]
