"""Find: one job, wherever it is, in one read."""

from __future__ import annotations

import uuid

from django_jobqueue.store import find
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.rows import Job
from tests.store.meanwhile import open_transaction
from tests.store.outcomes import (
    failed,
    failure,
    finished_as,
    held_by,
    report,
    succeeded,
)
from tests.store.rows import (
    ADD,
    ago,
    archive,
    archived_job,
    claimed,
    job_type,
    lane,
    make,
)


def found(own: OwnConnection, id: uuid.UUID) -> Job:
    """The job with this id, which must be there, through either connection."""
    job = find.find(own, id)
    assert job is not None
    assert find.find(DjangoDatabase(), id) == job
    return job


def test_a_queued_or_running_job_is_found(own: OwnConnection, holder: int) -> None:
    values = {
        "queue": "q",
        "priority": 7,
        "data": {"a": [1.5, "ü"]},
        "run_after": ago(100),
        "expires_at": ago(-100),
        "max_attempts": 9,
        "attempts": 2,
        "crashes": 1,
        "replay_of": uuid.UUID(int=1),
    }
    nothing = {
        "started_at": None,
        "finished_at": None,
        "worker": "",
        "result": None,
        "error_class": "",
        "fingerprint": None,
        "is_over": False,
    }
    wanted = {**values, **nothing, "job_type": ADD, "status": "queued"}

    job = found(own, id := make(**values))

    assert {name: getattr(job, name) for name in wanted} == wanted
    claimed(own, holder, 1, lane(queue="q", priority=7))
    job = found(own, id)
    assert (job.status, job.worker, job.attempts) == ("running", "host:1", 3)
    assert job.started_at is not None
    assert not job.is_over


def test_an_archived_job_is_found_with_its_end(own: OwnConnection, holder: int) -> None:
    good, bad = make(run_after=ago(9)), make(run_after=ago(5))
    first, second = claimed(own, holder, 2)
    what = failure("no such order")
    report(
        own,
        held_by(holder),
        finished_as(first, succeeded('{"total": 5}')),
        finished_as(second, failed(what)),
    )

    done, broken = found(own, good), found(own, bad)

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
    twice = archive(id=make(), status="cancelled")  # the archived one counts
    assert found(own, twice).status == "cancelled"


def test_a_job_that_moves_to_the_archive_is_found_before_and_after(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    with open_transaction(other) as moving:
        report(moving, held_by(holder), finished_as(job, succeeded()))
        assert found(own, id).status == "running"
    assert found(own, id).status == "succeeded"


def test_the_names_of_all_job_types_are_known_in_order(own: OwnConnection) -> None:
    job_type("a.first")
    job_type("Z.upper")
    names = find.known_names(own)
    assert {"a.first", "Z.upper", ADD} <= set(names)
    assert names == sorted(names)
