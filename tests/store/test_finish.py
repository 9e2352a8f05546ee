"""Finish: archived, or back in the queue; never without the fence."""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone
from psycopg.errors import UniqueViolation

from django_jobqueue.models import ArchivedJob, Failure, FailureGroup, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.control import cancel
from tests.store.meanwhile import Background, open_transaction, together, until_waiting
from tests.store.outcomes import (
    CANCELLED,
    EXPIRED,
    NOT_STARTED,
    RAN,
    RELEASED,
    SINCE,
    failed,
    failure,
    finished_as,
    held_by,
    report,
    retried,
    snoozed,
    succeeded,
)
from tests.store.rows import (
    ADD,
    ago,
    archive,
    archived_job,
    claimed,
    make,
    make_many,
    queued_job,
    register,
)

KEPT = {
    "queue": "default",
    "priority": 0,
    "data": {"a": [1, None, "ü\n"]},
    "expires_at": ago(-3_600),
    "created_at": ago(500),
    "run_after": ago(100),
    "max_attempts": 9,
    "crashes": 2,
    "replay_of": uuid.UUID(int=1),
    "root_id": uuid.UUID(int=2),
    "follows": uuid.UUID(int=4),
    "bulk_operation_id": uuid.UUID(int=3),
    "enqueued_by": "anna",
    "tags": ["a", "b"],
}


def seen(job: ArchivedJob) -> dict[str, object]:
    """The archived columns that come from the queued job."""
    return {name: getattr(job, name) for name in KEPT}


EVERY = {
    "succeeded": succeeded("5"),
    "failed": failed(),
    "cancelled": CANCELLED,
    "expired": EXPIRED,
    "not started": NOT_STARTED,
    "retried": retried(),
    "snoozed": snoozed(),
    "released": RELEASED,
}
OVER = ("succeeded", "failed", "cancelled", "expired")


def everything(own: OwnConnection) -> dict[str, list[tuple[object, ...]]]:
    """Every row that a finish may change."""
    return {
        table: own.fetch(f"SELECT held::text FROM jobqueue_{table} AS held ORDER BY 1")
        for table in ("queuedjob", "archivedjob", "failure", "failuregroup")
    }


def test_a_job_that_is_over_is_archived_with_everything_it_had(
    own: OwnConnection, holder: int
) -> None:
    for _ in OVER:
        make(**KEPT, attempts=3)
    jobs = claimed(own, holder, len(OVER))
    done = [finished_as(job, EVERY[name]) for job, name in zip(jobs, OVER, strict=True)]
    assert report(own, held_by(holder), *done) == set()
    assert not QueuedJob.objects.exists()
    for job, status in zip(jobs, OVER, strict=True):
        held = ArchivedJob.objects.get(id=job.id)
        assert seen(held) == KEPT
        assert (held.job_type_id, held.status) == (ADD, status)
        assert held.attempts == (3 if status == "expired" else 4)
        assert (held.run_ms is None) is (status == "expired")
        assert (held.worker, held.release) == ("host:1", "r1")


def test_the_times_of_an_attempt_are_counted_back_from_its_report(
    own: OwnConnection, holder: int
) -> None:
    due, names = ago(100), ("succeeded", "failed", "cancelled", "late")
    for _ in names:
        make(run_after=due)
    *jobs, late = claimed(own, holder, len(names))
    done = [
        finished_as(job, EVERY[name]) for job, name in zip(jobs, names, strict=False)
    ]
    before = timezone.now()

    report(own, held_by(holder), *done, finished_as(late, succeeded(), ran=500.0))

    since, ran = timedelta(seconds=SINCE), timedelta(seconds=RAN)
    for held in ArchivedJob.objects.exclude(id=late.id):
        assert held.started_at is not None
        assert before - since <= held.finished_at <= timezone.now() - since
        assert held.finished_at - held.started_at == ran
        assert held.run_ms == RAN * 1_000
        waited = (held.started_at - due).total_seconds() * 1_000
        assert held.wait_ms == pytest.approx(waited, abs=1)
    assert ArchivedJob.objects.get(id=late.id).wait_ms == 0  # never negative


def test_each_job_of_a_batch_has_its_result(own: OwnConnection, holder: int) -> None:
    results = {
        None: None,
        "null": None,
        "0": 0,
        '""': "",
        "[null]": [None],
        '{"ü": "\\n\\\\", "n": 1.5}': {"ü": "\n\\", "n": 1.5},
        **{f'"{n}"': str(n) for n in range(50)},
    }
    made = make_many(len(results))
    jobs = claimed(own, holder, len(results))
    pairs = zip(jobs, results, strict=True)
    report(own, held_by(holder), *(finished_as(j, succeeded(t)) for j, t in pairs))
    held = dict(ArchivedJob.objects.values_list("id", "result"))
    assert [held[id] for id in made] == [*results.values()]
    assert ArchivedJob.objects.filter(result__isnull=True).count() == 2


def test_a_report_that_is_sent_twice_changes_nothing_the_second_time(
    own: OwnConnection, holder: int
) -> None:
    for db in (own, DjangoDatabase()):
        make_many(len(EVERY))
        jobs = claimed(own, holder, len(EVERY))
        done = [finished_as(*pair) for pair in zip(jobs, EVERY.values(), strict=True)]
        assert report(db, held_by(holder), *done) == set()
        before = everything(own)
        assert report(db, held_by(holder), *done) == {job.id for job in jobs}
        assert everything(own) == before
        QueuedJob.objects.all().delete()


