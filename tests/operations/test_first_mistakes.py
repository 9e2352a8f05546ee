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
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import QueuedJob
from tests.sample import jobs, tasks

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda: jobs.add.enqueue(1), "aenqueue"),
        (lambda: jobs.add_alone.enqueue(1), "aenqueue"),
        (lambda: jobs.add.using(id=new_id()).enqueue(1), "aenqueue"),
        (lambda: enqueue("tests.sample.add", {"a": 1}), "aenqueue"),
        (lambda: jobs.add.enqueue_many([{"a": 1}]), "aenqueue_many"),
        (lambda: jobs.add_alone.enqueue_many([{"a": 1}]), "aenqueue_many"),
        (lambda: enqueue_many("tests.sample.add", [{"a": 1}]), "aenqueue_many"),
    ],
)
def test_in_async_code_the_async_twin_is_named(
    call: Callable[[], Any], instead: str
) -> None:
    async def view() -> None:
        call()

    with pytest.raises(SynchronousOnlyOperation) as caught:
        async_to_sync(view)()
    assert str(caught.value) == (
        f"{instead[1:]}() cannot be called in async code, such as an async view. Write "
        f"await {instead}(…), which takes the same arguments."
    )


SYNC: dict[str, tuple[Callable[[], Any], str]] = {
    "wait": (lambda: wait(new_id()), "await_"),
    "drain": (testing.drain, "adrain"),
    "a task": (lambda: tasks.add.enqueue(1), "aenqueue"),
    "many of a task": (lambda: tasks.add.enqueue_many([{"a": 1}]), "aenqueue_many"),
    "a task's result": (lambda: tasks.add.get_result(str(new_id())), "aget_result"),
    "get_job": (lambda: get_job(new_id()), ""),
    "cancel": (lambda: operations.cancel(new_id()), ""),
    "replay": (lambda: operations.replay(new_id()), ""),
    "pause": (lambda: operations.pause("tests.sample.add"), ""),
    "prune_jobs": (lambda: operations.prune_jobs(new_id()), ""),
    "assert_enqueued": (lambda: testing.assert_enqueued(jobs.add), ""),
    "assert_not_enqueued": (lambda: testing.assert_not_enqueued(jobs.add), ""),
}


@pytest.mark.parametrize("name", SYNC)
def test_in_async_code_every_sync_function_names_an_async_way(name: str) -> None:
    call, twin = SYNC[name]

    async def view() -> None:
        call()

    with pytest.raises(SynchronousOnlyOperation) as caught:
        async_to_sync(view)()
    text = str(caught.value)
    assert "() cannot be called in async code, such as an async view. Write" in text
    if twin:
        assert text.endswith(f"await {twin}(…), which takes the same arguments.")
    else:
        assert text.endswith(
            f"await sync_to_async({name})(…), with sync_to_async of asgiref.sync."
        )


# Functions of bulk operations that are called inside of others, or ask no database.
HELPERS = {
    "enqueue_job",
    "filter_text",
    "is_abandoned",
    "options_of",
    "record_operation",
}


@pytest.mark.parametrize("module", [operations, operations.bulk], ids=["one", "bulk"])
def test_every_verb_of_operators_says_that_it_is_sync(module: Any) -> None:
    names = getattr(module, "__all__", None) or [
        name
        for name, found in vars(module).items()
        if inspect.isfunction(found) and found.__module__ == module.__name__
        if not name.startswith("_") and name not in HELPERS
    ]
    assert len(names) > 8
    for name in names:
        assert hasattr(getattr(module, name), "__wrapped__"), name


async def asks_in_its_loop() -> None:
    QueuedJob.objects.exists()


def test_what_a_handler_does_wrong_in_its_own_loop_stays_as_it_is() -> None:
    handler = job(name="verbs.sync_in_async")(asks_in_its_loop)
    try:
        handler.enqueue()
        with pytest.raises(SynchronousOnlyOperation) as caught:
            testing.drain()
    finally:
        registry.remove("verbs.sync_in_async")
    assert str(caught.value).startswith("You cannot call this from an async context")


VERBS: dict[str, Callable[[], Any]] = {
    "enqueue": lambda: jobs.add.enqueue(1),
    "enqueue once": lambda: jobs.add.using(id=new_id()).enqueue(1),
    "enqueue unique": lambda: jobs.add_alone.enqueue(1),
    "enqueue many": lambda: jobs.add.enqueue_many([{"a": 1}]),
    "get_job": lambda: operations.get_job(new_id()),
    "cancel": lambda: operations.cancel(new_id()),
    "replay": lambda: operations.replay_many(new_id()),
    "prune": lambda: operations.prune_jobs(new_id()),
}
TABLES = ("jobqueue_queuedjob", "jobqueue_archivedjob")


def without_tables(call: Callable[[], Any]) -> str:
    """What a call says when the tables have other names."""
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"ALTER TABLE {table} RENAME TO elsewhere_{table}")
    with pytest.raises(ProgrammingError) as caught:
        call()
    assert caught.value.__cause__.sqlstate == "42P01"  # type: ignore[union-attr]
    return str(caught.value)


@pytest.mark.parametrize("verb", VERBS)
def test_without_its_tables_every_verb_says_to_migrate(verb: str) -> None:
    assert without_tables(VERBS[verb]).startswith(
        "The tables of the job queue are missing or not up to date in the database "
        "'default': run manage.py migrate. (relation"
    )


@modify_settings(INSTALLED_APPS={"remove": ["django_jobqueue"]})
def test_without_the_app_it_says_to_install_it() -> None:
    assert (
        "in the database 'default': add 'django_jobqueue' to INSTALLED_APPS, and run "
        "manage.py migrate. (relation"
    ) in without_tables(VERBS["enqueue"])


def test_other_errors_of_the_database_are_as_they_are() -> None:
    from django_jobqueue.store.connection import DjangoDatabase

    with pytest.raises(ProgrammingError) as caught:
        DjangoDatabase().fetch("SELECT FROM WHERE")
    assert str(caught.value).startswith("syntax error")
