"""What operators do: replay, cancel, run now, reschedule, pause, ask workers."""

from __future__ import annotations

import logging
import operator
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
from django_jobqueue.models import ArchivedJob, JobType, Queue, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue.expire import expire
from django_jobqueue.store.rows import Job
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.tables import differing, refusal

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
    with pytest.raises(InvalidArguments, match="'x' is not a job id"):
        operations.get_job("x")


def test_a_replay_is_a_new_job(worker: HandDriven, told: Told) -> None:
    old = over(worker, queue="q", priority=7)
    new = operations.replay(old.id, by="anna")
    assert (new.status, new.replay_of) == ("queued", old.id)
    assert (new.data, new.queue, new.priority) == (old.data, "q", 7)
    (job,) = queued()
    assert (job.id, job.enqueued_by, job.root_id) == (new.id, "anna", old.id)
    details = {"id": str(old.id), "job_type": "tests.sample.fail_with"}
    assert told == [{"verb": "replay", "by": "anna", "count": 1, "details": details}]
    more: Any = {"data": {"kind": "value"}, "queue": "slow", "priority": -3}
    other = operations.replay(old.id, run_after=LATER, **more)
    assert {name: getattr(other, name) for name in more} == more
    assert other.run_after == LATER


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"data": {"kin": "x"}}, "no parameter 'kin'. Did you mean 'kind'?"),
    ({"data": {"kind": object()}}, "data['kind'] is an object"),
    ({"expires": None}, "expires must be 'same', 'keep', 'never' or a datetime"),
    ({"expires": "new"}, "expires must be 'same', 'keep', 'never' or a datetime"),
    ({"expires": datetime(2030, 1, 1)}, "must be aware of its time zone"),
    ({"expires": LATER, "run_after": LATER}, "expires_at must be later than run_after"),
    ({"run_after": datetime(2030, 1, 1)}, "must be aware of its time zone"),
    ({"priority": 101}, "priority must be a whole number from -100 to 100"),
    ({"queue": ""}, "queue "),
]


def test_a_wrong_replay_is_refused(worker: HandDriven) -> None:
    old = over(worker)

    def ask(options: dict[str, Any]) -> str:
        return refusal(InvalidArguments, lambda: operations.replay(old.id, **options))

    assert differing(REFUSED, ask, operator.contains) == []
    with pytest.raises(InvalidArguments, match="expires_at must be later than run_a"):
        operations.replay_many(old.id, run_after=LATER, expires=LATER)
    assert queued() == []
    ArchivedJob.objects.update(job_type_id="tests.sample.fail_wit")
    with pytest.raises(UnknownJobType, match="Did you mean 'tests.sample.fail_with'"):
        operations.replay(old.id)
    made = jobs.add.enqueue(1)
    with pytest.raises(NotReplayable, match="is queued; only a finished job"):
        operations.replay(made.id)
    assert operations.replay_many([made.id, uuid4()]) == {}


def test_replay_many_says_what_became_of_which(worker: HandDriven, told: Told) -> None:
    old = [over(worker).id for _ in range(3)]
    made = operations.replay_many([*old, uuid4()], by="anna")
    assert set(made) == set(old)
    assert {job.id: job.replay_of for job in queued()} == {
        new: was for was, new in made.items()
    }
    assert (told[-1]["count"], told[-1]["details"]) == (3, {"asked": 4})


def test_an_expired_job_that_is_replayed_may_expire_again(worker: HandDriven) -> None:
    past = timezone.now() - timedelta(minutes=1)
    jobs.add.using(expires_in=timedelta(minutes=1)).enqueue(1)
    due = past - timedelta(minutes=1)
    QueuedJob.objects.update(created_at=due, run_after=due, expires_at=past)
    expire(DjangoDatabase())
    (old,) = archived(status="expired")
    again = operations.replay(old.id, expires="keep")
    fresh = operations.replay(old.id)
    worker.work()
    assert operations.get_job(fresh.id).status == "succeeded"
    expire(DjangoDatabase())
    assert operations.get_job(again.id).status == "expired"


