"""Jobs that follow on others: one for each end, whatever brings it about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
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


def test_a_retry_is_not_followed(worker: HandDriven) -> None:
    jobs.followed.enqueue("error")
    worker.claim()
    worker.run()
    worker.finish()
    assert [row.attempts for row in queued()] == [1]
    assert followers() == []


def test_what_is_pruned_is_not_followed_again(worker: HandDriven) -> None:
    made = jobs.followed.enqueue()
    worker.work()
    operations.prune_jobs([made.id])
    worker.work()
    assert not ArchivedJob.objects.filter(id=made.id).exists()
    assert followers() == told(made, "succeeded")


def test_an_atomic_job_is_followed_in_its_own_transaction(worker: HandDriven) -> None:
    made = jobs.followed_atomic.enqueue()
    failed = jobs.followed_atomic.enqueue(fails=True)
    worker.work()
    assert sorted(followers(), key=str) == sorted(
        told(made, "succeeded") + told(failed, "failed"), key=str
    )


def test_an_archiving_that_is_rolled_back_leaves_no_follower() -> None:
    made = jobs.followed.enqueue()
    with transaction.atomic():
        cancel([made.id])
        assert len(followers()) == 1
        transaction.set_rollback(True)
    assert followers() == []
    assert [row.status for row in queued()] == ["queued"]


def test_any_job_can_be_followed(worker: HandDriven) -> None:
    made = jobs.add.using(on_complete=jobs.report).enqueue(1)
    named = enqueue("tests.sample.add", {"a": 2}, on_complete=REPORT)
    many = jobs.add.using(on_complete=REPORT).enqueue_many([{"a": 3}, {"a": 4}])
    good, bad = jobs.followed.enqueue_many([{}, {"word": "fail"}])
    jobs.add.enqueue(5)
    worker.work()
    told = {one["job"]: one["status"] for one in followers()}
    ids = (made.id, named.id, *many, good)
    assert told == {**{str(id): "succeeded" for id in ids}, str(bad): "failed"}


def test_a_type_that_another_process_declares_is_followed() -> None:
    JobType.objects.create(name="elsewhere.send", followers={"on_complete": [REPORT]})
    one = enqueue("elsewhere.send")
    two = enqueue("elsewhere.send")
    cancel([one.id, two.id])
    assert len(followers()) == 2


def test_a_follower_whose_row_is_missing_gets_one() -> None:
    JobType.objects.filter(name__in=[REPORT, "tests.sample.followed"]).delete()
    made = jobs.followed.enqueue()
    assert JobType.objects.filter(name=REPORT).exists()
    cancel([made.id])
    assert followers() == told(made, "cancelled")


def test_a_follower_that_nobody_knows_is_refused_at_the_enqueue() -> None:
    handler = jobs.add.using(on_complete="tests.sample.reprot")
    for call in (lambda: handler.enqueue(1), lambda: handler.enqueue_many([{"a": 1}])):
        with pytest.raises(UnknownJobType, match=r"'tests\.sample\.report'"):
            call()
    assert not QueuedJob.objects.exists()


def test_a_follower_that_vanished_harms_nothing(worker: HandDriven) -> None:
    made = jobs.followed.enqueue()
    JobType.objects.filter(name=REPORT).delete()
    worker.work()
    assert archived(id=made.id)[0].status == "succeeded"
    assert followers() == []


def finish(job: str, status: str) -> None: ...


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        (
            "stories.itself",
            "must be another job type than 'stories.itself', which would follow on "
            "itself forever.",
        ),
        (
            jobs.add,
            "must be a handler that needs nothing but job, status, result, error_class "
            "and error_message: tests.sample.jobs.add() is missing 'a'.",
        ),
    ],
)
def test_a_follower_that_cannot_be_is_refused_when_it_is_declared(
    option: Any, problem: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        job(name="stories.itself", on_complete=option)(finish)
    assert str(caught.value) == f"@job on {__name__}.finish: on_complete {problem}"
    assert registry.get("stories.itself") is None


def test_a_follower_that_cannot_be_is_refused_when_it_is_used() -> None:
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


def test_a_follower_has_followers_and_the_metadata_of_the_job_before(
    worker: HandDriven,
) -> None:
    made = jobs.chain_a.using(metadata={"trace": "7"}).enqueue()
    worker.work()
    assert types(archived()) == ["chain_a", "chain_b", "chain_c"]
    _, second, third = archived()
    assert second.data == {"job": str(made.id), "status": "succeeded"}
    assert third.data == {"job": str(second.id), "status": "failed"}
    assert [row.metadata for row in archived()] == [{"trace": "7"}] * 3


def test_a_chain_runs_where_jobs_run_at_once() -> None:
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        with pytest.raises(ValueError, match="the middle fails"):
            jobs.chain_a.using(metadata={"trace": "7"}).enqueue()
        kept = [one.job for one in memory]
        memory.clear()
    names = [job.job_type.rpartition(".")[2] for job in kept]
    assert names == ["chain_a", "chain_b", "chain_c"]
    assert [job.metadata for job in kept] == [{"trace": "7"}] * 3


def test_a_follower_has_every_option_of_its_type(make_worker: Make) -> None:
    worker = make_worker(queues=("default",))
    jobs.add.using(on_complete="tests.sample.follow_with_options").enqueue(1)
    worker.work()
    (row,) = queued()
    assert (row.queue, row.priority) == ("mail", 7)
    assert row.followers == {"on_complete": [REPORT]}
    assert row.expires_at == row.run_after + timedelta(hours=1)
    assert row.unique_key is not None


def test_a_unique_follower_is_there_once(make_worker: Make) -> None:
    worker = make_worker(queues=("default",))
    add = jobs.add.using(on_complete="tests.sample.follow_with_options")
    add.enqueue_many([{"a": n} for n in range(5)])
    worker.work()
    assert len(archived()) == 5
    assert types(queued()) == ["follow_with_options"]
    jobs.fail.using(
        on_complete="tests.sample.follow_with_options", max_attempts=1
    ).enqueue()
    worker.work()
    assert [row.data["status"] for row in queued()] == ["succeeded", "failed"]


def test_a_follower_that_waits_already_is_claimed_after_the_job_before_is_archived(
    make_worker: Make, own: OwnConnection
) -> None:
    """It must see what that job did."""
    first = jobs.add.using(on_complete="tests.sample.follow_with_options").enqueue(1)
    second = jobs.add.using(on_complete="tests.sample.follow_with_options").enqueue(2)
    cancel([first.id])
    worker = make_worker(queues=("mail",))
    with transaction.atomic():
        cancel([second.id])
        worker.work()
        assert len(queued()) == 1, "the archiving keeps it from being claimed"
    worker.work()
    assert types(archived()) == ["add", "add", "follow_with_options"]
