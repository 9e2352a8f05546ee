"""What operators do: replay, cancel, run now, reschedule, pause, ask workers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from django_jobqueue import (
    InvalidArguments,
    JobNotFound,
    NotReplayable,
    UnknownJobType,
    operations,
)
from django_jobqueue.models import ArchivedJob, JobType, Queue
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue.expire import expire
from django_jobqueue.store.rows import Job
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

Told = list[dict[str, Any]]
LATER = datetime(2030, 1, 1, tzinfo=UTC)


def over(worker: HandDriven, **options: Any) -> Job:
    """A job that failed and is archived."""
    made = jobs.fail_with.using(**options).enqueue("lookup")
    worker.work()
    return operations.get_job(made.id)


def test_a_job_is_found_wherever_it_is(worker: HandDriven) -> None:
    made = jobs.add.enqueue(1, 2)
    assert operations.get_job(made.id).status == "queued"
    worker.claim()
    found = operations.get_job(f"job_{made.id}")
    assert (found.status, found.worker) == ("running", worker.worker.name)
    worker.run()
    worker.finish()
    found = operations.get_job(str(made.id))
    assert (found.status, found.result, found.is_over) == ("succeeded", 3, True)


def test_a_job_that_is_nowhere(transactional_db: None) -> None:
    id = uuid4()
    with pytest.raises(JobNotFound, match=f"no job {id}, neither queued nor archived"):
        operations.get_job(id)
    with pytest.raises(InvalidArguments, match="'x' is no job id"):
        operations.get_job("x")


def test_replay_makes_a_new_job_that_remembers(worker: HandDriven, told: Told) -> None:
    old = over(worker, queue="q", priority=7)
    new = operations.replay(old.id, by="anna")

    assert (new.status, new.replay_of) == ("queued", old.id)
    assert (new.data, new.queue, new.priority) == (old.data, "q", 7)
    (job,) = queued()
    assert (job.id, job.enqueued_by, job.root_id) == (new.id, "anna", old.id)
    assert told == [
        {
            "verb": "replay",
            "by": "anna",
            "count": 1,
            "details": {"id": str(old.id), "job_type": "tests.sample.fail_with"},
        }
    ]


def test_replay_with_other_data_another_queue_and_time(worker: HandDriven) -> None:
    old = over(worker)
    new = operations.replay(
        old.id, data={"kind": "value"}, queue="slow", priority=-3, run_after=LATER
    )
    assert (new.data, new.queue, new.priority) == ({"kind": "value"}, "slow", -3)
    assert new.run_after == LATER


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": {"kin": "x"}}, "no parameter 'kin'. Did you mean 'kind'?"),
        ({"data": {"kind": object()}}, "data.'kind'. is an object"),
        ({"expires": None}, "expires must be 'same', 'keep', 'never' or a datetime"),
        ({"expires": "new"}, "expires must be 'same', 'keep', 'never' or a datetime"),
        ({"expires": datetime(2030, 1, 1)}, "must be aware of its time zone"),
        ({"run_after": datetime(2030, 1, 1)}, "must be aware of its time zone"),
        ({"priority": 101}, "priority .*100"),
        ({"queue": ""}, "queue "),
    ],
)
def test_a_replay_that_cannot_be_is_refused_with_the_reason(
    worker: HandDriven, options: dict[str, Any], message: str
) -> None:
    old = over(worker)
    with pytest.raises(InvalidArguments, match=message):
        operations.replay(old.id, **options)
    assert queued() == []


def test_only_what_is_over_is_replayed(transactional_db: None) -> None:
    made = jobs.add.enqueue(1)
    with pytest.raises(NotReplayable, match="is queued; only a job that is over"):
        operations.replay(made.id)
    assert operations.replay_many([made.id, uuid4()]) == {}


def test_a_job_whose_type_is_gone_is_not_replayed(worker: HandDriven) -> None:
    old = over(worker)
    ArchivedJob.objects.update(job_type_id="tests.sample.fail_wit")
    with pytest.raises(UnknownJobType, match="Did you mean 'tests.sample.fail_with'"):
        operations.replay(old.id)


def test_replay_many_says_what_became_of_which(worker: HandDriven, told: Told) -> None:
    old = [over(worker).id for _ in range(3)]
    made = operations.replay_many([*old, uuid4()], by="anna")
    assert set(made) == set(old)
    assert {job.id: job.replay_of for job in queued()} == {
        new: was for was, new in made.items()
    }
    assert (told[-1]["count"], told[-1]["details"]) == (3, {"asked": 4})


def test_an_expired_job_runs_when_it_is_replayed_unless_the_moment_is_kept(
    worker: HandDriven,
) -> None:
    past = timezone.now() - timedelta(minutes=1)
    jobs.add.using(run_after=past - timedelta(minutes=1), expires_at=past).enqueue(1)
    expire(DjangoDatabase())
    (old,) = archived(status="expired")
    ArchivedJob.objects.update(created_at=past - timedelta(minutes=1))
    again = operations.replay(old.id, expires="keep")
    fresh = operations.replay(old.id)
    worker.work()
    assert operations.get_job(fresh.id).status == "succeeded"
    expire(DjangoDatabase())
    assert operations.get_job(again.id).status == "expired"


def test_cancel_says_which_are_over_and_which_are_asked(
    worker: HandDriven, told: Told
) -> None:
    running = jobs.write.using(priority=1).enqueue("/dev/null", seconds=0.2)
    worker.claim()
    waiting = jobs.add.enqueue(1)

    done = operations.cancel([running.id, waiting.id, uuid4()], by="anna")

    assert (done.archived, done.asked) == ([waiting.id], [running.id])
    assert operations.get_job(waiting.id).error_message == "cancelled by anna"
    assert (told[-1]["count"], told[-1]["details"]) == (
        2,
        {"asked_to_stop": 1, "reason": "cancelled by anna"},
    )
    worker.run()
    worker.finish()


def test_run_now_and_reschedule(worker: HandDriven, told: Told) -> None:
    made = jobs.add.using(run_after=timedelta(days=1)).enqueue(1)
    moved = operations.reschedule([made.id], run_after=LATER, priority=9, queue="q")
    assert moved == [made.id]
    (job,) = queued()
    assert (job.run_after, job.priority, job.queue) == (LATER, 9, "q")

    assert operations.run_now([made.id, uuid4()], by="anna") == [made.id]
    worker.work()
    assert operations.get_job(made.id).status == "succeeded"
    assert [(t["verb"], t["count"]) for t in told] == [
        ("reschedule", 1),
        ("run now", 1),
    ]
    with pytest.raises(InvalidArguments, match="priority"):
        operations.reschedule([made.id], priority=1_000)


def test_pause_and_resume_of_types_and_queues(transactional_db: None) -> None:
    names = ["tests.sample.add", "tests.sample.fail"]
    assert operations.pause(names, reason="later", by="anna", resume_at=LATER) == names
    held = JobType.objects.get(name=names[0])
    assert (held.paused, held.paused_by, held.paused_reason, held.resume_at) == (
        True,
        "anna",
        "later",
        LATER,
    )
    assert operations.pause(["q"], queues=True) == ["q"]
    assert Queue.objects.get().paused

    assert operations.resume(names) == names
    assert operations.resume(["q"], queues=True) == ["q"]
    assert not JobType.objects.filter(paused=True).exists()
    assert not Queue.objects.filter(paused=True).exists()


@pytest.mark.parametrize("verb", [operations.pause, operations.resume])
def test_one_unknown_name_changes_nothing(
    transactional_db: None, told: Told, verb: Callable[[list[str]], list[str]]
) -> None:
    was = verb is operations.resume
    JobType.objects.filter(name="tests.sample.add").update(paused=was)
    with pytest.raises(UnknownJobType, match="Did you mean 'tests.sample.fail'"):
        verb(["tests.sample.add", "tests.sample.fai"])
    assert JobType.objects.get(name="tests.sample.add").paused is was
    assert told == []


def test_workers_are_asked(worker: HandDriven, told: Told) -> None:
    id = worker.worker.id
    assert operations.ask_workers([id, id + 1_000], "drain", by="anna") == [id]
    assert told[-1]["verb"] == "drain workers"
    with pytest.raises(InvalidArguments, match="to drain, resume, stop or restart"):
        operations.ask_workers([id], "die")


def test_what_is_done_is_logged_with_who_and_how_many(
    transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    made = jobs.add.enqueue(1)
    with caplog.at_level(logging.INFO, "django_jobqueue.operations"):
        operations.cancel([made.id], by="anna")
    (record,) = caplog.records
    assert record.getMessage() == (
        "cancel: 1 by anna {'asked_to_stop': 0, 'reason': 'cancelled by anna'}"
    )
    assert (record.verb, record.by, record.count) == ("cancel", "anna", 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "statuses", "keeps"),
    [
        ({"older_than": timedelta(days=2)}, 4, {172_800.0}),
        ({"status": "failed", "older_than": timedelta(0)}, 1, {0.0}),
    ],
)
def test_pruning_goes_by_what_is_given(
    transactional_db: None, given: dict[str, Any], statuses: int, keeps: set[float]
) -> None:
    rules = operations.prune_rules(**given)
    assert len(rules) == statuses
    assert {rule.keep for rule in rules} == keeps


def test_pruning_goes_by_the_retention_else(
    transactional_db: None, settings: Any
) -> None:
    settings.JOBQUEUE = {"RETENTION": {"succeeded": 60, "failed": None}}
    kept = {rule.status: rule.keep for rule in operations.prune_rules()}
    assert kept["succeeded"] == 60
    assert "failed" not in kept
    with pytest.raises(InvalidArguments, match="'done' is no status of archived jobs"):
        operations.prune_rules(status="done")


def test_what_is_pruned_is_told_with_how_many(worker: HandDriven, told: Told) -> None:
    for number in range(3):
        jobs.add.enqueue(number)
    over(worker)
    rules = operations.prune_rules(status="succeeded", older_than=timedelta(0))
    assert list(operations.prune(rules, by="anna")) == [(rules[0], 3)]
    assert {job.status for job in archived()} == {"failed"}
    assert [(t["verb"], t["by"], t["count"]) for t in told] == [("prune", "anna", 3)]


def test_a_pruning_that_is_broken_off_is_told_as_far_as_it_came(
    worker: HandDriven, told: Told
) -> None:
    jobs.add.enqueue(1)
    over(worker)
    pruning = operations.prune(operations.prune_rules(older_than=timedelta(0)))
    next(pruning)
    pruning.close()
    assert told[-1]["count"] == 1
    assert len(archived()) == 1