def test_cancel_says_which_are_over(
    worker: HandDriven, told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    running = jobs.add.enqueue(1)
    worker.claim()
    worker.run()
    waiting = jobs.add.enqueue(1)
    with caplog.at_level(logging.INFO, "django_jobqueue.operations"):
        done = operations.cancel([running.id, waiting.id, uuid4()], by="anna")
    assert (done.archived, done.asked) == ([waiting.id], [running.id])
    assert operations.get_job(waiting.id).error_message == "cancelled by anna"
    details = {"asked_to_stop": 1, "reason": "cancelled by anna"}
    assert (told[-1]["count"], told[-1]["details"]) == (2, details)
    (record,) = [r for r in caplog.records if r.name == "django_jobqueue.operations"]
    assert record.getMessage() == f"cancel: 2 by anna {details}"
    assert (record.verb, record.by, record.count) == ("cancel", "anna", 2)  # type: ignore[attr-defined]


def test_run_now_and_reschedule(worker: HandDriven, told: Told) -> None:
    made = jobs.add.using(run_after=timedelta(days=1)).enqueue(1)
    moved = operations.reschedule([made.id], run_after=LATER, priority=9, queue="q")
    assert moved == [made.id]
    (job,) = queued()
    assert (job.run_after, job.priority, job.queue) == (LATER, 9, "q")
    assert operations.run_now([made.id, uuid4()], by="anna") == [made.id]
    worker.work()
    assert operations.get_job(made.id).status == "succeeded"
    done = [(t["verb"], t["count"]) for t in told]
    assert done == [("reschedule", 1), ("run now", 1)]
    with pytest.raises(InvalidArguments, match="priority"):
        operations.reschedule([made.id], priority=1_000)


def test_pause_and_resume_of_types_and_queues(transactional_db: None) -> None:
    names = ["tests.sample.add", "tests.sample.fail"]
    assert operations.pause(names, reason="later", by="anna", resume_at=LATER) == names
    held = JobType.objects.get(name=names[0])
    assert (held.paused, held.paused_by, held.paused_reason) == (True, "anna", "later")
    assert held.resume_at == LATER
    assert operations.pause(["q"], queues=True) == ["q"]
    assert Queue.objects.get().paused
    assert operations.resume(names[::-1]) == names[::-1]
    assert operations.resume(["q"], queues=True) == ["q"]
    assert not JobType.objects.filter(paused=True).exists()
    assert not Queue.objects.filter(paused=True).exists()


def test_an_unknown_name_or_a_past_moment_changes_nothing(
    transactional_db: None, told: Told
) -> None:
    names = ["tests.sample.add", "tests.sample.fai"]
    for verb in (operations.pause, operations.resume):
        was = verb is operations.resume
        JobType.objects.filter(name="tests.sample.add").update(paused=was)
        with pytest.raises(UnknownJobType, match="Did you mean 'tests.sample.fail'"):
            verb(names)
        assert JobType.objects.get(name="tests.sample.add").paused is was
    past = timezone.now() - timedelta(seconds=1)
    for queues in (False, True):
        with pytest.raises(InvalidArguments) as caught:
            operations.pause("tests.sample.fail", queues=queues, resume_at=past)
        assert str(caught.value) == f"resume_at must be in the future, not {past}."
    assert not JobType.objects.filter(name="tests.sample.fail", paused=True).exists()
    assert told == []


def test_workers_are_asked(worker: HandDriven, told: Told) -> None:
    id = worker.worker.id
    assert operations.ask_workers([id, id + 1_000], "drain", by="anna") == [id]
    assert told[-1]["verb"] == "drain workers"
    with pytest.raises(InvalidArguments, match="to drain, resume, stop or restart"):
        operations.ask_workers([id], "die")


def test_pruning_goes_by_what_is_given_or_the_retention(
    transactional_db: None, settings: Any
) -> None:
    rules = operations.prune_rules(older_than=timedelta(days=2))
    assert [rule.keep for rule in rules] == [172_800.0] * 4
    (rule,) = operations.prune_rules(status="failed", older_than=timedelta(0))
    assert (rule.status, rule.keep) == ("failed", 0.0)
    settings.JOBQUEUE = {"RETENTION": {"succeeded": 60, "failed": None}}
    kept = {rule.status: rule.keep for rule in operations.prune_rules()}
    assert kept["succeeded"] == 60
    assert "failed" not in kept
    with pytest.raises(
        InvalidArguments, match=("'done' is not a status of archived jobs")
    ):
        operations.prune_rules(status="done")


def test_what_is_pruned_is_told_as_far_as_it_came(
    worker: HandDriven, told: Told
) -> None:
    for number in range(3):
        jobs.add.enqueue(number)
    over(worker)
    rules = operations.prune_rules(status="succeeded", older_than=timedelta(0))
    assert list(operations.prune(rules, by="anna")) == [(rules[0], 3)]
    assert {job.status for job in archived()} == {"failed"}
    assert [(t["verb"], t["by"], t["count"]) for t in told] == [("prune", "anna", 3)]
    jobs.add.enqueue(1)
    worker.work()
    pruning = operations.prune(operations.prune_rules(older_than=timedelta(0)))
    next(pruning)
    pruning.close()  # as if it was broken off
    assert told[-1]["count"] == 1
    assert len(archived()) == 1
