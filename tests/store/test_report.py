"""What attempts tell is written for their own claims, and for no other."""

from __future__ import annotations

from uuid import UUID

import pytest

from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.report import TakenReport
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.models import Report as Row
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import prune
from django_jobqueue.store.control.prune import Rule
from django_jobqueue.store.queue import metadata, reports
from django_jobqueue.store.queue.reports import Report
from tests.store.rows import ago, archive, make

pytestmark = pytest.mark.django_db(transaction=True)

LINE = (1_790_000_000.5, "info", "began")


def running(fence: int = 7) -> UUID:
    """A job that somebody runs."""
    return make(status="running", worker_id=1, fence=fence, attempts=2)


def content(id: UUID, fence: int = 7, **values: object) -> Report:
    return Report(id, fence, 2, 3.0, TakenReport(**values))  # type: ignore[arg-type]


def test_one_statement_writes_several_reports(own: OwnConnection) -> None:
    one, two = running(), running()
    reports.write(
        own,
        "host:1",
        [
            content(
                one, done=1.0, total=4.0, note="resizing", lines=(LINE,), dropped=3
            ),
            content(two, queries=5, query_ms=2.5),
        ],
    )
    first = Row.objects.get(job_id=one)
    assert (first.fence, first.number, first.done, first.total) == (7, 2, 1.0, 4.0)
    assert (first.note, first.lines, first.dropped) == ("resizing", [[*LINE]], 3)
    assert (first.updated_at - first.started_at).total_seconds() == pytest.approx(
        3.0, abs=0.5
    )
    second = Row.objects.get(job_id=two)
    assert (second.done, second.queries, second.query_ms) == (None, 5, 2.5)
    assert second.lines == []


def test_what_an_attempt_tells_later_replaces_it(own: OwnConnection) -> None:
    id = running()
    reports.write(own, "host:1", [content(id, done=1.0, note="first")])
    before = Row.objects.get(job_id=id)
    reports.write(own, "host:1", [content(id, done=2.0, lines=(LINE,))])
    after = Row.objects.get(job_id=id)
    assert (after.done, after.note, after.lines) == (2.0, "", [[*LINE]])
    assert after.started_at == before.started_at
    assert after.updated_at > before.updated_at


def test_each_claim_has_a_row_of_its_own(own: OwnConnection) -> None:
    id = running(fence=7)
    reports.write(own, "host:1", [content(id, 7, done=9.0)])
    QueuedJob.objects.filter(id=id).update(fence=8)
    reports.write(own, "host:2", [content(id, 8, done=1.0)])
    assert list(
        Row.objects.filter(job_id=id).order_by("fence").values_list("fence", "done")
    ) == [(7, 9.0), (8, 1.0)]


def test_of_many_attempts_the_last_reports_are_kept(own: OwnConnection) -> None:
    id, other = running(), running()
    reports.write(own, "host:1", [content(other, done=1.0)])
    for fence in range(1, reports.MOST_REPORTS + 6):
        QueuedJob.objects.filter(id=id).update(fence=fence)
        reports.write(own, "host:1", [content(id, fence, done=1.0)])
    fences = Row.objects.filter(job_id=id).order_by("fence")
    assert [row.fence for row in fences] == list(range(6, reports.MOST_REPORTS + 6))
    assert Row.objects.filter(job_id=other).exists()


def test_a_claim_that_was_lost_writes_nothing(own: OwnConnection) -> None:
    id, waiting = running(fence=7), make(fence=7, attempts=2)
    place = "SELECT ctid::text, xmin::text FROM jobqueue_queuedjob WHERE id = %(id)s"
    before = own.fetch(place, {"id": id})
    of_none = [content(waiting, 7, done=1.0), content(new_id(), done=1.0)]
    reports.write(own, "host:1", [content(id, 7, done=1.0), *of_none])
    assert own.fetch(place, {"id": id}) == before  # the job's row is not touched
    QueuedJob.objects.filter(id=id).update(fence=8)  # claimed by another
    reports.write(own, "host:1", [content(id, 7, done=2.0)])
    assert [(row.job_id, row.done) for row in Row.objects.all()] == [(id, 1.0)]


def test_a_job_archived_here_takes_its_last_state(own: OwnConnection) -> None:
    id = archive(attempts=2, worker="host:1")
    reports.write(own, "host:2", [content(id, done=1.0)])
    assert not Row.objects.exists()
    reports.write(own, "host:1", [content(id, done=1.0)])
    assert Row.objects.get(job_id=id).done == 1.0


def test_reports_go_with_their_job(own: OwnConnection) -> None:
    old, chosen, kept = (archive(attempts=2, worker="host:1") for _ in range(3))
    reports.write(own, "host:1", [content(id, done=1.0) for id in (old, chosen, kept)])
    ArchivedJob.objects.filter(id=old).update(finished_at=ago(1_000))
    assert sum(prune.prune(own, Rule(status="succeeded", keep=500.0))) == 1
    prune.prune_ids(own, [chosen])
    assert [row.job_id for row in Row.objects.all()] == [kept]


def test_metadata_is_written_by_the_claim_that_holds(own: OwnConnection) -> None:
    id = running(fence=7)
    assert metadata.save(own, id, 7, '{"step": 2}')
    assert QueuedJob.objects.get(id=id).metadata == {"step": 2}
    assert not metadata.save(own, id, 6, '{"step": 3}')
    QueuedJob.objects.filter(id=id).update(status="queued", worker_id=None)
    assert not metadata.save(own, id, 7, '{"step": 3}')
    assert QueuedJob.objects.get(id=id).metadata == {"step": 2}
