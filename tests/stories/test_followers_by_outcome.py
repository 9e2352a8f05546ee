"""Followers by outcome: which end enqueues which, with what, in which modes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import (
    Fail,
    Handler,
    InvalidArguments,
    cancel,
    enqueue,
    job,
    operations,
    replay,
)
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.job_options import OF_JOB
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.enqueueing.stored_options import NOT_OF_FOLLOWERS, follower_job
from django_jobqueue.models import JobType, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue import expire, rescue
from django_jobqueue.store.queue.insert import insert
from django_jobqueue.testing import drain
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.undone import check_each

pytestmark = pytest.mark.django_db(transaction=True)

GOOD: Final = {("on_success", "on_good"), ("on_complete", "on_any")}
REPORT: Final = "tests.sample.report"
BAD: Final = {
    ("on_failure", "on_bad"),
    ("on_failure", "without_arguments"),
    ("on_complete", "on_any"),
}
NEITHER: Final = {("on_complete", "on_any")}
FOLLOWED_BY: Final[Mapping[str, set[tuple[str, str]]]] = {
    "succeeded": GOOD,
    "failed": BAD,
    "expired": BAD,
    "cancelled": NEITHER,
}


def short(name: str) -> str:
    return name.rpartition(".")[2]


def followers_of(id: UUID) -> list[Any]:
    """The jobs that follow on this one, wherever they are."""
    return [*queued(follows=id), *archived(follows=id)]


def enqueued(id: UUID) -> set[tuple[str, str]]:
    """Who enqueued which follower of this job."""
    found = followers_of(id)
    pairs = {(row.enqueued_by, short(row.job_type_id)) for row in found}
    assert len(pairs) == len(found), "each follower once"
    return pairs


def work(worker: HandDriven, *words: str) -> UUID:
    made = jobs.end_with.enqueue(*words)
    worker.work()
    return made.id


def lose(worker: HandDriven, own: OwnConnection, handler: Handler[..., Any]) -> UUID:
    """The worker dies while it runs a job."""
    worker.work()
    id = handler.enqueue().id
    worker.claim()
    rescue.rescue(own, [worker.worker.id], crashed=True, reason="killed")
    return id


def expired() -> UUID:
    past = timezone.now() - timedelta(seconds=1)
    made = jobs.end_with.using(expires_at=past).enqueue()
    expire.expire(DjangoDatabase())
    return made.id


def ended_by(verb: Callable[[list[UUID]], object]) -> UUID:
    """By an operator, who asks twice."""
    made = jobs.end_with.enqueue()
    verb([made.id])
    verb([made.id])
    return made.id


def failed_by_hand(ids: list[UUID]) -> None:
    operations.fail(ids, reason="no")


def cancelled_in_bulk(ids: list[UUID]) -> None:
    chosen = Selection(Table.QUEUED, (Term("type", "tests.sample.end_with"),))
    operation = bulk.draft("cancel", chosen, by="anna", here=True)
    assert bulk.start(operation.id, by="anna", here=True)
    while (done := bulk.WORK.do_chunk(operation.id, max_rows=10)) and not done.over:
        pass


def drained() -> UUID:
    made = jobs.end_with.enqueue()
    drain()
    return made.id


def test_each_end_has_its_followers(worker: HandDriven, own: OwnConnection) -> None:
    def check(bring_about: Callable[[], UUID], status: str) -> None:
        id = bring_about()
        assert archived(id=id)[0].status == status
        assert enqueued(id) == FOLLOWED_BY[status]

    ends: list[tuple[Callable[[], UUID], str]] = [
        (lambda: work(worker), "succeeded"),
        (drained, "succeeded"),
        (lambda: work(worker, "error"), "failed"),  # its last attempt
        (lambda: work(worker, "fail"), "failed"),
        (lambda: work(worker, "cancel"), "cancelled"),
        (expired, "expired"),
        (lambda: ended_by(cancel), "cancelled"),
        (lambda: ended_by(cancelled_in_bulk), "cancelled"),
        (lambda: ended_by(failed_by_hand), "failed"),
        (lambda: lose(worker, own, jobs.end_with), "failed"),
    ]
    check_each(check, ends)


def test_a_lost_at_most_once_job_has_failed(
    worker: HandDriven, own: OwnConnection
) -> None:
    id = lose(worker, own, jobs.end_once)
    assert enqueued(id) == {("on_failure", "on_bad")}
    error = {"error_message": "outcome unknown: killed"}
    error["error_class"] = archived(id=id)[0].error_class
    assert queued(follows=id)[0].data == {"status": "failed", **error}


def test_jobs_that_run_at_once_have_the_same_followers(worker: HandDriven) -> None:
    def check(word: str, expected: set[tuple[str, str]]) -> None:
        first = work(worker, *filter(None, [word]))
        there = {row.job_type_id: row for row in archived(follows=first)}
        pairs = {(row.enqueued_by, short(row.job_type_id)) for row in there.values()}
        assert pairs == expected
        with override_settings(JOBQUEUE={"MODE": "immediate"}):
            raised = {"error": ValueError, "fail": Fail}.get(word)
            with pytest.raises(raised) if raised else nullcontext():
                jobs.end_with.enqueue(word)
            made, *here = [one.job for one in memory]
            memory.clear()
        assert {short(one.job_type) for one in here} == {name for _, name in expected}
        for one in here:
            row = there[one.job_type]
            of_here = {"job": str(made.id)} if "job" in row.data else {}
            assert one.data == {**row.data, **of_here}
            assert one.result == ({**row.result, **of_here} if of_here else row.result)

    check_each(check, [("", GOOD), ("error", BAD), ("fail", BAD), ("cancel", NEITHER)])


def test_every_follower_runs_at_once_though_one_of_them_fails() -> None:
    def fail(status: str) -> None:
        raise LookupError("the first follower")

    handler = job(name="stories.fails")(fail)
    try:
        both = jobs.add.using(on_success=[handler, jobs.on_good])
        with override_settings(JOBQUEUE={"MODE": "immediate"}):
            with pytest.raises(LookupError, match="the first follower"):
                both.enqueue(1, 2)
            names = [short(one.job.job_type) for one in memory]
            memory.clear()
    finally:
        registry.remove("stories.fails")
    assert names == ["add", "fails", "on_good"]


def test_a_chain_passes_each_result_and_the_metadata_on(worker: HandDriven) -> None:
    jobs.count_one.using(metadata={"trace": "7"}).enqueue(21)
    worker.work()
    rows = archived()
    names = [short(row.job_type_id) for row in rows]
    assert names == ["count_one", "double", "report_number"]
    assert [row.result for row in rows] == [21, 42, "it is 42"]
    assert [row.follows for row in rows] == [None, rows[0].id, rows[1].id]
    assert [row.metadata for row in rows] == [{"trace": "7"}] * 3


def test_a_chain_of_one_job_ends_where_a_link_fails(worker: HandDriven) -> None:
    last = jobs.on_any.using(tags=["last"])
    chain = jobs.add.using(
        on_success=jobs.on_good.using(tags=["second"], on_success=last)
    )
    ids = chain.enqueue_many([{"a": 1, "b": 2}, {"a": 3}])
    broken = jobs.fail.using(max_attempts=1, on_success=last)
    ends = jobs.add.using(on_success=broken).enqueue(1).id
    worker.work()
    for id, result in zip(ids, (3, 3), strict=True):
        (second,) = archived(follows=id)
        (third,) = archived(follows=second.id)
        assert [second.tags, third.tags] == [["second"], ["last"]]
        assert second.result == third.result["result"] == result
        assert third.result["job"] == str(second.id)
    assert followers_of(archived(follows=ends)[0].id) == []


def test_followers_of_a_job_replace_those_of_its_type(worker: HandDriven) -> None:
    made = jobs.end_with.using(on_success=["tests.sample.without_arguments"])
    none = jobs.end_with.using(on_success=(), on_complete=[])
    first, second = made.enqueue().id, none.enqueue().id
    third = enqueue("tests.sample.end_with", on_success=jobs.report).id
    worker.work()
    any_, success = ("on_complete", "on_any"), "on_success"
    assert enqueued(first) == {(success, "without_arguments"), any_}
    assert enqueued(second) == set()
    assert enqueued(third) == {(success, "report"), any_}


def test_the_same_follower_is_enqueued_once(worker: HandDriven) -> None:
    named = [jobs.on_any, "tests.sample.on_any", jobs.on_any.using(tags=["other"])]
    made = jobs.add.using(on_success=named, on_complete=jobs.on_any).enqueue(1)
    later = jobs.without_arguments.using(unique_key="k", run_after=timedelta(hours=1))
    both = jobs.add.using(on_success=[later, jobs.on_good])
    ids = both.enqueue_many([{"a": n} for n in range(3)])
    worker.work()
    assert [row.tags for row in archived(follows=made.id)] == [None, ["other"]]
    assert {row.status for row in archived(id__in=ids)} == {"succeeded"}
    assert len(archived(job_type="tests.sample.on_good")) == 3
    assert len(queued(job_type_id="tests.sample.without_arguments")) == 1


def test_a_replay_has_followers_of_its_own(worker: HandDriven) -> None:
    first = work(worker)
    again = replay(first).id
    worker.work()
    assert enqueued(first) == enqueued(again) == GOOD
    follower = archived(follows=first)[0]
    repeated = replay(follower.id).id
    assert queued(id=repeated)[0].follows is None, "no end enqueued it"
    assert queued(id=repeated)[0].data == follower.data


def test_a_type_without_a_declaration_gets_what_its_row_says() -> None:
    JobType.objects.create(name="elsewhere.ends", follower_arguments=["result"])
    JobType.objects.create(name="elsewhere.knows_nothing")
    made = jobs.add.using(
        on_complete=["elsewhere.ends", "elsewhere.knows_nothing"]
    ).enqueue(1)
    cancel([made.id])
    ends, unknown = sorted(queued(follows=made.id), key=lambda row: row.job_type_id)
    assert ends.data == {"result": None}
    assert unknown.data == {"job": str(made.id), "status": "cancelled"}


def test_a_follower_due_at_the_end_of_time_lets_its_job_end() -> None:
    """What is added to that moment would be no moment of a job."""
    latest = datetime(9999, 12, 30, tzinfo=UTC)
    JobType.objects.create(name="elsewhere.ends", expires_in=timedelta(hours=1))
    for given in ({"run_after": latest}, {"expires_at": latest}, {}):
        with connection.cursor() as cursor:  # as plain SQL may say
            id = jobs.add.enqueue(1).id
            entry = {"job_type": "elsewhere.ends"} | {
                name: moment.isoformat() for name, moment in given.items()
            }
            cursor.execute(
                "UPDATE jobqueue_queuedjob SET followers = %s::jsonb WHERE id = %s",
                [json.dumps({"on_complete": [entry]}), id],
            )
        cancel([id])
        (follower,) = queued(follows=id)
        assert follower.run_after <= latest
        assert follower.expires_at <= latest


MOMENT: Final = datetime(2099, 12, 31, 23, 30, tzinfo=UTC)
OPTIONS: Final[dict[str, list[dict[str, Any]]]] = {
    "queue": [{"queue": "mail"}],
    "priority": [{"priority": 0}, {"priority": -7}],
    "max_attempts": [{"max_attempts": 9}],
    "run_after": [{"run_after": timedelta(minutes=5)}, {"run_after": MOMENT}],
    "expires_at": [{"expires_at": MOMENT}],
    "expires_in": [{"expires_in": 90}, {"expires_in": 90, "run_after": timedelta(1)}],
    "timeout": [{"timeout": 5}],
    "backoff": [{"backoff": "fixed"}, {"backoff": 7}],
    "tags": [{"tags": ["ü", 'a"b']}],
    "metadata": [{"metadata": {"trace": "own", "deep": [1, {"a": None}]}}],
    "unique_key": [{"unique_key": "one"}],
    "limit_key": [{"limit_key": "one"}],
    "weight": [{"weight": 7}],
    "unique_until": [{"unique_key": "one", "unique_until": "started"}],
    "on_success": [{"on_success": jobs.on_good}, {"on_success": ()}],
    "on_failure": [{"on_failure": [jobs.on_bad.using(tags=["x"]), REPORT]}],
    "on_complete": [{"on_complete": REPORT}],
}
TAKERS: Final = ("tests.sample.without_arguments", "tests.sample.with_all_options")
# For others a key, or a weight, has no effect.
ONLY: Final = {
    "limit_key": ("tests.sample.count_keyed",),
    "weight": ("tests.sample.write_weighed",),
}
CASES: Final = [
    (given, taker)
    for name, some in OPTIONS.items()
    for given in some
    for taker in ONLY.get(name, TAKERS)
]
SAME: Final = (
    *("queue", "priority", "max_attempts", "timeout", "backoff", "tags", "metadata"),
    *("followers", "limit_key", "weight"),
    *("unique_key", "unique_until_started"),
)


def columns(row: QueuedJob) -> dict[str, Any]:
    """What the options of a job decide."""
    end = row.expires_at
    if end is not None and end != MOMENT:
        end -= row.run_after  # type: ignore[assignment]
    return {**{name: getattr(row, name) for name in SAME}, "end": end}


REFUSED: Final[dict[str, Any]] = {
    "id": "0" * 32,
    "enqueued_by": "anna",
    "using": "default",
    "on_duplicate": "return",
    "debounce": 5,
    "debounce_max": 5,
}


def test_an_option_of_one_job_is_one_of_a_follower_or_refused() -> None:
    assert {*OPTIONS} == {*OF_JOB} - NOT_OF_FOLLOWERS
    assert {*REFUSED} == NOT_OF_FOLLOWERS
    for name, value in REFUSED.items():
        taker = jobs.without_arguments.using(**{name: value})
        with pytest.raises(InvalidArguments) as caught:
            jobs.add.using(on_success=taker)
        assert str(caught.value) == (
            f"on_success names 'tests.sample.without_arguments' with {name}, which a "
            "follower cannot have."
        )
        with pytest.raises(ImproperlyConfigured, match=f"with {name}, which a foll"):
            job(name="stories.refused", on_success=taker)(print_nothing)


def print_nothing() -> None: ...


def check_options(given: dict[str, Any], taker: str) -> None:
    QueuedJob.objects.all().delete()
    declared: Any = registry.sender(taker)
    handler = declared.using(**given)
    direct = queued(id=handler.enqueue().id)[0]
    direct.delete()

    finished = jobs.add.using(on_success=handler).enqueue(1)
    assert archive(finished.id, "succeeded") == 1
    (follower,) = queued(follows=finished.id)
    assert columns(follower) == columns(direct)
    wanted = given.get("run_after", timedelta(0))
    if isinstance(wanted, timedelta):
        wait = follower.run_after - follower.created_at
        assert abs(wait - wanted) < timedelta(seconds=1)
    else:
        assert follower.run_after == wanted
    assert follower.data == {}

    declaration = registry.get(taker)
    assert declaration is not None
    new = follower_job(
        handler.as_follower(), declaration, enqueued_by="on_success", metadata=None
    )
    inserted = insert(DjangoDatabase(), new, new_id(), {}, "{}")
    assert inserted is not None
    here = columns(queued(id=inserted.id)[0])
    without_key = {"unique_key": None, "unique_until_started": False}
    assert here == {**columns(direct), **without_key}


def test_a_follower_has_its_options_as_if_it_were_enqueued() -> None:
    """By the trigger, by an enqueue and in immediate mode."""
    check_each(check_options, CASES, least=40)


def archive(id: UUID, status: str) -> int:
    """Archive this job by plain SQL."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH gone AS (DELETE FROM jobqueue_queuedjob WHERE id = %s RETURNING *) "
            "INSERT INTO jobqueue_archivedjob (id, job_type, followers, status) "
            "SELECT id, job_type, followers, %s FROM gone",
            [id, status],
        )
        return cursor.rowcount


