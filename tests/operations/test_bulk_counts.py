"""What a bulk operation is counted to do is what it does, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import Any, Final
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from django_jobqueue import InvalidArguments, operations
from django_jobqueue.admin.jobs.replay import replayed
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.states import SkipReplayed
from django_jobqueue.models import (
    ArchivedJob,
    BulkOperation,
    FailureGroup,
    JobType,
    QueuedJob,
)
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.bulk import count_jobs
from django_jobqueue.store.bulk import operation_rows as bulk_operations
from django_jobqueue.store.bulk.draft_counts import Counted
from django_jobqueue.store.bulk.skips import planned
from django_jobqueue.store.connection import DjangoDatabase
from tests.commands.conftest import jobqueue
from tests.store.rows import ADD, ONCE, ago, archive, make, make_many
from tests.support.selection import some_slow
from tests.support.undone import check_each, undone

pytestmark = pytest.mark.django_db

ALL: Final = Selection(Table.ARCHIVED)
FAILED: Final = Selection(Table.ARCHIVED, (Term("status", "failed"),))
WAITING: Final = Selection(Table.QUEUED, (Term("type", ADD),))
GONE: Final = "shop.removed"
TO_BE_CHECKED: Final = ("cells", "examined", "oldest", "newest", "job_types", "is_most")

# What can have become of a replay, and whether it counts as one: the columns of its
# row, in the queue or in the archive.
REPLAYS: Final[dict[str, tuple[bool, str, dict[str, Any]]]] = {
    "none": (False, "", {}),
    "waiting": (True, "queued", {}),
    "running": (True, "queued", {"status": "running", "attempts": 1}),
    "succeeded": (True, "archived", {"status": "succeeded", "attempts": 1}),
    "failed": (True, "archived", {"status": "failed", "attempts": 3}),
    "crashed": (True, "archived", {"status": "failed", "crashes": 1}),
    "cancelled at work": (True, "archived", {"status": "cancelled", "attempts": 1}),
    "taken over": (True, "archived", {"status": "failed", "started_at": ago(9)}),
    "cancelled before": (False, "archived", {"status": "cancelled"}),
    "expired before": (False, "archived", {"status": "expired"}),
    "failed by hand": (False, "archived", {"status": "failed"}),
}


def replayed_as(state: str, job: UUID) -> list[Any]:
    """The replay of this job in this state, if there is one."""
    _, where, columns = REPLAYS[state]
    if not where:
        return []
    model = QueuedJob if where == "queued" else ArchivedJob
    return [model(id=new_id(), job_type_id=ADD, replay_of=job, **columns)]


@pytest.fixture
def _population(db: None) -> None:
    """A failed job of every kind: its type, its replay, its expiry; and a job of every
    kind that waits or runs."""
    jobs: list[Any] = []
    for job_type, state, expires in product(
        (ADD, ONCE, GONE), REPLAYS, (None, ago(60), ago(-600))
    ):
        job = ArchivedJob(
            id=new_id(),
            job_type_id=job_type,
            status="failed",
            finished_at=ago(900),
            expires_at=expires,
            attempts=1,
        )
        jobs += [job, *replayed_as(state, job.id)]
    for model in (ArchivedJob, QueuedJob):
        model.objects.bulk_create(job for job in jobs if type(job) is model)
    later = timezone.now() + timedelta(days=1)
    for expires_at in (None, later + timedelta(days=1)):
        make_many(3, expires_at=expires_at)
        make_many(2, expires_at=expires_at, run_after=later)
    make(status="running", attempts=1, started_at=timezone.now())


populated = pytest.mark.usefixtures("_population")


def done(operation: bulk_operations.Operation, max_rows: int = 40) -> BulkOperation:
    """The row after all of its chunks."""
    while (
        chunk := bulk.WORK.do_chunk(operation.id, max_rows=max_rows)
    ) and not chunk.over:
        pass
    return BulkOperation.objects.get(pk=operation.id)


def of_each_kind() -> Iterator[tuple[str, Selection, dict[str, Any]]]:
    """Every kind with every choice that skips jobs."""
    for number, (skip, once) in enumerate(product(SkipReplayed, (True, False))):
        skips = {"skip_replayed": skip, "skip_at_most_once": once}
        yield "replay", (ALL, FAILED)[number % 2], skips
    yield "replay", ALL, skips
    for chosen in (Selection(Table.QUEUED), WAITING):
        yield "cancel", chosen, {}
        yield "run_now", chosen, {}
        yield "reschedule", chosen, {"priority": 9}
    yield "prune", ALL, {}
    yield "prune", FAILED, {}


def check_what_is_done(kind: str, selection: Selection, options: Any) -> None:
    made = bulk.draft(kind, selection, **options)
    changes, skipped = planned(kind, made.counted, made.options)
    assert made.total == made.counted.number == changes + skipped.total()
    assert bulk.start(made.id)
    row = done(made)
    assert (row.state, row.changed, row.skipped) == ("done", changes, dict(skipped))


def check_count_in_chunks(
    max_rows: int, kind: str, selection: Selection, options: Any
) -> None:
    at_once = bulk.draft(kind, selection, **options)
    BulkOperation.objects.filter(pk=at_once.id).update(counted=None, total=None)
    while (
        chunk := bulk.WORK.do_chunk(at_once.id, max_rows=max_rows)
    ) and not chunk.over:
        assert bulk.get(at_once.id).total is None
    counted = bulk.get(at_once.id).counted
    assert counted.over
    for name in TO_BE_CHECKED:
        assert getattr(counted, name) == getattr(at_once.counted, name), name


@pytest.mark.dear
@populated
def test_what_is_counted_is_what_is_done() -> None:
    check_each(undone()(check_what_is_done), of_each_kind(), least=14)


@pytest.mark.dear
@populated
@pytest.mark.parametrize("max_rows", some_slow([1, 5, 40, 10_000], [40]))
def test_a_count_in_chunks_is_that_of_one(max_rows: int) -> None:
    cases = ((max_rows, *case) for case in of_each_kind())
    check_each(undone()(check_count_in_chunks), cases, least=14)


def check_no_more_than_confirmed(kind: str, max_rows: int) -> None:
    selection = ALL if kind in ("replay", "prune") else WAITING
    made = bulk.draft(kind, selection, **({"priority": 9} if "re" in kind else {}))
    assert bulk.start(made.id)
    BulkOperation.objects.filter(pk=made.id).update(confirmed=3)
    row = done(made, max_rows=max_rows)
    assert (row.state, row.changed) == ("stopped", 3)
    assert row.skipped["unconfirmed"] >= 1


@pytest.mark.dear
@populated
def test_no_operation_changes_more_than_was_confirmed() -> None:
    cases = [("replay", 2), ("replay", 3), ("replay", 100), ("cancel", 2)]
    cases += [("run_now", 3), ("reschedule", 100), ("prune", 2), ("prune", 100)]
    check_each(undone()(check_no_more_than_confirmed), cases)


def test_old_statistics_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner's, of when the table was nearly empty."""
    monkeypatch.setattr(count_jobs, "FEW", 5)
    archive(ADD, "failed")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE jobqueue_archivedjob")
    ArchivedJob.objects.bulk_create(
        ArchivedJob(job_type_id=ADD, status="failed", data={"customer": n % 3})
        for n in range(60)
    )
    rare = Selection(Table.ARCHIVED, (Term("data", 1, path=("customer",)),))
    for kind in ("replay", "prune"):
        made = bulk.draft(kind, rare)
        assert (made.total, made.counted.is_most) == (20, False)
        assert bulk.start(made.id)
        assert done(made).changed == 20


