"""Jobs of a failure group: archived with it, or waiting since they failed so."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from django_jobqueue.admin.lists.selected import matching
from django_jobqueue.models import ArchivedJob, Failure, QueuedJob
from django_jobqueue.search.selection import Selection, Table, Term
from tests.store.rows import ADD, archive, make

pytestmark = pytest.mark.django_db

GROUP, OTHER = uuid4(), uuid4()


def failed(*ends: tuple[str, UUID | None]) -> UUID:
    """A queued job whose attempts ended so."""
    id = make(attempts=len(ends))
    for number, (end, fingerprint) in enumerate(ends, 1):
        Failure.objects.create(
            job_id=id, job_type=ADD, number=number, end=end, fingerprint=fingerprint
        )
    return id


@pytest.mark.dear
def test_queued_jobs_are_found_by_their_last_failure() -> None:
    once = failed(("failed", GROUP))
    twice = failed(("failed", OTHER), ("timed_out", GROUP))
    put_off = failed(("failed", GROUP), ("snoozed", None), ("released", OTHER))
    failed(("failed", GROUP), ("failed", OTHER))
    failed(("failed", OTHER))
    make()
    selection = Selection(Table.QUEUED, (Term("group", GROUP),))
    found = set(matching(QueuedJob.objects.all(), selection).values_list("pk"))
    assert found == {(once,), (twice,), (put_off,)}


def test_archived_jobs_are_found_by_their_fingerprint() -> None:
    job = archive(status="failed", fingerprint=GROUP)
    archive(status="failed", fingerprint=OTHER)
    archive(status="failed")
    selection = Selection(Table.ARCHIVED, (Term("group", GROUP),))
    found = matching(ArchivedJob.objects.all(), selection)
    assert [row.pk for row in found] == [job]
