"""``jobqueue cancel``."""

from __future__ import annotations

import getpass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management.base import CommandError
from django.db.models import F

from django_jobqueue import signals
from django_jobqueue.models import ArchivedJob, BulkOperation, QueuedJob
from tests.commands.conftest import Terminal, jobqueue, make_archived
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db


def cancelled() -> set[UUID]:
    """The jobs that were archived as cancelled."""
    return {job.id for job in archived(status="cancelled")}


def refusal(*arguments: str) -> str:
    """What the command says when it refuses; nothing may have been cancelled."""
    before = QueuedJob.objects.count()
    with pytest.raises(CommandError) as refused:
        jobqueue("cancel", *arguments)
    assert QueuedJob.objects.count() == before
    return str(refused.value)


def test_a_queued_job_is_archived_with_the_reason() -> None:
    job = jobs.add.enqueue(1)
    other = jobs.add.enqueue(2)
    said = jobqueue("cancel", str(job.id), "--reason", "wrong order")
    (over,) = archived()
    assert (over.id, over.status) == (job.id, "cancelled")
    assert over.error_message == "wrong order"
    assert [job.id for job in queued()] == [other.id]
    assert said.out == "1 job was cancelled.\n"


def test_without_a_reason_the_archive_says_who_it_was() -> None:
    jobqueue("cancel", str(jobs.add.enqueue(1).id))
    (over,) = archived()
    user = getpass.getuser()
    assert over.error_message == f"cancelled by command line ({user})"


@pytest.mark.django_db(transaction=True)
def test_a_running_job_is_asked_to_stop(worker: HandDriven) -> None:
    running = jobs.add.enqueue(1)
    worker.claim()
    jobs.add.enqueue(2)
    said = jobqueue("cancel", "--type", "tests.sample.add", "--yes")
    assert said.out == "1 job was cancelled, 1 running one was asked to stop.\n"
    (left,) = queued()
    assert left.id == running.id
    assert left.cancel_requested_at is not None
    worker.run()


@pytest.mark.django_db(transaction=True)
def test_only_queued_or_only_running_jobs_can_be_chosen(worker: HandDriven) -> None:
    running = jobs.add.enqueue(1)
    worker.claim()
    waiting = jobs.add.enqueue(2)
    jobqueue("cancel", "--status", "queued")
    assert cancelled() == {waiting.id}
    said = jobqueue("cancel", "--status", "running")
    assert said.out == "0 jobs were cancelled, 1 running one was asked to stop.\n"
    assert QueuedJob.objects.exclude(cancel_requested_at=None).get().id == running.id
    worker.run()


def test_a_filter_takes_the_jobs_that_match_and_no_others() -> None:
    wanted = jobs.add.using(queue="mail").enqueue(1)
    jobs.add.enqueue(1)
    jobs.say.using(queue="mail").enqueue("fail")
    jobqueue("cancel", "--queue", "mail", "--type", "tests.sample.add")
    assert cancelled() == {wanted.id}


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_queue_that_nobody_names_gets_a_remark(more: tuple[str, ...]) -> None:
    said = jobqueue("cancel", "--queue", "defualt", *more)
    assert said.err == (
        "No job type, worker or job names the queue 'defualt'. Did you mean "
        "'default'?\n"
    )
    assert said.out.startswith("0 jobs ")
    assert jobqueue("cancel", "--queue", "default", *more).err == ""


def test_the_others_are_cancelled_when_one_id_cannot_be() -> None:
    job = jobs.add.enqueue(1)
    (over,) = make_archived(status="succeeded")
    missing = uuid4()
    with pytest.raises(CommandError) as refused:
        jobqueue("cancel", str(over), str(missing), f"job_{job.id}")
    lines = str(refused.value).splitlines()
    assert (
        lines[0]
        == f"Job {over} has finished already (succeeded); it cannot be cancelled."
    )
    assert lines[1].startswith(
        f"There is no job {missing}, neither queued nor archived."
    )
    assert cancelled() == {job.id}


def test_when_no_id_can_be_cancelled_only_the_reasons_are_said() -> None:
    stream = Terminal()
    with pytest.raises(CommandError, match="There is no job"):
        jobqueue("cancel", str(uuid4()), stdout=stream)
    assert "cancelled" not in stream.getvalue()


def test_a_dry_run_counts_shows_examples_and_changes_nothing() -> None:
    ids = jobs.add.using(queue="mail").enqueue_many([{"a": i} for i in range(7)])
    QueuedJob.objects.filter(id=ids[0]).update(status="running", fence=F("fence") + 1)
    said = jobqueue("cancel", "--queue", "mail", "--dry-run")
    lines = said.out.splitlines()
    assert lines[0] == (
        "6 jobs would be cancelled, 1 running one would be asked to stop."
    )
    assert lines[1:3] == [
        "For example:",
        f"{'Job':36}  {'Job type':16}  Queue  Status",
    ]
    assert lines[3] == f"{ids[0]}  tests.sample.add  mail   running"
    assert len(lines) == 8
    assert len(queued()) == 7
    assert not ArchivedJob.objects.exists()


def test_a_dry_run_says_which_ids_cannot_be_cancelled() -> None:
    job, missing = jobs.add.enqueue(1), uuid4()
    assert str(missing) in refusal("--dry-run", str(job.id), str(missing))


def test_more_than_one_needs_a_confirmation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs.add.enqueue_many([{"a": 1}] * 2)
    assert refusal("--queue", "default") == (
        "2 jobs would be cancelled. More than one needs a confirmation: say --yes. "
        "--dry-run shows what it would be."
    )
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    assert refusal("--queue", "default") == "Nothing was cancelled."
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    jobqueue("cancel", "--queue", "default")
    assert len(cancelled()) == 2


def test_a_filter_is_a_bulk_operation_that_the_command_works_off(
    operated: list[dict[str, Any]],
) -> None:
    ids = jobs.add.enqueue_many([{"a": 1}] * 2_100)
    said = jobqueue(
        *("cancel", "--queue", "default", "--yes", "--reason", "no stock"),
        stdout=Terminal(),
    )
    assert cancelled() == set(ids)
    row = BulkOperation.objects.get()
    assert (row.kind, row.state, row.changed) == ("cancel", "done", 2_100)
    assert row.reason == "no stock"
    assert [(told["verb"], told["count"]) for told in operated] == [
        ("start bulk cancel", 2_100),
        ("end bulk cancel", 2_100),
    ]
    assert said.out.endswith("2,100 jobs were cancelled.\n")


def test_jobs_enqueued_meanwhile_are_left_alone() -> None:
    def enqueue_another(**arguments: object) -> None:
        jobs.add.enqueue(2)

    jobs.add.enqueue_many([{"a": 1}] * 1_001)
    signals.operated.connect(enqueue_another)
    try:
        jobqueue("cancel", "--queue", "default", "--yes", verbosity=0)
    finally:
        signals.operated.disconnect(enqueue_another)
    assert [job.data for job in queued()] == [{"a": 2}, {"a": 2}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [],
            "Name jobs by id, or choose them by --where, --type, --queue, --status, "
            "--older-than or --group.",
        ),
        (
            [str(uuid4()), "--queue", "mail"],
            "Name jobs by id or choose them by --where, --type, --queue, --status, "
            "--older-than or --group, not both.",
        ),
        (["7"], "'7' is no job id: give it, or its first 6 or more digits."),
        (["--status", "failed"], "argument --status: invalid choice: 'failed'"),
        (["--type", "tests.sample.ad"], "There is no job type 'tests.sample.ad'. Did"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_reason(
    arguments: list[str], message: str
) -> None:
    assert message in refusal(*arguments)