def test_most_of_the_table_is_told_unless_it_is_only_a_few_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = DjangoDatabase()
    assert count_jobs.is_most(db, Table.ARCHIVED, 1_000) is False
    assert count_jobs.is_most(db, Table.ARCHIVED, 1_001) is True
    monkeypatch.setattr(count_jobs, "FEW", 2)
    for status, count in (("failed", 3), ("succeeded", 2)):
        for _ in range(count):
            archive(ADD, status)
    assert bulk.draft("replay", FAILED).counted.is_most is True
    archive(ADD, "succeeded")
    assert bulk.draft("replay", FAILED).counted.is_most is False


def test_what_joins_later_is_left_alone_and_the_operation_stops() -> None:
    """Jobs that were not replayed when they were counted, and are now; and those of a
    job type that came back."""
    archived = [archive(ADD, "failed", finished_at=ago(99 - n)) for n in range(4)]
    archive(GONE, "failed", finished_at=ago(40))
    operations.replay_many(archived[:2])
    made = bulk.draft("prune", FAILED.also(Term("replayed", True)))
    replay = bulk.draft("replay", FAILED)
    assert bulk.start(made.id)
    operations.replay_many(archived[2:3])
    row = done(made)
    assert (row.state, row.changed, row.skipped) == ("stopped", 2, {"unconfirmed": 1})
    left = ArchivedJob.objects.filter(job_type_id=ADD).values_list("pk", flat=True)
    assert set(left) == set(archived[2:])
    assert bulk.WORK.do_chunk(made.id, max_rows=9) is None
    QueuedJob.objects.all().delete()
    assert bulk.start(replay.id)
    JobType.objects.create(name=GONE)
    row = done(replay)
    assert (row.state, row.changed, row.skipped) == ("stopped", 2, {"unconfirmed": 1})


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no time to count while a draft is made."""
    monkeypatch.setattr(bulk, "AT_ONCE", 0.0)


@pytest.mark.usefixtures("_slow")
def test_a_prune_that_is_not_counted_does_not_start() -> None:
    archive(ADD, "failed")
    made = bulk.draft("prune", FAILED)
    assert made.total is None
    with pytest.raises(InvalidArguments, match="when its jobs are counted"):
        bulk.start(made.id)
    assert not bulk_operations.start(
        DjangoDatabase(),
        made.id,
        job=made.id,
        options=made.options,
        reason="",
        per_minute=None,
        confirmed=None,
    )
    counted = bulk.count(made.id)
    assert counted.total == 1
    assert bulk.start(made.id)
    assert done(made).changed == 1


def check_starts_uncounted(kind: str) -> None:
    archive(ADD, "failed")
    make()
    chosen = FAILED if kind == "replay" else WAITING
    made = bulk.draft(kind, chosen, **({"priority": 9} if kind == "reschedule" else {}))
    assert made.total is None
    assert bulk.start(made.id)
    row = done(made)
    assert (row.state, row.changed, row.confirmed) == ("done", 1, None)


@pytest.mark.usefixtures("_slow")
def test_what_can_be_taken_back_may_start_uncounted() -> None:
    kinds = ["replay", "cancel", "run_now", "reschedule"]
    check_each(undone()(check_starts_uncounted), ((kind,) for kind in kinds))


@populated
def test_what_was_counted_survives_as_json() -> None:
    made = bulk.draft("replay", FAILED)
    assert Counted.from_json(BulkOperation.objects.get().counted) == made.counted
    assert made.counted.having("failed") == made.total
    assert made.counted.job_types == sorted([ADD, GONE, ONCE])


def test_a_draft_remembers_the_first_and_the_last_of_all_its_jobs() -> None:
    moments = [ago(9_000 - n) for n in range(40)]
    for moment in (*moments[20:], *moments[:20]):
        archive(ADD, "failed", finished_at=moment)
    counted = bulk.draft("replay", FAILED).counted
    assert (counted.oldest, counted.newest) == (moments[0], moments[-1])
    nothing = bulk.draft("prune", Selection(Table.ARCHIVED, (Term("type", ONCE),)))
    assert (nothing.total, nothing.counted.is_most) == (0, False)
    assert bulk.start(nothing.id)
    assert done(nothing).state == "done"


# A replay that did nothing is none, wherever somebody asks.


def check_all_who_ask_agree(state: str) -> None:
    job = archive(ADD, "failed", attempts=1)
    for replay in replayed_as(state, job):
        replay.save(force_insert=True)
    chosen = Selection(Table.ARCHIVED, (Term("id", (job,)),))
    counts = REPLAYS[state][0]
    for value in (True, False):
        term = Term("replayed", value)
        found = bulk.draft("prune", chosen.also(term)).total
        assert found == (1 if value is counts else 0)
    made = bulk.draft("replay", chosen)
    skipped = planned("replay", made.counted, made.options)[1]
    assert skipped == ({"replayed": 1} if counts else {})
    ticked = list(ArchivedJob.objects.filter(pk=job))
    assert replayed(ticked) == ({job} if counts else set())
    before = QueuedJob.objects.filter(replay_of=job).count()
    jobqueue("replay", "--status", "failed", "--type", ADD, "--limit", "1", "--yes")
    after = QueuedJob.objects.filter(replay_of=job).count()
    assert after - before == (0 if counts else 1)


@pytest.mark.dear
def test_all_who_ask_agree_on_what_was_replayed() -> None:
    check_each(undone()(check_all_who_ask_agree), ((state,) for state in REPLAYS))


def test_a_group_is_resolved_when_the_replay_starts_and_not_before() -> None:
    """But for one that was seen again after the draft."""
    group = FailureGroup.objects.create(
        fingerprint=UUID(int=7), coarse=UUID(int=7), error_class="E", frame="f"
    )
    archive(ADD, "failed", fingerprint=group.pk)
    chosen = Selection(Table.ARCHIVED, (Term("group", group.pk),))
    made, discarded, late = (
        bulk.draft("replay", chosen, resolves=group.pk) for _ in range(3)
    )
    bulk.stop(discarded.id)
    group.refresh_from_db()
    assert group.state == "open"
    assert bulk.start(made.id, by="anna")
    group.refresh_from_db()
    assert (group.state, group.changed_by) == ("resolved", "anna")
    FailureGroup.objects.update(state="open", regressed_at=ago(-60))
    assert bulk.start(late.id)
    group.refresh_from_db()
    assert group.state == "open"
