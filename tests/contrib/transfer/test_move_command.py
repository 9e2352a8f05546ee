"""``jobqueue move``: each job ends in one of both databases, once, as it was."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management.base import CommandError
from django.db import OperationalError, connections, transaction
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from django_jobqueue import operations
from django_jobqueue.contrib.transfer import moving, moving_jobs
from django_jobqueue.models import ArchivedJob, AuditEntry, JobType, QueuedJob, Worker
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import DjangoDatabase
from tests.commands.conftest import Manage, Said, Terminal, jobqueue, refusal
from tests.sample import jobs
from tests.store.rows import ADD, LIMITED, ONCE, ago, archive, job_type, make, make_many
from tests.support.commands import ForkedProcess, worker_environment
from tests.support.database import own_database
from tests.support.hand_driven import HandDriven
from tests.support.prepared_process import run_code
from tests.support.second_database import SECOND, second  # noqa: F401
from tests.support.selection import some_slow

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", SECOND])

TO = f"move --to {SECOND}"
ALL = f"{TO} --queue default --yes"


@pytest.fixture(autouse=True)
def batches_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (moving, moving_jobs):
        monkeypatch.setattr(module, "BATCH", 2)


def move(which: str) -> dict[str, Any]:
    said: dict[str, Any] = jobqueue(f"{TO} --yes --format json {which}").json
    return said


def here(**filters: Any) -> set[UUID]:
    """The ids of the jobs that are queued or run in the first database."""
    return set(QueuedJob.objects.filter(**filters).values_list("id", flat=True))


def there(**filters: Any) -> set[UUID]:
    rows = QueuedJob.objects.using(SECOND).filter(**filters)
    return set(rows.values_list("id", flat=True))


def holders() -> int:
    return sum(
        Worker.objects.using(alias).filter(state="moving").count()
        for alias in ("default", SECOND)
    )


def during(
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    act: Callable[[], Any],
    module: Any = moving_jobs,
) -> None:
    """Do this once, just before a step of the next move."""
    real, done = getattr(module, step), []

    def acting(*arguments: Any) -> Any:
        if not done:
            done.append(True)
            act()
        return real(*arguments)

    monkeypatch.setattr(module, step, acting)


def test_jobs_arrive_with_every_column() -> None:
    plain = make(data={"a": 1.10, "b": 12345678901234567890123})
    rich = jobs.add.using(
        queue="default",
        priority=7,
        tags=["vip"],
        timeout=90,
        expires_in=3600,
        run_after=timedelta(hours=1),
    ).enqueue(1, b=2)
    tried = make(
        attempts=3, crashes=2, fence=9, quarantined=True, metadata={"x": [None]}
    )
    before = {row["id"]: row for row in QueuedJob.objects.values()}

    said = move("--queue default")

    assert (said["verb"], said["count"], said["skipped"]) == ("move", 3, {})
    assert here() == set()
    after = {row["id"]: row for row in QueuedJob.objects.using(SECOND).values()}
    assert after.keys() == before.keys() == {plain, rich.id, tried}
    for id, row in before.items():
        assert after[id] | {"announce": True} == row | {"announce": True}
    assert holders() == 0
    audit = AuditEntry.objects.order_by("id").values_list("verb", "count", "details")
    assert [*audit] == [("move", count, {"to": SECOND}) for count in (2, 1)]


def test_no_job_counts_as_started_where_it_arrives_or_stays() -> None:
    """In a strict key it would hold back all that is enqueued after it."""
    jobs.add_alone.enqueue(1)
    jobs.add_alone.using(using=SECOND).enqueue(1)
    moved = make(run_after=ago(-3_600))
    assert move("--queue default")["count"] == 1
    for alias in ("default", SECOND):
        assert not QueuedJob.objects.using(alias).exclude(fence=0).exists()
    assert moved in there()


def test_numbers_keep_all_their_digits() -> None:
    id = make()
    digits = "1.00000000000000000000000000000000001"
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "UPDATE jobqueue_queuedjob SET data = %s::jsonb", [f'{{"a": {digits}}}']
        )
    move(str(id))
    with connections[SECOND].cursor() as cursor:
        cursor.execute("SELECT data ->> 'a' FROM jobqueue_queuedjob")
        assert cursor.fetchone() == (digits,)


def test_a_worker_there_runs_what_was_moved(
    make_worker: Callable[..., HandDriven], settings: Any
) -> None:
    id = jobs.add.enqueue(1).id
    move(str(id))
    settings.JOBQUEUE = {"DATABASE": SECOND}
    worker = make_worker()
    worker.work()
    job = operations.get_job(id, using=SECOND)
    assert (job.status, job.result, job.attempts) == ("succeeded", 1, 1)
    worker.close()


def test_it_takes_several_batches_and_those_of_the_filter_alone() -> None:
    chosen = make_many(5, queue="mail")
    other = make(queue="web")
    said = jobqueue(f"{TO} --where queue:mail --yes")
    assert said.out == "5 jobs were moved to second.\n"
    assert (here(), there()) == ({other}, set(chosen))


def test_more_than_one_needs_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = set(make_many(2))
    line = f"{TO} --queue default"
    assert refusal(line).startswith(
        "2 jobs would be moved to second. More than one needs confirmation"
    )
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert refusal(line) == "Nothing was moved to second."
    assert (here(), there(), holders()) == (ids, set(), 0)
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    said = jobqueue(line)
    assert said.err == "2 jobs will be moved to second. Go on? [y/N] "
    assert (here(), there()) == (set(), ids)
    monkeypatch.undo()
    one = make()
    jobqueue(line)
    assert there() == {*ids, one}


def test_a_dry_run_changes_nothing() -> None:
    (first, *_) = ids = make_many(3)
    said = jobqueue(f"{TO} --type {ADD} --dry-run")
    assert said.out.startswith("3 jobs would be moved to second.\nFor example:\n")
    assert str(first) in said.out
    values = move(f"--type {ADD} --dry-run")
    assert (values["dry_run"], values["count"]) == (True, 3)
    assert set(values["ids"]) == set(map(str, ids))
    assert (here(), there(), holders()) == (set(ids), set(), 0)


def test_ids_come_from_standard_input_and_each_that_stays_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting, over = make(), archive()
    running = make(status="running", worker_id=1)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{waiting} {over}\n{running}"))
    assert refusal(f"{TO} -") == (
        f"Job {over} has finished already (succeeded).\n"
        f"Job {running} is running; only a job that waits can be moved."
    )
    assert (here(), there()) == ({running}, {waiting})
    assert refusal(f"{TO} {waiting}") == f"Job {waiting} is in second already."


def test_jobs_of_at_most_once_types_stay_with_the_reason() -> None:
    once, waiting = make(ONCE), make()
    why = (
        "1 job stays: between two databases nobody can promise that a handler is "
        "started at most once, as their types do."
    )
    assert refusal(f"{TO} --type {ONCE} --yes") == f"Nothing was moved. {why}"
    dry = jobqueue(f"{TO} --queue default --dry-run").out
    assert dry.startswith(f"1 job would be moved to second. {why}\n")
    assert move("--queue default")["skipped"] == {"at_most_once": 1}
    assert (here(), there()) == ({once}, {waiting})


def test_jobs_of_the_queue_itself_stay() -> None:
    job_type("jobqueue.bulk")
    own = make("jobqueue.bulk", queue="jobqueue")
    assert "of the job queue itself" in refusal(f"{TO} {own}")
    assert (here(), there()) == ({own}, set())


def test_ids_that_are_there_stay_here() -> None:
    queued, over, free = make(), make(), make()
    JobType.objects.using(SECOND).get_or_create(name=ADD)
    QueuedJob.objects.using(SECOND).create(id=queued, job_type_id=ADD)
    ArchivedJob.objects.using(SECOND).create(
        id=over, job_type_id=ADD, status="succeeded"
    )
    said = move("--queue default")
    assert (said["count"], said["skipped"]) == (1, {"id_exists": 2})
    assert here(status="queued", attempts=0) == {queued, over}
    assert there(status="queued") == {queued, free}
    assert refusal(f"{TO} {over}") == (
        f"Job {over} stays: a job with this id is in second already."
    )


def test_unique_keys_that_are_there_stay_here_and_stay_unique() -> None:
    mine = jobs.add_alone.enqueue(1)
    jobs.add_alone.using(using=SECOND).enqueue(1)
    other = jobs.add_alone.enqueue(2)
    assert jobqueue(ALL).out == (
        "1 job was moved to second. 1 job stays: other jobs there have their unique "
        "keys.\n"
    )
    assert here(status="queued", attempts=0) == {mine.id}
    assert other.id in there()
    for alias in ("default", SECOND):
        assert not QueuedJob.objects.using(alias).filter(unique_key=None).exists()


def test_a_key_that_is_free_when_the_job_starts_is_not_free_while_it_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = jobs.index.enqueue(1)
    key = QueuedJob.objects.get().unique_key
    keys: list[Any] = []
    look = lambda: keys.append(QueuedJob.objects.get().unique_key)  # noqa: E731
    during(monkeypatch, "stage", look)
    move(str(made.id))
    assert keys == [key]
    assert QueuedJob.objects.using(SECOND).get().unique_key == key


def test_a_type_that_is_not_there_is_declared_if_the_code_has_it() -> None:
    JobType.objects.using(SECOND).all().delete()
    id = make()
    move(f"--type {ADD} --dry-run")
    assert not JobType.objects.using(SECOND).exists()
    move(str(id))
    declared = JobType.objects.using(SECOND).get()
    assert (declared.name, declared.handler) == (ADD, "tests.sample.jobs:add")
    assert there() == {id}


def test_a_type_that_nobody_declares_refuses_all() -> None:
    job_type("gone.away")
    ids = {make("gone.away"), make()}
    said = refusal(ALL)
    assert said.startswith("In the database 'second' there is no job type 'gone.away'")
    assert "manage.py migrate --database second" in said
    assert (here(), there()) == (ids, set())


def test_a_follower_of_a_type_that_nobody_declares_refuses_all() -> None:
    """Else it would never be enqueued there, and nobody would know."""
    JobType.objects.using(SECOND).all().delete()
    job_type("gone.away")
    jobs.add.using(on_success="gone.away").enqueue(1)
    assert "gone.away" in refusal(ALL)
    assert (len(here()), len(there())) == (1, 0)


def test_what_is_paused_here_alone_is_remarked_on() -> None:
    make(queue="mail")
    operations.pause([ADD])
    operations.pause(["mail"], queues=True)
    mail = f"{TO} --queue mail --dry-run"
    assert jobqueue(mail).err == (
        "tests.sample.add is paused here, and not in second: its jobs run there at "
        "once.\nmail is paused here, and not in second: its jobs run there at once.\n"
    )
    JobType.objects.using(SECOND).get_or_create(name=ADD)
    operations.pause([ADD], using=SECOND)
    operations.pause(["mail"], queues=True, using=SECOND)
    assert jobqueue(mail).err == ""


def test_databases_that_cannot_be_are_refused() -> None:
    make()
    assert refusal("move --to secnd --queue default") == (
        "--to: there is no database 'secnd' in DATABASES. Did you mean 'second'?"
    )
    assert refusal("move --queue default") == (
        "Say where to: --to, with an alias of DATABASES."
    )
    assert refusal("move --to default --queue default") == (
        "The jobs are in the database 'default' already: name another one."
    )
    with transaction.atomic():
        assert "A transaction is open on the database 'default'." in refusal(ALL)


@pytest.mark.processes
def test_another_alias_of_the_same_database_is_refused(manage: Manage) -> None:
    id = make()
    url = worker_environment()["DATABASE_URL"]
    started = manage(f"jobqueue {ALL}", SAMPLE_SECOND_DATABASE=url)
    assert started.wait() == 1
    why = "The jobs are in the database 'second' already: name another one."
    assert started.said == Said("", f"CommandError: {why}\n")
    assert (here(status="queued"), holders()) == ({id}, 0)


def test_a_cancel_meanwhile_cancels_the_job_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for step in ("read", "stage", "delete"):
        with monkeypatch.context() as patched:
            id = make()
            during(patched, step, lambda id=id: operations.cancel([id]))
            assert move("--queue default")["count"] == 0
        job = ArchivedJob.objects.get(pk=id)
        assert (job.status, job.attempts) == ("cancelled", 0)
    assert (here(), there(), holders()) == (set(), set(), 0)


def test_a_cancel_there_before_it_waits_cancels_it_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    id = make()
    during(monkeypatch, "delete", lambda: operations.cancel([id], using=SECOND))
    assert move("--queue default")["count"] == 1
    job = ArchivedJob.objects.using(SECOND).get()
    assert (job.pk, job.status, job.attempts) == (id, "cancelled", 0)
    assert (here(), there()) == (set(), set())


def test_workers_and_rescues_leave_alone_what_is_held(
    monkeypatch: pytest.MonkeyPatch, make_worker: Callable[..., HandDriven]
) -> None:
    id = make(LIMITED, data={"journal": os.devnull})
    seen: list[Any] = []

    def look_around() -> None:
        make_worker().work()
        for alias in ("default", SECOND):
            seen.append(worker_rows.strays(DjangoDatabase(alias)))
            seen.append(operations.release([id], using=alias))
        seen.append(here(status="running") == there(status="running") == {id})

    during(monkeypatch, "delete", look_around)
    assert move("--queue default")["count"] == 1
    assert seen == [[], [], [], [], True]
    assert there(status="queued", attempts=0, crashes=0) == {id}


def test_ctrl_c_ends_it_between_two_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = set(make_many(3))
    during(monkeypatch, "stage", lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(CommandError) as interrupted:
        jobqueue(ALL)
    assert interrupted.value.returncode == 128 + signal.SIGINT
    assert str(interrupted.value) == "Interrupted. 2 jobs were moved to second."
    assert here(status="queued") | there(status="queued") == ids
    assert (len(here()), holders()) == (1, 0)


def test_a_database_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = {make(), make()}

    def fail() -> None:
        raise OperationalError("connection lost")

    during(monkeypatch, "stage", fail)
    assert refusal(ALL) == (
        "The database 'second' cannot be used: connection lost. Jobs that were moving "
        "are held: the next jobqueue move --to second goes on with them."
    )
    lapse()
    assert move("--queue default")["count"] == 2
    assert (here(), there(status="queued"), holders()) == (set(), ids, 0)


def test_what_others_have_locked_is_released_by_the_next_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moving, "PATIENCE", 0.0)
    id = make()
    locking = connections[SECOND].copy(SECOND)

    def lock() -> None:
        locking.set_autocommit(False)
        locking.cursor().execute(
            "SELECT FROM jobqueue_queuedjob WHERE id = %s FOR UPDATE", [id]
        )

    during(monkeypatch, "recover", lock, moving.release)
    assert jobqueue(ALL).err == (
        "1 job could not be released, since others have locked their rows. Write "
        "later: jobqueue move --to second\n"
    )
    locking.rollback()
    locking.close()
    assert (here(), there(status="running")) == (set(), {id})
    lapse()
    assert jobqueue(TO).out == "1 job was moved to second.\n"
    assert there(status="queued", attempts=0) == {id}
    assert holders() == 0


def lapse() -> None:
    for alias in ("default", SECOND):
        moves = Worker.objects.using(alias).filter(state="moving")
        moves.update(lease_until=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize(
    "step",
    some_slow(
        ["hold", "read", "stage", "delete", "drop", "recover"], ["stage", "recover"]
    ),
)
def test_a_move_that_was_taken_for_dead_neither_loses_nor_doubles(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one takes over while it stands still, and then it goes on."""
    ids = set(make_many(3))

    def take_over() -> None:
        lapse()
        jobqueue(ALL)
        assert (here(), there(status="queued")) == (set(), ids)

    module: Any = moving.release if step == "recover" else moving_jobs
    with monkeypatch.context() as patched:
        during(patched, step, take_over, module)
        try:
            jobqueue(ALL)
        except CommandError as error:
            assert "Another move has taken over" in str(error)  # noqa: PT017
    assert (here(), there(status="queued", attempts=0)) == (set(), ids)


