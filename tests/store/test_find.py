"""Find: one job, wherever it is, in one read."""

from __future__ import annotations

import uuid

import pytest

from django_jobqueue.store import find
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.rows import Job
from tests.store.meanwhile import open_transaction
from tests.store.outcomes import came_to, failed, failure, held_by, report, succeeded
from tests.store.rows import ADD, ago, archive, archived_job, claimed, job_type, make

DATABASES = pytest.mark.parametrize("through", ["own", "django"])


def found(own: OwnConnection, id: uuid.UUID, through: str = "own") -> Job:
    """The job with this id, which must be there."""
    job = find.find(own if through == "own" else DjangoDatabase(), id)
    assert job is not None
    return job


@DATABASES
def test_a_queued_job_is_found(own: OwnConnection, through: str) -> None:
    due, end = ago(100), ago(-100)
    id = make(
        queue="q",
        priority=7,
        data={"a": [1.5, "ü"]},
        run_after=due,
        expires_at=end,
        max_attempts=9,
        attempts=2,
        crashes=1,
        replay_of=uuid.UUID(int=1),
    )

    job = found(own, id, through)

    assert (job.id, job.job_type, job.queue, job.priority) == (id, ADD, "q", 7)
    assert (job.status, job.data) == ("queued", {"a": [1.5, "ü"]})
    assert (job.run_after, job.expires_at) == (due, end)
    assert (job.attempts, job.max_attempts, job.crashes) == (2, 9, 1)
    assert (job.started_at, job.finished_at, job.worker) == (None, None, "")
    assert (job.result, job.error_class, job.fingerprint) == (None, "", None)
    assert job.replay_of == uuid.UUID(int=1)
    assert not job.is_over


@DATABASES
def test_a_running_job_is_found_with_its_worker(
    own: OwnConnection, holder: int, through: str
) -> None:
    id = make()
    claimed(own, holder)

    job = found(own, id, through)

    assert (job.status, job.worker, job.attempts) == ("running", "host:1", 1)
    assert job.started_at is not None
    assert not job.is_over


@DATABASES
def test_an_archived_job_is_found_with_what_it_came_to(
    own: OwnConnection, holder: int, through: str
) -> None:
    good, bad = make(run_after=ago(9)), make(run_after=ago(5))
    first, second = claimed(own, holder, 2)
    what = failure("no such order")
    report(
        own,
        held_by(holder),
        came_to(first, succeeded('{"total": 5}')),
        came_to(second, failed(what)),
    )

    done, broken = found(own, good, through), found(own, bad, through)

    held = archived_job(good)
    assert held is not None
    assert (done.status, done.result, done.worker) == (
        "succeeded",
        {"total": 5},
        "host:1",
    )
    assert (done.started_at, done.finished_at) == (held.started_at, held.finished_at)
    assert (broken.status, broken.result) == ("failed", None)
    assert (broken.error_class, broken.error_message) == ("ValueError", "no such order")
    assert broken.fingerprint == what.fingerprint.value
    assert done.is_over
    assert broken.is_over


def test_an_id_that_nobody_has_finds_nothing(own: OwnConnection) -> None:
    make()
    archive()

    assert find.find(own, uuid.uuid4()) is None


def test_a_job_that_moves_to_the_archive_is_found_before_and_after(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    with open_transaction(other) as moving:
        report(moving, held_by(holder), came_to(job, succeeded()))
        assert found(own, id).status == "running"

    assert found(own, id).status == "succeeded"


def test_of_two_rows_with_one_id_the_archived_one_counts(own: OwnConnection) -> None:
    id = archive(id=make(), status="cancelled")

    assert found(own, id).status == "cancelled"


def test_the_names_of_all_job_types_are_known_in_order(own: OwnConnection) -> None:
    job_type("a.first")
    job_type("Z.upper")

    names = find.known_names(own)

    assert {"a.first", "Z.upper", ADD} <= set(names)
    assert names == sorted(names)
