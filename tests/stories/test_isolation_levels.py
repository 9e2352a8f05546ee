"""Every verb means the same under each of PostgreSQL's four isolation levels.

A statement by itself comes to the same as under ``read committed``. In a transaction of
the caller's that sees the past, a verb does what it should, or raises a serialization
failure and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.models import Model
from django.utils import timezone

from django_jobqueue import DuplicateJob, operations, replay
from django_jobqueue.exceptions import AlreadyArchived
from django_jobqueue.models import (
    ArchivedJob,
    FailureGroup,
    JobType,
    Queue,
    QueuedJob,
    UniqueWindow,
    Worker,
)
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_conflict
from django_jobqueue.store.queue import claim_limited
from tests.sample import jobs
from tests.store.meanwhile import open_transaction, submit, together, until_waiting
from tests.store.rows import lane, register
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.selection import some_slow
from tests.support.undone import check_each

pytestmark = pytest.mark.django_db(transaction=True)

PAST = ["repeatable read", "serializable"]  # in these a transaction sees the past
LEVELS = [*PAST, "read uncommitted", "read committed"]
ID = UUID(int=7)
ADD = jobs.add.name
GOOD = "succeeded"


@contextmanager
def default_of_the_server(level: str) -> Iterator[None]:
    """New sessions of this database have this level, unless they say otherwise."""
    name = connection.settings_dict["NAME"]

    def run(statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)
        connection.close()

    run(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = '{level}'")
    try:
        yield
    finally:
        run(f'ALTER DATABASE "{name}" RESET default_transaction_isolation')


@pytest.fixture(params=some_slow(LEVELS, ["serializable"], "a further level"))
def level(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[str]:
    """The level of whoever connects."""
    with default_of_the_server(request.param):
        yield request.param
    connections.close_all()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """A thread beside this one."""
    with ThreadPoolExecutor(1) as made:
        yield made


def delete_all() -> None:
    """As after a test."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT empty.all_tables()")


def nothing() -> None: ...


def a_queued_job() -> UUID:
    return jobs.add.using(id=ID).enqueue(1).id


def an_archived_job() -> UUID:
    ArchivedJob.objects.create(id=ID, job_type_id=ADD, status="failed", data={"a": 1})
    return ID


def a_group() -> UUID:
    FailureGroup.objects.create(
        fingerprint=ID, coarse=ID, error_class="E", frame="f", template="t"
    )
    return ID


def a_worker() -> int:
    until = timezone.now() + timedelta(minutes=1)
    made: int = Worker.objects.create(name="w", host="h", pid=1, lease_until=until).id
    return made


def two_that_are_replaced() -> UUID:
    jobs.render.enqueue(7, why="old")
    return jobs.settle.enqueue(7, why="old").id


def a_window_that_is_over() -> None:
    jobs.remind.enqueue(1)
    UniqueWindow.objects.update(held_until=timezone.now())


NEXT_WEEK = timezone.now() + timedelta(days=7)
WINDOW = "UPDATE jobqueue_uniquewindow SET job_id = job_id"
QUEUED = "UPDATE jobqueue_queuedjob SET metadata = '{}'"
TYPE = "UPDATE jobqueue_jobtype SET description = 'x' WHERE name = 'tests.sample.add'"


class Verb(NamedTuple):
    """A verb, what it is about, and what the rows have when it was done."""

    setup: Callable[[], Any]
    touch: str  # a change of the row by somebody else, which is no obstacle
    do: Callable[[Any], Any]
    model: type[Model]
    columns: dict[str, Any] | None  # none: there is no row any more

    def is_done(self) -> bool:
        rows: Any = self.model._default_manager
        if self.columns is None:
            return not rows.exists()
        return bool(rows.filter(**self.columns).exists())


def verbs(
    setup: Callable[[], Any], touch: str, model: type[Model], **each: Any
) -> dict[str, Verb]:
    return {
        name: Verb(setup, touch, do, model, row) for name, (do, row) in each.items()
    }