def test_a_move_that_goes_on_keeps_what_it_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second_one = make(queue="mail"), make(queue="web")
    seen: list[str] = []

    def move_another() -> None:
        seen.append(jobqueue(f"{TO} --queue web --yes").err)

    during(monkeypatch, "stage", move_another)
    jobqueue(f"{TO} --queue mail --yes")
    assert seen[0].startswith("Another move to this database goes on, or died less")
    assert there(status="queued", attempts=0) == {first, second_one}
    assert holders() == 0


KILLED = """
import os, signal
from django.core.management import call_command
from django_jobqueue.contrib.transfer import moving, moving_jobs
from django_jobqueue.store.queue import release

module = release if {step!r} == "recover" else moving_jobs
real, calls = getattr(module, {step!r}), 0


def killing(*arguments):
    global calls
    calls += 1
    if calls == {call} and {when!r} == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*arguments)
    if calls == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
    return result


setattr(module, {step!r}, killing)
moving.BATCH = moving_jobs.BATCH = 2
call_command("jobqueue", "move", "--to", "second", "--queue", "default", "--yes")
"""
# The step, and which of its calls: some are for one database and then for the other.
BOUNDARIES = [
    *[("register", n) for n in (1, 2)],
    *[("take_over", n) for n in (1, 2)],
    *[("renew", n) for n in (1, 2, 3)],
    *[("hold", n) for n in (1, 2)],
    *[("read", n) for n in (1, 2)],
    *[("stage", n) for n in (1, 2)],
    *[("delete", n) for n in (1, 2)],
    *[("drop", n) for n in (1, 2)],
    *[("recover", n) for n in (1, 2, 3, 4)],
    *[("forget", n) for n in (1, 2)],
]
KILLS = [
    (step, call, when) for step, call in BOUNDARIES for when in ("before", "after")
]
ALWAYS = [(step, 1, "after") for step in ("stage", "delete", "recover")]


