"""``jobqueue cancel``."""

from __future__ import annotations

import getpass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db.models import F

from django_jobqueue import signals
from django_jobqueue.models import ArchivedJob, BulkOperation, QueuedJob
from tests.commands.conftest import (
    Terminal,
    jobqueue,
    make_archived,
    not_refused,
    refusal,
)
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db


def cancelled() -> set[UUID]:
    return {job.id for job in archived(status="cancelled")}


@pytest.mark.django_db(transaction=True)
def test_running_jobs_are_asked_to_stop_and_a_status_can_be_chosen(
    worker: HandDriven,
) -> None:
    running = jobs.add.enqueue(1)
    worker.claim()
    waiting = jobs.add.enqueue(2)
    jobqueue("cancel --status queued")
    assert cancelled() == {waiting.id}
    said = jobqueue("cancel --status running")
    assert said.out == "0 jobs were cancelled, 1 running one was asked to stop.\n"
    assert QueuedJob.objects.exclude(cancel_requested_at=None).get().id == running.id

    QueuedJob.objects.update(cancel_requested_at=None)
    another = jobs.add.enqueue(3)
    said = jobqueue("cancel --type tests.sample.add --yes")
    assert said.out == "1 job was cancelled, 1 running one was asked to stop.\n"
    assert cancelled() == {waiting.id, another.id}
    worker.run()


def test_the_others_are_cancelled_when_one_id_cannot_be() -> None:
    job, named, missing = jobs.add.enqueue(1), jobs.add.enqueue(2), uuid4()
    (over,) = make_archived(status="succeeded")
    assert str(missing) in refusal(f"cancel --dry-run {job.id} {missing}")
    assert cancelled() == set()
    stream = Terminal()
    first, second = refusal(
        f"cancel {over} job_{job.id} {missing}", stdout=stream
    ).splitlines()
    assert first == (
        f"Job {over} has finished already (succeeded); it cannot be cancelled."
    )
    assert second.startswith(f"There is no job {missing}, neither queued nor archived.")
    said = jobqueue(f"cancel {named.id} --reason 'wrong order'")
    assert said.out == "1 job was cancelled.\n"
    reasons = {row.id: row.error_message for row in archived(status="cancelled")}
    assert reasons == {
        job.id: f"cancelled by command line ({getpass.getuser()})",
        named.id: "wrong order",
    }


def test_a_dry_run_counts_shows_examples_and_changes_nothing() -> None:
    ids = jobs.add.using(queue="mail").enqueue_many([{"a": i} for i in range(7)])
    QueuedJob.objects.filter(id=ids[0]).update(status="running", fence=F("fence") + 1)
    lines = jobqueue("cancel --queue mail --dry-run").out.splitlines()
    assert lines[:4] == [
        "6 jobs would be cancelled, 1 running one would be asked to stop.",
        "For example:",
        f"{'Job':36}  {'Job type':16}  Queue  Status",
        f"{ids[0]}  tests.sample.add  mail   running",
    ]
    assert len(lines) == 8
    assert len(queued()) == 7
    assert not ArchivedJob.objects.exists()


def test_a_filter_is_a_bulk_operation_that_the_command_works_off(
    operated: list[dict[str, Any]], chunks_of_two: None
) -> None:
    """Jobs that are enqueued meanwhile are left alone."""

    def enqueue_another(**arguments: object) -> None:
        jobs.add.enqueue(2)

    ids = jobs.add.enqueue_many([{"a": 1}] * 3)
    signals.operated.connect(enqueue_another)
    try:
        said = jobqueue(
            "cancel --queue default --yes --reason 'no stock'", stdout=Terminal()
        )
    finally:
        signals.operated.disconnect(enqueue_another)
    assert cancelled() == set(ids)
    assert [job.data for job in queued()] == [{"a": 2}, {"a": 2}]
    row = BulkOperation.objects.get()
    assert (row.kind, row.state, row.changed) == ("cancel", "done", 3)
    assert row.reason == "no stock"
    assert [(told["verb"], told["count"]) for told in operated] == [
        ("start bulk cancel", 3),
        ("end bulk cancel", 3),
    ]
    assert said.out.endswith("3 jobs were cancelled.\n")


def test_what_makes_no_sense_is_refused_with_a_reason() -> None:
    filters = "--where, --type, --queue, --status, --older-than or --group"
    both = f"Name jobs by id or choose them by {filters}, not both."
    reasons = {
        "": f"Name jobs by id, or choose them by {filters}.",
        f"{uuid4()} --queue mail": both,
        "7": "'7' is not a job id: give it, or its first 6 or more digits.",
        "--status failed": "argument --status: invalid choice: 'failed'",
        "--type tests.sample.ad": "There is no job type 'tests.sample.ad'. Did",
    }
    assert not_refused("cancel", reasons) == {}
