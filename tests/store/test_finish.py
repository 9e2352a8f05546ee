"""Finish: archived, or back in the queue; never without the fence."""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone
from psycopg.errors import UniqueViolation

from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.models import ArchivedJob, Failure, FailureGroup, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.control import cancel
from tests.store.meanwhile import (
    Background,
    open_transaction,
    together,
    until_waiting,
)
from tests.store.outcomes import (
    CANCELLED,
    EXPIRED,
    NOT_STARTED,
    RAN,
    RELEASED,
    SINCE,
    came_to,
    failed,
    failure,
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
SLACK = timedelta(seconds=30)  # a slow machine


def seen(job: ArchivedJob) -> dict[str, object]:
    """The archived columns that come from the queued job."""
    return {name: getattr(job, name) for name in KEPT}


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (succeeded("5"), "succeeded"),
        (failed(), "failed"),
        (CANCELLED, "cancelled"),
        (EXPIRED, "expired"),
    ],
)
def test_a_job_that_is_over_is_archived_with_everything_it_had(
    own: OwnConnection, holder: int, outcome: Outcome, status: str
) -> None:
    id = make(**KEPT, attempts=3)
    (job,) = claimed(own, holder)

    assert report(own, held_by(holder), came_to(job, outcome)) == set()

    assert queued_job(id) is None
    held = archived_job(id)
    assert held is not None
    assert seen(held) == KEPT
    assert (held.job_type_id, held.status) == (ADD, status)
    assert held.attempts == (3 if status == "expired" else 4)
    assert (held.worker, held.release) == ("host:1", "r1")


@pytest.mark.parametrize("outcome", [succeeded(), failed(), CANCELLED])
def test_the_times_of_an_attempt_are_counted_back_from_its_report(
    own: OwnConnection, holder: int, outcome: Outcome
) -> None:
    due = ago(100)
    make(run_after=due)
    (job,) = claimed(own, holder)
    before = timezone.now()

    report(own, held_by(holder), came_to(job, outcome))

    (held,) = ArchivedJob.objects.all()
    since, ran = timedelta(seconds=SINCE), timedelta(seconds=RAN)
    assert held.started_at is not None
    assert before - since <= held.finished_at <= timezone.now() - since
    assert held.finished_at - held.started_at == ran
    assert held.run_ms == RAN * 1_000
    waited = (held.started_at - due).total_seconds() * 1_000
    assert held.wait_ms == pytest.approx(waited, abs=1)


@pytest.mark.parametrize("outcome", [EXPIRED, NOT_STARTED])
def test_a_job_that_was_not_started_has_no_start_and_spent_no_attempt(
    own: OwnConnection, holder: int, outcome: Outcome
) -> None:
    make()
    (job,) = claimed(own, holder)

    report(own, held_by(holder), came_to(job, outcome, ran=0.0))

    (held,) = ArchivedJob.objects.all()
    assert (held.started_at, held.run_ms, held.attempts) == (None, None, 0)
    assert not Failure.objects.exists()


def test_a_wait_is_never_negative(own: OwnConnection, holder: int) -> None:
    make(run_after=ago(1))
    (job,) = claimed(own, holder)

    report(own, held_by(holder), came_to(job, succeeded(), ran=50.0))

    assert ArchivedJob.objects.get().wait_ms == 0


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (None, None),
        ("null", None),
        ("0", 0),
        ('""', ""),
        ("[null]", [None]),
        ('{"ü": "\\n\\\\", "n": 1.5}', {"ü": "\n\\", "n": 1.5}),
    ],
)
def test_a_result_is_kept_as_json(
    own: OwnConnection, holder: int, text: str | None, kept: object
) -> None:
    make()
    (job,) = claimed(own, holder)

    report(own, held_by(holder), came_to(job, succeeded(text)))

    assert ArchivedJob.objects.get().result == kept
    assert ArchivedJob.objects.filter(result__isnull=True).exists() is (kept is None)


def test_each_job_of_a_batch_gets_its_own_result(
    own: OwnConnection, holder: int
) -> None:
    made = make_many(200)
    jobs = claimed(own, holder, 200)
    texts = [None if n % 7 == 0 else f'"{n}"' for n in range(200)]

    done = [came_to(j, succeeded(t)) for j, t in zip(jobs, texts, strict=True)]
    report(own, held_by(holder), *done)

    results = dict(ArchivedJob.objects.values_list("id", "result"))
    assert [results[id] for id in made] == [
        None if n % 7 == 0 else str(n) for n in range(200)
    ]