@pytest.fixture
def killed(tmp_path: Path) -> Callable[..., None]:
    names = [connections[alias].settings_dict["NAME"] for alias in ("default", SECOND)]
    environment = worker_environment()
    url = environment["DATABASE_URL"].removesuffix(names[0]) + names[1]
    environment["SAMPLE_SECOND_DATABASE"] = url
    log = tmp_path / "killed.log"

    def kill(step: str, call: int, when: str) -> None:
        code = KILLED.format(step=step, call=call, when=when)
        process = ForkedProcess(run_code, code, environment, str(log), str(log))
        assert process.wait(60) == -signal.SIGKILL, log.read_text()

    return kill


@pytest.mark.processes
@pytest.mark.parametrize(("step", "call", "when"), some_slow(KILLS, ALWAYS))
def test_kill_9_at_any_step_neither_loses_nor_doubles(
    step: str, call: int, when: str, killed: Callable[..., None]
) -> None:
    ids = set(make_many(3, attempts=1, run_after=ago(60)))
    killed(step, call, when)

    # Nobody can claim a job twice, and the rescue takes none.
    assert here() | there() == ids
    assert here(status="queued") & there() == set()
    assert here() & there(status="queued") == set()
    for alias in ("default", SECOND):
        assert worker_rows.strays(DjangoDatabase(alias)) == []

    jobqueue(ALL)
    assert here() == set()
    assert there(status="queued", attempts=1, crashes=0, worker_id=None) == ids
    assert holders() == 0