VERBS = {
    **verbs(
        *(a_queued_job, QUEUED, QueuedJob),
        cancel=(lambda id: operations.cancel([id], reason="no"), None),
        edit=(lambda id: operations.edit_data(id, {"a": 2}), {"data": {"a": 2}}),
    ),
    **verbs(
        *(nothing, TYPE, JobType),
        pause=(lambda _: operations.pause([ADD]), {"paused": True}),
        override=(
            lambda _: operations.override(ADD, max_attempts=9),
            {"max_attempts_override": 9},
        ),
    ),
    **verbs(
        *(lambda: operations.pause([ADD]), TYPE, JobType),
        resume=(lambda _: operations.resume([ADD]), {"name": ADD, "paused": False}),
    ),
    **verbs(
        *(lambda: operations.pause(["mail"], queues=True),),
        *("UPDATE jobqueue_queue SET paused_by = 'x'", Queue),
        pause_a_queue=(
            lambda _: operations.pause(["mail"], queues=True, reason="again"),
            {"paused_reason": "again"},
        ),
    ),
    **verbs(
        *(an_archived_job, "UPDATE jobqueue_archivedjob SET worker = 'x'", ArchivedJob),
        prune=(lambda id: operations.prune_jobs([id]), None),
    ),
    **verbs(
        *(a_group, "UPDATE jobqueue_failuregroup SET template = 'x'", FailureGroup),
        resolve=(lambda id: operations.resolve([id]), {"state": "resolved"}),
        ignore=(lambda id: operations.ignore([id]), {"state": "ignored"}),
        note=(lambda id: operations.note([id], "seen"), {"notes__contains": "seen"}),
        assign=(lambda id: operations.assign([id], "anna"), {"assignee": "anna"}),
    ),
    **verbs(
        *(a_worker, "UPDATE jobqueue_worker SET rss = 7", Worker),
        ask=(lambda id: operations.ask_workers([id], "drain"), {"desired": "drain"}),
        where=(
            lambda id: operations.request_stack_dumps([id]),
            {"request__has_key": "stack_request"},
        ),
    ),
    **verbs(
        *(two_that_are_replaced, QUEUED, QueuedJob),
        replace=(lambda _: jobs.render.enqueue(7, why="new"), {"data__why": "new"}),
        replace_many=(
            lambda _: jobs.settle.enqueue_many([{"document": 7, "why": "new"}]),
            {"data__why": "new"},
        ),
        free_key=(
            lambda id: operations.free_keys([id]),
            {"unique_key": None, "job_type_id": jobs.settle.name},
        ),
    ),
    **verbs(
        *(a_window_that_is_over, WINDOW, QueuedJob),
        take=(lambda _: jobs.remind.enqueue(1, why="new"), {"data__why": "new"}),
        take_many=(
            lambda _: jobs.remind.enqueue_many([{"user": 1, "why": "new"}]),
            {"data__why": "new"},
        ),
    ),
    **verbs(
        *(lambda: jobs.remind.enqueue(7).id, WINDOW, UniqueWindow),
        close=(lambda id: operations.free_keys([id]), None),
    ),
}


def test_a_verb_by_itself_waits_for_who_changes_its_row_and_is_done(
    level: str, own: OwnConnection, pool: ThreadPoolExecutor
) -> None:
    def check(name: str) -> None:
        delete_all()
        verb = VERBS[name]
        made = verb.setup()
        with open_transaction(own) as other:
            other.run(verb.touch)
            future = submit(pool, lambda: verb.do(made))
            until_waiting()
        future.result(20)
        assert verb.is_done()

    check_each(check, ((name,) for name in VERBS))


def conflict_of(meanwhile: Callable[[], Any], do: Callable[[], Any]) -> bool:
    """Whether what was done in a transaction that looked before was rolled back."""
    try:
        with transaction.atomic():
            JobType.objects.count()  # the snapshot
            meanwhile()
            do()
    except OperationalError as error:
        if not is_conflict(error):
            raise
        return True
    return False


