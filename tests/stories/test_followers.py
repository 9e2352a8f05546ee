"""Jobs that follow on others: one for each end, whatever brings it about."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test import override_settings

from django_jobqueue import (
    InvalidArguments,
    Job,
    UnknownJobType,
    cancel,
    enqueue,
    job,
    operations,
)
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.tables import differing, refusal

pytestmark = pytest.mark.django_db(transaction=True)

Make = Callable[..., HandDriven]
REPORT = "tests.sample.report"


def followers() -> list[Any]:
    """The data of all jobs that followed, done or not."""
    waiting = [row.data for row in queued(job_type_id=REPORT)]
    return waiting + [row.data for row in archived(job_type_id=REPORT)]


def told(made: Job, status: str) -> list[dict[str, str]]:
    """What the one follower of this job is told."""
    return [{"job": str(made.id), "status": status}]


def test_no_retry_pruning_or_undone_end_is_followed(worker: HandDriven) -> None:
    jobs.followed.enqueue("error")
    worker.turn()
    assert [row.attempts for row in queued()] == [1]
    assert followers() == []
    QueuedJob.objects.all().delete()
    made = jobs.followed.enqueue()
    with transaction.atomic():
        cancel([made.id])
        assert len(followers()) == 1
        transaction.set_rollback(True)
    assert followers() == []
    worker.work()
    operations.prune_jobs([made.id])
    worker.work()
    assert not ArchivedJob.objects.filter(id=made.id).exists()
    assert followers() == told(made, "succeeded")


def test_any_job_can_be_followed(worker: HandDriven) -> None:
    made = jobs.add.using(on_complete=jobs.report).enqueue(1)
    named = enqueue("tests.sample.add", {"a": 2}, on_complete=REPORT)
    many = jobs.add.using(on_complete=REPORT).enqueue_many([{"a": 3}, {"a": 4}])
    good, bad = jobs.followed.enqueue_many([{}, {"word": "fail"}])
    atomic, failed = jobs.followed_atomic.enqueue_many([{}, {"fails": True}])
    jobs.add.enqueue(5)
    worker.work()
    wanted = {str(id): "succeeded" for id in (made.id, named.id, *many, good, atomic)}
    wanted |= {str(bad): "failed", str(failed): "failed"}
    assert {one["job"]: one["status"] for one in followers()} == wanted


def test_types_without_a_declaration_or_a_row_are_followed(worker: HandDriven) -> None:
    JobType.objects.create(name="elsewhere.send", followers={"on_complete": [REPORT]})
    cancel([enqueue("elsewhere.send").id for _ in range(2)])
    assert len(followers()) == 2
    QueuedJob.objects.all().delete()
    JobType.objects.filter(name__in=[REPORT, "tests.sample.followed"]).delete()
    made, late = jobs.followed.enqueue(), jobs.followed.enqueue()
    assert JobType.objects.filter(name=REPORT).exists()
    cancel([made.id])
    assert followers() == told(made, "cancelled")
    QueuedJob.objects.filter(job_type_id=REPORT).delete()
    JobType.objects.filter(name=REPORT).delete()  # it vanished meanwhile
    worker.work()
    assert [row.status for row in archived(id=late.id)] == ["succeeded"]
    assert followers() == []


def test_a_follower_that_nobody_knows_is_refused_at_the_enqueue() -> None:
    handler = jobs.add.using(on_complete="tests.sample.reprot")
    for call in (lambda: handler.enqueue(1), lambda: handler.enqueue_many([{"a": 1}])):
        with pytest.raises(UnknownJobType, match=r"'tests\.sample\.report'"):
            call()
    assert not QueuedJob.objects.exists()


def finish(job: str, status: str) -> None: ...


def test_a_follower_that_cannot_be_is_refused_when_it_is_declared_or_used() -> None:
    needs = "must be a handler that needs nothing but job, status, result, error_class "
    needs += "and error_message: tests.sample.jobs.add() is missing 'a'."
    itself = "must be another job type than 'stories.itself', which would follow on "
    itself += "itself forever."
    name, declared = "stories.itself", [("stories.itself", itself), (jobs.add, needs)]
    for option, problem in declared:
        with pytest.raises(ImproperlyConfigured) as caught:
            job(name=name, on_complete=option)(finish)  # type: ignore[call-overload]
        assert str(caught.value) == f"@job on {__name__}.finish: on_complete {problem}"
        assert registry.get(name) is None
    rows: list[tuple[Any, str]] = [
        (jobs.report, "on_complete must be another job type than"),
        (jobs.add, "on_complete must be a handler that needs nothing "),
        ("two words", "on_complete must have no space and no control"),
        (7, "on_complete must be a handler, or the name of a job type"),
    ]

    def said(follower: Any) -> str:
        use = partial(jobs.report.using, on_complete=follower)
        return refusal(InvalidArguments, use)

    assert differing(rows, said, str.startswith) == []


def types(rows: list[Any]) -> list[str]:
    return [row.job_type_id.rpartition(".")[2] for row in rows]


def test_a_chain_runs_where_jobs_run_at_once() -> None:
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        with pytest.raises(ValueError, match="the middle fails"):
            jobs.chain_a.using(metadata={"trace": "7"}).enqueue()
        kept = [one.job for one in memory]
        memory.clear()
    names = [job.job_type.rpartition(".")[2] for job in kept]
    assert names == ["chain_a", "chain_b", "chain_c"]
    assert [job.metadata for job in kept] == [{"trace": "7"}] * 3


def test_a_unique_follower_has_the_data_of_the_first(make_worker: Make) -> None:
    worker = make_worker(queues=("default",))
    of_add, of_fail = (
        handler.using(on_complete="tests.sample.follow_with_options", max_attempts=1)
        for handler in (jobs.add, jobs.fail)
    )
    of_add.enqueue_many([{"a": n} for n in range(5)])
    worker.work()
    assert len(archived()) == 5
    assert types(queued()) == ["follow_with_options"]
    of_fail.enqueue()
    worker.work()
    assert [row.data["status"] for row in queued()] == ["succeeded", "failed"]


def test_a_follower_that_waits_already_is_claimed_after_the_job_before_is_archived(
    make_worker: Make, own: OwnConnection
) -> None:
    """It must see what that job did."""
    followed = jobs.add.using(on_complete="tests.sample.follow_with_options")
    first, second = followed.enqueue(1), followed.enqueue(2)
    cancel([first.id])
    worker = make_worker(queues=("mail",))
    with transaction.atomic():
        cancel([second.id])
        worker.work()
        assert len(queued()) == 1, "the archiving keeps it from being claimed"
    worker.work()
    assert types(archived()) == ["add", "add", "follow_with_options"]