EVERY = [
    succeeded("5"),
    failed(),
    retried(),
    snoozed(),
    RELEASED,
    CANCELLED,
    EXPIRED,
    NOT_STARTED,
]


@pytest.mark.parametrize("outcome", EVERY)
def test_a_report_that_is_sent_twice_changes_nothing_the_second_time(
    own: OwnConnection, holder: int, outcome: Outcome
) -> None:
    make()
    (job,) = claimed(own, holder)
    done = came_to(job, outcome)
    assert report(own, held_by(holder), done) == set()
    before = everything(own)

    assert report(own, held_by(holder), done) == {job.id}

    assert everything(own) == before


@pytest.mark.parametrize("outcome", EVERY)
@pytest.mark.parametrize("wrong", ["fence", "worker", "row"])
def test_a_report_about_a_job_that_was_taken_away_changes_no_job(
    own: OwnConnection, holder: int, outcome: Outcome, wrong: str
) -> None:
    make()
    (job,) = claimed(own, holder)
    if wrong == "row":
        QueuedJob.objects.all().delete()
    if wrong == "fence":
        QueuedJob.objects.update(status="queued", worker_id=None)
        claimed(own, holder)
    reporter = register(own) if wrong == "worker" else holder
    before = everything(own)

    assert report(own, held_by(reporter), came_to(job, outcome)) == {job.id}

    after = everything(own)
    for table in ("queuedjob", "archivedjob", "failure"):
        assert after[table] == before[table]


@pytest.mark.parametrize("outcome", [failed(), retried()])
def test_a_report_about_a_job_that_was_taken_away_makes_no_group(
    own: OwnConnection, holder: int, outcome: Outcome
) -> None:
    make()
    (job,) = claimed(own, holder)
    stale = came_to(job, outcome, fence=job.fence - 1)

    assert report(own, held_by(holder), stale) == {job.id}

    assert not FailureGroup.objects.exists()


def test_a_report_about_a_job_that_was_taken_away_reopens_no_group(
    own: OwnConnection, holder: int
) -> None:
    make()
    (job,) = claimed(own, holder)
    mark = failure().fingerprint
    FailureGroup.objects.create(
        fingerprint=mark.value, coarse=mark.coarse, state="resolved"
    )

    report(own, held_by(holder), came_to(job, failed(), fence=job.fence - 1))

    assert FailureGroup.objects.get().state == "resolved"


def test_a_mixed_batch_comes_to_what_each_job_came_to(
    own: OwnConnection, holder: int
) -> None:
    make_many(len(EVERY) + 2)
    jobs = claimed(own, holder, len(EVERY) + 2)
    stale, gone = jobs.pop(), jobs.pop()
    QueuedJob.objects.filter(id=gone.id).delete()
    done = [came_to(job, outcome) for job, outcome in zip(jobs, EVERY, strict=True)]
    done += [came_to(stale, failed(), fence=stale.fence + 1), came_to(gone, retried())]

    assert report(own, held_by(holder), *done) == {stale.id, gone.id}

    statuses = [
        (archived_job(job.id) or queued_job(job.id)).status  # type: ignore[union-attr]
        for job in [*jobs, stale]
    ]
    assert statuses == [
        "succeeded",
        "failed",
        "queued",
        "queued",
        "queued",
        "cancelled",
        "expired",
        "cancelled",
        "running",
    ]


def test_the_same_report_twice_in_one_batch_counts_once(
    own: OwnConnection, holder: int
) -> None:
    make()
    (job,) = claimed(own, holder)
    done = came_to(job, succeeded("5"))

    assert report(own, held_by(holder), done, done) == set()
    assert [held.result for held in ArchivedJob.objects.all()] == [5]