def test_a_verb_is_done_or_its_conflict_is_told(level: str, own: OwnConnection) -> None:
    def check(name: str) -> None:
        delete_all()
        verb = VERBS[name]
        made = verb.setup()
        if conflict_of(lambda: own.run(verb.touch), lambda: verb.do(made)):
            assert level in PAST
            assert not verb.is_done()
            verb.do(made)  # as whoever was told does
        assert verb.is_done()

    check_each(check, ((name,) for name in VERBS))


SKIPPING: dict[str, Callable[[UUID], list[UUID]]] = {
    "run now": lambda id: operations.run_now([id]),
    "reschedule": lambda id: operations.reschedule([id], run_after=NEXT_WEEK),
    "allow attempts": lambda id: operations.allow_attempts([id], 9),
    "fail": lambda id: operations.fail([id], reason="no"),
}


def test_what_leaves_busy_jobs_alone_does_so(level: str, own: OwnConnection) -> None:
    id = a_queued_job()
    with open_transaction(own) as other:
        other.run(QUEUED)
        assert [skips(id) for skips in SKIPPING.values()] == [[]] * len(SKIPPING)
    assert [skips(id) for skips in SKIPPING.values()] == [[id]] * len(SKIPPING)


def move(own: OwnConnection) -> None:
    """A worker is done with the job."""
    own.run(
        "WITH gone AS (DELETE FROM jobqueue_queuedjob WHERE id = %(id)s RETURNING *) "
        "INSERT INTO jobqueue_archivedjob (id, job_type, status, data) "
        "SELECT id, job_type, 'succeeded', data FROM gone",
        {"id": ID},
    )


def where_it_is() -> list[str]:
    """The tables that have the job; both would mean that it runs twice."""
    return [job.status for job in (*queued(id=ID), *archived(id=ID))]


ENQUEUES: dict[str, Callable[[], Any]] = {
    "plain": lambda: jobs.add.using(id=ID).enqueue(1),
    "with more": lambda: jobs.add.using(id=ID, metadata={"a": 1}).enqueue(1),
    "unique": lambda: jobs.add_alone.using(id=ID).enqueue(1),
}


def test_an_id_that_is_archived_this_moment_is_not_enqueued_again(
    level: str, own: OwnConnection, pool: ThreadPoolExecutor
) -> None:
    def check(name: str) -> None:
        delete_all()
        ENQUEUES[name]()
        with own.raw() as raw, raw.transaction():
            move(own)
            future: Future[Any] = submit(pool, ENQUEUES[name])
            until_waiting()
        with pytest.raises(AlreadyArchived):
            future.result(20)
        assert where_it_is() == ["succeeded"]

    check_each(check, ((name,) for name in ENQUEUES))


def test_nor_in_one_that_sees_the_past(level: str, own: OwnConnection) -> None:
    """Whether the job was seen in the queue, or not. What the check of the archive
    tried is not left."""

    def check(name: str, seen_queued: bool) -> None:
        delete_all()
        if seen_queued:
            ENQUEUES[name]()

        def done_meanwhile() -> None:
            if not seen_queued:
                own.run(
                    "INSERT INTO jobqueue_queuedjob (id, job_type) VALUES (%(id)s, "
                    "'tests.sample.add')",
                    {"id": ID},
                )
            move(own)

        told = False
        with pytest.raises(AlreadyArchived):  # noqa: PT012 - the second time, if told
            told = conflict_of(done_meanwhile, ENQUEUES[name])
            ENQUEUES[name]()
        assert level in PAST or not told
        assert where_it_is() == ["succeeded"]

    check_each(check, product(ENQUEUES, (True, False)))
    delete_all()
    with transaction.atomic():
        JobType.objects.count()
        assert jobs.add.using(id=ID).enqueue(1).id == ID
        assert jobs.add.using(id=ID).enqueue(1).id == ID
    assert where_it_is() == ["queued"]


