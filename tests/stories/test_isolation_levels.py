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
from itertools import product
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from django_jobqueue import DuplicateJob, operations, replay
from django_jobqueue.domain.ids import new_id
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
from django_jobqueue.operations import bulk_steps
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_conflict
from django_jobqueue.store.queue import claim
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


@pytest.fixture(
    params=some_slow(LEVELS, PAST, "the level that all other tests have, and its like")
)
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
    ArchivedJob.objects.create(id=ID, job_type_id=jobs.add.name, status="failed")
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


class Verb(NamedTuple):
    """A verb, what it is about, and how to see that it was done."""

    setup: Callable[[], Any]
    do: Callable[[Any], Any]
    touch: str  # a change of the row by somebody else, which is no obstacle
    is_done: Callable[[], bool]


def a_window_that_is_over() -> None:
    jobs.remind.enqueue(1)
    UniqueWindow.objects.update(held_until=timezone.now())


WINDOW = "UPDATE jobqueue_uniquewindow SET job_id = job_id"
QUEUED = "UPDATE jobqueue_queuedjob SET metadata = '{}'"
TYPE = "UPDATE jobqueue_jobtype SET description = 'x' WHERE name = 'tests.sample.add'"
GROUP = "UPDATE jobqueue_failuregroup SET template = 'x'"
WORKER = "UPDATE jobqueue_worker SET rss = 7"
NEXT_WEEK = timezone.now() + timedelta(days=7)


def add_type() -> JobType:
    return JobType.objects.get(name=ADD)


def group() -> FailureGroup:
    return FailureGroup.objects.get()


def is_replaced() -> bool:
    return [job.data["why"] for job in queued()] == ["new"]


def are_two() -> bool:
    return len(queued()) == 2