def test_two_reports_of_one_job_at_once_are_accepted_once(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    make_many(100)
    jobs = claimed(own, holder, 100)
    good = [came_to(job, succeeded()) for job in jobs]
    bad = [came_to(job, failed()) for job in reversed(jobs)]

    refused = together(
        [
            partial(report, own, held_by(holder), *good),
            partial(report, other, held_by(holder), *bad),
        ]
    )

    assert len(refused[0]) + len(refused[1]) == 100
    assert refused[0] | refused[1] == {job.id for job in jobs}
    assert ArchivedJob.objects.count() == 100


def test_a_report_in_a_transaction_that_is_rolled_back_leaves_the_job_running(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    make()
    (job,) = claimed(own, holder)
    with other.raw() as connection, connection.transaction(force_rollback=True):
        done = came_to(job, succeeded())
        assert report(other, held_by(holder), done) == set()
    assert [held.status for held in QueuedJob.objects.all()] == ["running"]

    with open_transaction(other) as transaction:
        assert report(transaction, held_by(holder), came_to(job, succeeded())) == set()
    assert [held.status for held in ArchivedJob.objects.all()] == ["succeeded"]


@pytest.mark.parametrize("outcome", EVERY)
def test_the_callers_connection_finishes_as_the_machinerys_does(
    own: OwnConnection, holder: int, outcome: Outcome
) -> None:
    make()
    (job,) = claimed(own, holder)

    done = came_to(job, outcome)

    assert report(DjangoDatabase(), held_by(holder), done) == set()
    assert report(DjangoDatabase(), held_by(holder), done) == {job.id}


def test_a_failed_job_whose_id_is_archived_already_goes_and_the_archive_stays(
    own: OwnConnection, holder: int
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    archive(id=id, status="cancelled")

    assert report(own, held_by(holder), came_to(job, failed())) == set()

    assert queued_job(id) is None
    assert [held.status for held in ArchivedJob.objects.all()] == ["cancelled"]


def test_successes_are_refused_together_if_an_id_is_archived_already(
    own: OwnConnection, holder: int
) -> None:
    make_many(2)
    first, second = claimed(own, holder, 2)
    archive(id=first.id, status="cancelled")
    done = [came_to(job, succeeded("5")) for job in (first, second)]

    with pytest.raises(UniqueViolation):
        report(own, held_by(holder), *done)

    assert queued_job(second.id) is not None
    assert [held.status for held in ArchivedJob.objects.all()] == ["cancelled"]


@pytest.mark.parametrize("outcome", [retried(), snoozed(), RELEASED])
def test_a_job_that_is_cancelled_this_very_moment_does_not_go_back(
    own: OwnConnection,
    other: OwnConnection,
    holder: int,
    background: Background,
    outcome: Outcome,
) -> None:
    id = make()
    (job,) = claimed(own, holder)
    with open_transaction(other) as transaction:
        assert cancel.cancel(transaction, [id], reason="").asked == [id]
        future = background(
            partial(report, own, held_by(holder), came_to(job, outcome))
        )
        until_waiting()

    assert future.result(30) == set()
    assert queued_job(id) is None
    assert ArchivedJob.objects.get().status == "cancelled"


def everything(own: OwnConnection) -> dict[str, list[tuple[object, ...]]]:
    """Every row that a finish may change."""
    return {
        table: own.fetch(f"SELECT held::text FROM jobqueue_{table} AS held ORDER BY 1")
        for table in ("queuedjob", "archivedjob", "failure", "failuregroup")
    }


@pytest.mark.parametrize(
    ("outcome", "option"), [(succeeded("5"), "on_success"), (failed(), "on_failure")]
)
def test_a_batch_of_jobs_with_followers_is_one_statement(
    own: OwnConnection,
    holder: int,
    outcome: Outcome,
    option: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = make_many(500, followers={option: [ADD, "tests.sample.report"]})
    jobs = claimed(own, holder, 500)
    sent: list[object] = []
    fetch = OwnConnection.fetch

    def counted(self: OwnConnection, statement: str, *params: Any) -> Any:
        sent.append(statement)
        return fetch(self, statement, *params)

    monkeypatch.setattr(OwnConnection, "fetch", counted)
    report(own, held_by(holder), *(came_to(job, outcome) for job in jobs))

    assert len(sent) == 1
    followers = QueuedJob.objects.filter(follows__in=ids, enqueued_by=option)
    assert len(set(followers.values_list("follows", "job_type_id"))) == 1_000
