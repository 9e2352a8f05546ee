"""The job that works an erasure off: in a worker, in slices, after an error."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError
from django.utils import timezone
from psycopg import errors

from django_jobqueue.contrib.privacy import personal_data
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.pruner import Pruner
from django_jobqueue.models import ArchivedJob, AuditEntry, Failure, QueuedJob
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.contrib.privacy.planted import tables_with
from tests.store.rows import ADD, ago, archive, make
from tests.support.hand_driven import HandDriven
from tests.workers.chunk_jobs import Jobs

pytestmark = pytest.mark.django_db(transaction=True)

work = Jobs(personal_data.WORK, Erasure).work
MAIL = "anna@example.com"


def erasing(count: int = 3) -> UUID:
    for _ in range(count):
        archive(ADD, "failed", data={"to": MAIL})
    id = personal_data.find(MAIL, by="bert").id
    assert personal_data.start(id, "erase", by="bert")
    return id


def test_a_worker_erases_and_nothing_is_left_but_the_record(worker: HandDriven) -> None:
    erasing()
    worker.work()
    row = Erasure.objects.get()
    assert (row.state, row.changed, row.value) == ("done", {"archived": 3}, "")
    assert ArchivedJob.objects.get(id=row.job_id).status == "succeeded"
    assert AuditEntry.objects.latest("id").verb == "end erase personal data"
    assert tables_with(MAIL) == []


def test_a_worker_counts_what_took_too_long(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(personal_data, "AT_ONCE", 0.0)
    archive(data={"to": MAIL})
    assert personal_data.find(MAIL).total is None
    for _ in range(10):
        personal_data.find(MAIL, by="anna")
    with pytest.raises(InvalidArguments, match="At most 10 erasures of one caller"):
        personal_data.find(MAIL, by="anna")
    worker.work()
    for row in Erasure.objects.all():
        assert (row.state, row.total, row.value) == ("draft", 1, MAIL)


def test_another_job_goes_on_when_the_running_jobs_may_be_over() -> None:
    make(data={"to": MAIL}, status="running", started_at=ago(5), attempts=1)
    id = erasing()
    work(id)
    row = Erasure.objects.get()
    assert (row.state, row.remaining) == ("running", {"running": 1})
    successor = QueuedJob.objects.get(pk=row.job_id)
    assert successor.run_after > timezone.now()


def failing(monkeypatch: pytest.MonkeyPatch, cause: Exception) -> None:
    """Each chunk raises what names the value."""

    def fail(*args: Any, **kwargs: Any) -> None:
        raise OperationalError(f"row ({MAIL})") from cause

    monkeypatch.setattr(personal_data.WORK, "do_chunk", fail)


def test_an_error_is_kept_without_the_value(
    monkeypatch: pytest.MonkeyPatch, worker: HandDriven
) -> None:
    erasing()
    failing(monkeypatch, errors.CheckViolation(f"row ({MAIL})"))
    worker.work()
    row = Erasure.objects.get()
    assert (row.state, row.error) == ("failed", "OperationalError 23514")
    job = ArchivedJob.objects.get(pk=row.job_id)
    assert (job.status, job.error_message) == ("failed", row.error)
    assert MAIL not in str(list(Failure.objects.values()))


def test_the_pruner_forgets_old_drafts(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (personal_data.find(MAIL).id for _ in range(2))
    Erasure.objects.filter(pk=old).update(created_at=ago(90_000))
    monkeypatch.setattr("django_jobqueue.host.maintenance.pruner.HOUR", 0.0)
    pruner = Pruner(own, DeadlineWatch(own, WorkerConfig()))
    while pruner.tick() < 100:
        pass
    assert list(Erasure.objects.values_list("pk", flat=True)) == [new]