VERBS = {
    "cancel": Verb(
        a_queued_job,
        lambda id: operations.cancel([id], reason="no"),
        QUEUED,
        lambda: [job.status for job in archived()] == ["cancelled"],
    ),
    "edit data": Verb(
        a_queued_job,
        lambda id: operations.edit_data(id, {"a": 2}),
        QUEUED,
        lambda: queued()[0].data == {"a": 2},
    ),
    "pause": Verb(
        nothing, lambda _: operations.pause([ADD]), TYPE, lambda: add_type().paused
    ),
    "resume": Verb(
        lambda: operations.pause([ADD]),
        lambda _: operations.resume([ADD]),
        TYPE,
        lambda: not add_type().paused,
    ),
    "pause a queue": Verb(
        lambda: operations.pause(["mail"], queues=True),
        lambda _: operations.pause(["mail"], queues=True, reason="again"),
        "UPDATE jobqueue_queue SET paused_by = 'x'",
        lambda: Queue.objects.get().paused_reason == "again",
    ),
    "override": Verb(
        nothing,
        lambda _: operations.override(ADD, max_attempts=9),
        TYPE,
        lambda: add_type().max_attempts_override == 9,
    ),
    "prune": Verb(
        an_archived_job,
        lambda id: operations.prune_jobs([id]),
        "UPDATE jobqueue_archivedjob SET worker = 'x'",
        lambda: archived() == [],
    ),
    "resolve": Verb(
        a_group,
        lambda id: operations.resolve([id]),
        GROUP,
        lambda: group().state == "resolved",
    ),
    "ignore": Verb(
        a_group,
        lambda id: operations.ignore([id]),
        GROUP,
        lambda: group().state == "ignored",
    ),
    "note": Verb(
        a_group,
        lambda id: operations.note([id], "seen it", by="anna"),
        GROUP,
        lambda: "seen it" in group().notes,
    ),
    "assign": Verb(
        a_group,
        lambda id: operations.assign([id], "anna"),
        GROUP,
        lambda: group().assignee == "anna",
    ),
    "ask workers": Verb(
        a_worker,
        lambda id: operations.ask_workers([id], "drain"),
        WORKER,
        lambda: Worker.objects.get().desired == "drain",
    ),
    "ask where": Verb(
        a_worker,
        lambda id: operations.request_stack_dumps([id]),
        WORKER,
        lambda: "stack_request" in (Worker.objects.get().request or {}),
    ),
    "replace": Verb(
        lambda: jobs.render.enqueue(7, why="old"),
        lambda _: jobs.render.enqueue(7, why="new"),
        QUEUED,
        is_replaced,
    ),
    "replace many": Verb(
        lambda: jobs.settle.enqueue(7, why="old"),
        lambda _: jobs.settle.enqueue_many([{"document": 7, "why": "new"}]),
        QUEUED,
        is_replaced,
    ),
    "take a window": Verb(
        a_window_that_is_over, lambda _: jobs.remind.enqueue(1), WINDOW, are_two
    ),
    "take many windows": Verb(
        a_window_that_is_over,
        lambda _: jobs.remind.enqueue_many([{"user": 1}]),
        WINDOW,
        are_two,
    ),
    "free a key": Verb(
        lambda: jobs.settle.enqueue(7).id,
        lambda id: operations.free_keys([id]),
        QUEUED,
        lambda: queued()[0].unique_key is None,
    ),
    "close a window": Verb(
        lambda: jobs.remind.enqueue(7).id,
        lambda id: operations.free_keys([id]),
        WINDOW,
        lambda: not UniqueWindow.objects.exists(),
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


def test_in_a_transaction_a_verb_is_done_or_its_conflict_is_told(
    level: str, own: OwnConnection
) -> None:
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


Enqueue = Callable[[], Any]
ENQUEUES: dict[str, Enqueue] = {
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


def test_nor_in_a_transaction_that_sees_the_past(
    level: str, own: OwnConnection
) -> None:
    """Whether the job was seen in the queue, or not."""

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


def test_what_the_check_of_the_archive_tried_is_not_left(
    level: str, own: OwnConnection
) -> None:
    with transaction.atomic():
        JobType.objects.count()
        assert jobs.add.using(id=ID).enqueue(1).id == ID
        assert jobs.add.using(id=ID).enqueue(1).id == ID
        jobs.add.enqueue(2)
    assert where_it_is() == ["queued"]
    assert archived() == []
    assert len(queued()) == 2


def test_a_duplicate_that_comes_this_moment_is_found(
    level: str, own: OwnConnection, pool: ThreadPoolExecutor
) -> None:
    first = jobs.add_alone.enqueue(0)
    row = own.fetch(
        "SELECT jobqueue_unique_key(job_type, unique_rule, '{\"a\": 1}') "
        "FROM jobqueue_queuedjob JOIN jobqueue_jobtype ON name = job_type"
    )
    with open_transaction(own) as other:
        other.run(
            "INSERT INTO jobqueue_queuedjob (id, job_type, unique_key, data) VALUES "
            "(%(id)s, 'tests.sample.add_alone', %(key)s, '{\"a\": 1}')",
            {"id": ID, "key": row[0][0]},
        )
        one: Future[Any] = submit(pool, lambda: jobs.add_alone.enqueue(1))
        until_waiting()
    with pytest.raises(DuplicateJob) as caught:
        one.result(20)
    assert caught.value.job is not None
    assert caught.value.job.id == ID
    many = jobs.add_alone.using(on_duplicate="return")
    assert many.enqueue_many([{"a": 0}, {"a": 1}]) == [first.id, ID]


def test_two_bulk_replays_at_once_replay_each_job_once(
    level: str, pool: ThreadPoolExecutor
) -> None:
    for _ in range(5):
        ArchivedJob.objects.create(
            id=new_id(), job_type_id=jobs.add.name, status="failed"
        )
    drafts = [
        operations.bulk.draft("replay", Selection(Table.ARCHIVED), by="anna")
        for _ in range(2)
    ]
    for draft in drafts:
        operations.bulk.start(draft.id)
    QueuedJob.objects.all().delete()  # those that would do it

    def work(n: int) -> None:
        bulk_steps.step(drafts[n].id, max_rows=100)

    with ThreadPoolExecutor(2) as both:
        futures = [submit(both, lambda n=n: work(n)) for n in range(2)]  # type: ignore[misc]
        for future in futures:
            future.result(20)
    assert len(queued(replay_of__isnull=False)) == 5


@pytest.mark.parametrize("pooled", [False, True])
def test_a_limit_holds_under_each_level(level: str, pooled: bool) -> None:
    limited = jobs.write_limited
    for _ in range(8):
        limited.enqueue("/dev/null")

    def claim_some() -> int:
        with closing(OwnConnection("tests", pooled=pooled)) as own:
            claimed = claim.claim_limited(own, register(own), [lane(limited.name)], 2)
            return len(claimed)

    for _ in range(3):
        together([claim_some] * 4)
        assert QueuedJob.objects.filter(status="running").count() == 2


def test_a_worker_does_everything_under_each_level(
    level: str, worker: HandDriven, journal: str
) -> None:
    jobs.add.enqueue(1)
    jobs.fail.enqueue()
    jobs.say.enqueue("cancel")
    jobs.write_once.enqueue(journal)
    jobs.write_limited.enqueue(journal)
    jobs.write_atomic.enqueue(journal, "name")
    jobs.followed.enqueue()
    worker.work()
    assert queued() == []
    done = {job.job_type_id.rpartition(".")[2]: job.status for job in archived()}
    assert done == {
        "add": "succeeded",
        "fail": "failed",
        "say": "cancelled",
        "write_once": "succeeded",
        "write_limited": "succeeded",
        "write_atomic": "succeeded",
        "followed": "succeeded",
        "report": "succeeded",
    }


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


def test_a_replay_is_made_under_each_level(level: str) -> None:
    again = replay(an_archived_job())
    assert queued(id=again.id)[0].replay_of == ID