def test_metadata_of_a_follower_adds_to_that_before(worker: HandDriven) -> None:
    """And an operator's priority counts for it."""
    JobType.objects.filter(name="tests.sample.on_any").update(priority_override=42)
    taker = jobs.on_any.using(metadata={"b": 3, "c": 4})
    first = jobs.add.using(metadata={"a": 1, "b": 2}, on_success=taker).enqueue(1)
    own = jobs.add.using(on_success=taker.using(priority=3)).enqueue(1)
    worker.work()
    (of_first,), (of_own,) = archived(follows=first.id), archived(follows=own.id)
    assert (of_first.metadata, of_first.priority) == ({"a": 1, "b": 3, "c": 4}, 42)
    assert (of_own.metadata, of_own.priority) == ({"b": 3, "c": 4}, 3)


def test_wrong_followers_keep_no_job_from_ending(worker: HandDriven) -> None:
    written: list[Any] = [7, "x", [], [1], {"on_success": "x"}]
    written += [{"on_success": {"job_type": "x"}}]
    written += [{"on_success": [7, None, "x", {"a": 1}, {"job_type": None}, ["x"]]}]
    for value in written:
        id = jobs.add.enqueue(1).id
        QueuedJob.objects.filter(id=id).update(followers=value)
    worker.work()
    assert [row.status for row in archived()] == ["succeeded"] * len(written)