@pytest.mark.processes
def test_without_a_filter_it_only_ends_what_was_killed(
    killed: Callable[..., None],
) -> None:
    ids = set(make_many(3))
    killed("delete", 1, "after")
    said = jobqueue(f"{TO} --dry-run")
    assert said.err.startswith("2 jobs more are held by a move that goes on, or was ki")
    assert there(status="queued") == set()
    assert jobqueue(TO).out == "2 jobs were moved to second.\n"
    assert here(status="queued") | there(status="queued") == ids
    assert len(there()) == 2
    assert jobqueue(TO).out == "0 jobs were moved to second.\n"


@pytest.mark.parametrize(("step", "where"), [("stage", "default"), ("drop", SECOND)])
def test_what_is_held_is_released_where_the_other_database_is_lost(
    step: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The move ended before it staged the jobs, or after it deleted them here."""
    ids = set(make_many(2, attempts=1))
    with monkeypatch.context() as patched:
        during(patched, step, lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            jobqueue(ALL)
    assert operations.release(ids, using=where) == []  # the move may live
    lapse()
    if where == "default":  # how all ids are found
        shown = jobqueue("dump", "--where", f'worker:"move to {SECOND}"').out
        assert {UUID(json.loads(line)["id"]) for line in shown.splitlines()} == ids
    kept, cancelled = sorted(ids)
    jobs_there = QueuedJob.objects.using(where)
    jobs_there.filter(pk=cancelled).update(cancel_requested_at=timezone.now())
    released = operations.release(ids, using=where)
    assert {one.id: one.status for one in released} == {
        kept: "queued",
        cancelled: "cancelled",
    }
    (row,) = jobs_there.values("status", "attempts", "crashes")
    assert row == {"status": "queued", "attempts": 1, "crashes": 0}
    assert ArchivedJob.objects.using(where).get().status == "cancelled"


@pytest.fixture
def third(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The name of a database that another project has under one of our aliases."""
    name = f"{connections['default'].settings_dict['NAME']}_third"
    with own_database("third", name, django_db_blocker):
        yield name


@contextmanager
def leading_to(alias: str, name: str) -> Iterator[None]:
    """The alias is that of another database meanwhile."""
    wrapper = connections[alias]
    own = wrapper.settings_dict["NAME"]
    for database in (name, own):
        wrapper.close()
        wrapper.settings_dict["NAME"] = database
        if database != own:
            yield


@pytest.mark.parametrize("alias", ["default", SECOND])
@pytest.mark.parametrize("step", ["stage", "delete", "drop"])
def test_a_move_leaves_alone_what_one_of_other_databases_held(
    alias: str, step: str, third: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two projects call different databases by the same alias."""
    ids = set(make_many(3))
    with monkeypatch.context() as patched:
        during(patched, step, lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            jobqueue(ALL)
    lapse()
    with leading_to(alias, third):
        assert jobqueue(TO).out == "0 jobs were moved to second.\n"
    jobqueue(ALL)
    assert (here(), there(status="queued")) == (set(), ids)
    assert holders() == 0
