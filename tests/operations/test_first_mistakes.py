"""What somebody meets who uses the job queue for the first time: in async code, without
the app, without its tables."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import SynchronousOnlyOperation
from django.db import ProgrammingError, connection
from django.test import modify_settings

from django_jobqueue import (
    enqueue,
    enqueue_many,
    get_job,
    job,
    operations,
    testing,
    wait,
)
from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import DjangoDatabase
from tests.sample import jobs, tasks
from tests.support.tables import differing, refusal
from tests.support.undone import undone

pytestmark = pytest.mark.django_db


def in_async_code(call: Callable[[], Any]) -> str:
    async def view() -> None:
        call()

    return refusal(SynchronousOnlyOperation, async_to_sync(view))


# A call, the name that it is known by, and its async twin.
SYNC: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: jobs.add.enqueue(1), "enqueue", "aenqueue"),
    (lambda: jobs.add_alone.enqueue(1), "enqueue", "aenqueue"),
    (lambda: jobs.add.using(id=new_id()).enqueue(1), "enqueue", "aenqueue"),
    (lambda: enqueue("tests.sample.add", {"a": 1}), "enqueue", "aenqueue"),
    (lambda: tasks.add.enqueue(1), "enqueue", "aenqueue"),
    (lambda: jobs.add.enqueue_many([{"a": 1}]), "enqueue_many", "aenqueue_many"),
    (lambda: jobs.add_alone.enqueue_many([{"a": 1}]), "enqueue_many", "aenqueue_many"),
    (lambda: tasks.add.enqueue_many([{"a": 1}]), "enqueue_many", "aenqueue_many"),
    (
        lambda: enqueue_many("tests.sample.add", [{"a": 1}]),
        *("enqueue_many", "aenqueue_many"),
    ),
    (lambda: tasks.add.get_result(str(new_id())), "get_result", "aget_result"),
    (lambda: wait(new_id()), "wait", "await_"),
    (testing.drain, "drain", "adrain"),
    (lambda: get_job(new_id()), "get_job", ""),
    (lambda: operations.cancel(new_id()), "cancel", ""),
    (lambda: operations.replay(new_id()), "replay", ""),
    (lambda: operations.pause("tests.sample.add"), "pause", ""),
    (lambda: operations.prune_jobs(new_id()), "prune_jobs", ""),
    (lambda: testing.assert_enqueued(jobs.add), "assert_enqueued", ""),
    (lambda: testing.assert_not_enqueued(jobs.add), "assert_not_enqueued", ""),
]


def test_in_async_code_every_sync_function_names_an_async_way() -> None:
    def instead(name: str, twin: str) -> str:
        if twin:
            return f"{twin}(…), which takes the same arguments."
        return f"sync_to_async({name})(…), with sync_to_async of asgiref.sync."

    cannot = "() cannot be called in async code, such as an async view. Write await "
    rows = [(call, name + cannot + instead(name, twin)) for call, name, twin in SYNC]
    assert differing(rows, in_async_code) == []


# Functions of bulk operations that are called inside of others, or ask no database.
HELPERS = {"filter_text", "is_abandoned", "options_of", "run_here", "work_here"}


def test_every_verb_of_operators_says_that_it_is_sync() -> None:
    for module in (operations, operations.bulk):
        names = getattr(module, "__all__", None) or [
            name
            for name, found in vars(module).items()
            if inspect.ismethod(found)
            or (inspect.isfunction(found) and found.__module__ == module.__name__)
            if not name.startswith("_") and name not in HELPERS
        ]
        assert len(names) > 8
        for name in names:
            assert hasattr(getattr(module, name), "__wrapped__"), name


def test_a_handlers_own_mistake_stays_as_it_is() -> None:
    async def asks_in_its_loop() -> None:
        QueuedJob.objects.exists()

    job(name="verbs.sync_in_async")(asks_in_its_loop).enqueue()
    answer = refusal(SynchronousOnlyOperation, testing.drain)
    assert answer.startswith("You cannot call this from an async context")


MIGRATE = (
    "The tables of the job queue are missing or not up to date in the database "
    "'default': run manage.py migrate. (relation"
)
VERBS: list[Callable[[], Any]] = [
    lambda: jobs.add.enqueue(1),
    lambda: jobs.add.using(id=new_id()).enqueue(1),
    lambda: jobs.add_alone.enqueue(1),
    lambda: jobs.add.enqueue_many([{"a": 1}]),
    lambda: operations.get_job(new_id()),
    lambda: operations.cancel(new_id()),
    lambda: operations.replay_many(new_id()),
    lambda: operations.prune_jobs(new_id()),
]
TABLES = ("jobqueue_queuedjob", "jobqueue_archivedjob")


@undone()
def without_tables(call: Callable[[], Any]) -> str:
    """What a call says when the tables have other names."""
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"ALTER TABLE {table} RENAME TO elsewhere_{table}")
    with pytest.raises(ProgrammingError) as caught:
        call()
    assert caught.value.__cause__.sqlstate == "42P01"  # type: ignore[union-attr]
    return str(caught.value)


def test_without_its_tables_every_verb_says_to_migrate() -> None:
    rows = [(verb, MIGRATE) for verb in VERBS]
    assert differing(rows, without_tables, str.startswith) == []


@modify_settings(INSTALLED_APPS={"remove": ["django_jobqueue"]})
def test_without_the_app_it_says_to_install_it() -> None:
    assert (
        "in the database 'default': add 'django_jobqueue' to INSTALLED_APPS, and run "
        "manage.py migrate. (relation"
    ) in without_tables(VERBS[0])


def test_other_errors_of_the_database_are_as_they_are() -> None:
    text = refusal(ProgrammingError, DjangoDatabase().fetch, "SELECT FROM WHERE")
    assert text.startswith("syntax error")