def test_a_duplicate_that_comes_this_moment_is_found(
    level: str, own: OwnConnection, pool: ThreadPoolExecutor
) -> None:
    first = jobs.add_alone.enqueue(0)
    insert = (
        "INSERT INTO jobqueue_queuedjob (id, job_type, unique_key) "
        "SELECT %(id)s, name, jobqueue_unique_key(name, unique_rule, '{\"a\": 1}') "
        "FROM jobqueue_jobtype WHERE name = 'tests.sample.add_alone'"
    )
    with open_transaction(own) as other:
        other.run(insert, {"id": ID})
        one: Future[Any] = submit(pool, lambda: jobs.add_alone.enqueue(1))
        until_waiting()
    with pytest.raises(DuplicateJob) as caught:
        one.result(20)
    assert caught.value.job is not None
    assert caught.value.job.id == ID
    many = jobs.add_alone.using(on_duplicate="return")
    assert many.enqueue_many([{"a": 0}, {"a": 1}]) == [first.id, ID]


def test_two_bulk_replays_at_once_replay_each_job_once(level: str) -> None:
    for _ in range(5):
        ArchivedJob.objects.create(job_type_id=ADD, status="failed")
    selection = Selection(Table.ARCHIVED)
    drafts = [operations.bulk.draft("replay", selection).id for _ in range(2)]
    for id in drafts:
        operations.bulk.start(id)
    QueuedJob.objects.all().delete()  # those that would do it
    together([partial(bulk.WORK.do_chunk, id, max_rows=100) for id in drafts])
    assert len(queued(replay_of__isnull=False)) == 5


@pytest.mark.parametrize("pooled", [False, True])
def test_a_limit_holds_under_each_level(level: str, pooled: bool) -> None:
    limited = jobs.write_limited
    for _ in range(8):
        limited.enqueue("/dev/null")

    def claim_some() -> int:
        with closing(OwnConnection("tests", pooled=pooled)) as own:
            claimed = claim_limited.claim_limited(
                own, register(own), [lane(limited.name)], 2
            )
            return len(claimed)

    for _ in range(3):
        together([claim_some] * 4)
        assert QueuedJob.objects.filter(status="running").count() == 2


def test_a_worker_does_everything(level: str, worker: HandDriven, journal: str) -> None:
    jobs.add.enqueue(1)
    jobs.fail.enqueue()
    jobs.say.enqueue("cancel")
    jobs.write_once.enqueue(journal)
    jobs.write_limited.enqueue(journal)
    jobs.write_atomic.enqueue(journal, "name")
    jobs.followed.enqueue()
    replay(an_archived_job())
    worker.work()
    assert queued() == []
    done = [(job.job_type_id.rpartition(".")[2], job.status) for job in archived()]
    well = ("add", "write_once", "write_limited", "write_atomic", "followed", "report")
    assert sorted(done) == sorted(
        [("fail", "failed"), ("say", "cancelled"), ("add", "failed"), ("add", GOOD)]
        + [(name, GOOD) for name in well]
    )


def test_who_waits_for_an_atomic_job_does_not_cost_it_an_attempt(
    level: str, worker: HandDriven, own: OwnConnection, journal: str
) -> None:
    """Its row is changed while the handler's transaction is open."""
    made = jobs.write_atomic.enqueue(journal, "name")
    note, told = jobs.note, []

    def be_awaited(*words: Any) -> None:
        note(*words)
        if not told:
            told.append(own.run("UPDATE jobqueue_queuedjob SET awaited = true"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "note", be_awaited)
        worker.claim()
        worker.run()
        worker.finish()
        QueuedJob.objects.update(run_after=timezone.now())
        worker.work()
    (job,) = archived()
    assert (job.id, job.status, job.attempts) == (made.id, "succeeded", 1)
    assert len(jobs.notes(journal)) == (2 if level in PAST else 1)