@pytest.mark.parametrize("wrong", ["fence", "worker", "row"])
def test_a_report_about_a_job_that_was_taken_away_changes_nothing(
    own: OwnConnection, holder: int, wrong: str
) -> None:
    mark = failure().fingerprint
    FailureGroup.objects.create(
        fingerprint=mark.value, coarse=mark.coarse, state="resolved"
    )
    make_many(len(EVERY) + 1)
    jobs = claimed(own, holder, len(EVERY) + 1)
    done = [finished_as(*pair) for pair in zip(jobs, EVERY.values(), strict=False)]
    done.append(finished_as(jobs[-1], failed(failure(frame="new.place"))))
    if wrong == "row":
        QueuedJob.objects.all().delete()
    if wrong == "fence":
        QueuedJob.objects.update(status="queued", worker_id=None)
        claimed(own, holder, len(jobs))
    reporter = register(own) if wrong == "worker" else holder
    before = everything(own)

    assert report(own, held_by(reporter), *done) == {job.id for job in jobs}
    assert everything(own) == before


def test_a_batch_may_be_mixed(own: OwnConnection, holder: int) -> None:
    make_many(len(EVERY) + 2)
    *jobs, stale, gone = claimed(own, holder, len(EVERY) + 2)
    QueuedJob.objects.filter(id=gone.id).delete()
    done = [finished_as(*pair) for pair in zip(jobs, EVERY.values(), strict=True)]
    done += [
        finished_as(stale, failed(), fence=stale.fence + 1),
        finished_as(gone, retried()),
    ]
    assert report(own, held_by(holder), *done) == {stale.id, gone.id}
    found = [archived_job(job.id) or queued_job(job.id) for job in [*jobs, stale]]
    not_started = (ArchivedJob.objects.get(id=jobs[index].id) for index in (3, 4))
    for held in not_started:
        assert (held.started_at, held.run_ms, held.attempts) == (None, None, 0)
        assert not Failure.objects.filter(job_id=held.id).exists()
    assert [job and job.status for job in found] == [
        *OVER,
        "cancelled",
        *["queued"] * 3,
        "running",
    ]


def test_a_report_twice_in_a_batch_counts_once(own: OwnConnection, holder: int) -> None:
    make()
    done = finished_as(claimed(own, holder)[0], succeeded("5"))
    assert report(own, held_by(holder), done, done) == set()
    assert [held.result for held in ArchivedJob.objects.all()] == [5]


def test_two_reports_of_one_job_at_once_are_accepted_once(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    make_many(100)
    jobs = claimed(own, holder, 100)
    good = [finished_as(job, succeeded()) for job in jobs]
    bad = [finished_as(job, failed()) for job in reversed(jobs)]
    refused = together(
        [
            partial(report, own, held_by(holder), *good),
            partial(report, other, held_by(holder), *bad),
        ]
    )
    assert len(refused[0]) + len(refused[1]) == 100
    assert refused[0] | refused[1] == {job.id for job in jobs}
    assert ArchivedJob.objects.count() == 100


def test_what_is_archived_already_stays(own: OwnConnection, holder: int) -> None:
    make_many(3)
    bad, first, second = claimed(own, holder, 3)
    for job in (bad, first):
        archive(id=job.id, status="cancelled")
    assert report(own, held_by(holder), finished_as(bad, failed())) == set()
    done = [finished_as(job, succeeded("5")) for job in (first, second)]
    with pytest.raises(UniqueViolation):  # successes are refused together
        report(own, held_by(holder), *done)
    assert queued_job(bad.id) is None
    assert queued_job(second.id) is not None
    assert [held.status for held in ArchivedJob.objects.all()] == ["cancelled"] * 2


def test_jobs_that_are_cancelled_this_very_moment_do_not_go_back(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    ids = make_many(3)
    jobs = claimed(own, holder, 3)
    outcomes = (retried(), snoozed(), RELEASED)
    done = [finished_as(*pair) for pair in zip(jobs, outcomes, strict=True)]
    with open_transaction(other) as transaction:
        assert set(cancel.cancel(transaction, ids, reason="").asked) == set(ids)
        future = background(partial(report, own, held_by(holder), *done))
        until_waiting()
    assert future.result(30) == set()
    assert not QueuedJob.objects.exists()
    assert [held.status for held in ArchivedJob.objects.all()] == ["cancelled"] * 3


def test_a_batch_of_jobs_with_followers_is_one_statement(
    own: OwnConnection, holder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    fetch = OwnConnection.fetch

    def counted(self: OwnConnection, statement: str, *params: Any) -> Any:
        sent.append(statement)
        return fetch(self, statement, *params)

    for option, outcome in {
        "on_success": succeeded("5"),
        "on_failure": failed(),
    }.items():
        ids = make_many(100, followers={option: [ADD, "tests.sample.report"]})
        jobs = claimed(own, holder, 100)
        with monkeypatch.context() as patch:
            patch.setattr(OwnConnection, "fetch", counted)
            report(own, held_by(holder), *(finished_as(job, outcome) for job in jobs))

        followers = QueuedJob.objects.filter(follows__in=ids, enqueued_by=option)
        assert len(set(followers.values_list("follows", "job_type_id"))) == 200
        followers.delete()
    assert len(sent) == 2
