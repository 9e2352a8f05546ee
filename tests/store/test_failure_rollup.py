"""Roll-ups of failures: by fingerprint and hour, added by all workers, dropped when
old."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from django_jobqueue.domain.fingerprints import Fingerprint
from django_jobqueue.models import FailureGroup, FailureRollup, QueuedJob
from django_jobqueue.store import failure_rollup
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.failure_rollup import FailureCount
from django_jobqueue.store.queue.finish_unsuccessful import GROUPS_PER_PLACE
from django_jobqueue.store.queue.rescue import rescue
from tests.store.meanwhile import open_transaction, together
from tests.store.outcomes import failed, failure, finished_as, held_by, report, retried
from tests.store.rows import ADD, ONCE, ago, claimed, lane, make, make_many, register


def mark(template: str = "no such order") -> Fingerprint:
    """The fingerprint of a failure in one place."""
    return Fingerprint.of_parts("ValueError", "shop.jobs:send", template)


def group(of: Fingerprint, **columns: object) -> FailureGroup:
    """Insert the group of this fingerprint."""
    return FailureGroup.objects.create(
        fingerprint=of.value, coarse=of.coarse, error_class="ValueError", **columns
    )


def counted(of: Fingerprint, failed: int = 0, retried: int = 0) -> FailureCount:
    """These counts of one fingerprint."""
    return FailureCount(of.value, of.coarse, "a.b", "r1", failed, retried)


def figures() -> dict[object, tuple[int, int]]:
    """What the only hour says of each fingerprint: failed and retried."""
    return {r.fingerprint: (r.failed, r.retried) for r in FailureRollup.objects.all()}


def test_counts_are_added_to_the_current_hour(own: OwnConnection) -> None:
    one, two, gone = mark("one"), mark("two"), mark("of a group that is gone")
    group(one)
    group(two)
    before = timezone.now()
    failure_rollup.add(own, [counted(two, 3, 4), counted(one, 1, 2), counted(gone, 5)])
    failure_rollup.add(own, [counted(one, 10, 20)])
    assert figures() == {one.value: (11, 22), two.value: (3, 4)}
    (bucket,) = {held.bucket for held in FailureRollup.objects.all()}
    assert bucket.timestamp() % 3_600 == 0
    assert before - timedelta(hours=1) < bucket <= timezone.now()


def test_what_is_too_much_is_counted_together(own: OwnConnection, holder: int) -> None:
    count = GROUPS_PER_PLACE + 2
    make_many(count)
    jobs = enumerate(claimed(own, holder, count))
    done = (finished_as(job, failed(failure(f"n {number}"))) for number, job in jobs)
    for one in done:
        report(own, held_by(holder), one)
    marks = [failure(f"n {n}").fingerprint for n in range(count)]
    failure_rollup.add(own, [counted(one, failed=1) for one in marks])
    known = {one.value: (1, 0) for one in marks[:GROUPS_PER_PLACE]}
    assert figures() == {**known, marks[0].coarse: (2, 0)}


def test_a_group_was_last_seen_when_it_was_counted_unless_a_moment_ago_or_locked(
    own: OwnConnection, other: OwnConnection
) -> None:
    counts, before = [counted(mark(), failed=1)], timezone.now()
    bystander = group(mark("other"), last_seen=ago(3_600))
    for seconds in (-60, 2):
        FailureGroup.objects.exclude(pk=bystander.pk).delete()
        seen = group(mark(), last_seen=ago(seconds)).last_seen
        failure_rollup.add(own, counts)
        held = FailureGroup.objects.get(fingerprint=mark().value)
        assert held.last_seen == seen
    FailureGroup.objects.update(last_seen=ago(3_600))
    with open_transaction(other) as transaction:  # which nobody waits for
        transaction.run("SELECT FROM jobqueue_failuregroup FOR UPDATE")
        failure_rollup.add(own, counts)
    assert not FailureGroup.objects.filter(last_seen__gt=ago(3_000)).exists()
    failure_rollup.add(own, counts)
    held.refresh_from_db()
    assert before <= held.last_seen <= timezone.now()
    bystander.refresh_from_db()
    assert bystander.last_seen < before - timedelta(minutes=59)
    assert figures() == {mark().value: (4, 0)}


def test_adding_at_once_loses_nothing(own: OwnConnection, other: OwnConnection) -> None:
    marks = [mark(str(number)) for number in range(20)]
    for one in marks:
        group(one, last_seen=ago(3_600))
    forth = [counted(one, failed=1) for one in marks]

    def add(db: OwnConnection, counts: list[FailureCount]) -> None:
        for _ in range(20):
            failure_rollup.add(db, counts)

    together([partial(add, own, forth), partial(add, other, forth[::-1])])
    assert figures() == {one.value: (40, 0) for one in marks}


def test_roll_ups_older_than_ninety_days_are_dropped(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_rollup, "BATCH", 2)
    hours = [ago(days * 86_400) for days in (1, 89, 91, 92, 93)]
    FailureRollup.objects.bulk_create(
        FailureRollup(fingerprint=mark().value, bucket=hour) for hour in hours
    )
    assert failure_rollup.drop(own)
    assert not failure_rollup.drop(own)
    held = set(FailureRollup.objects.values_list("bucket", flat=True))
    assert held == set(hours[:2])


# A resolved group that fails again.


def fail(own: OwnConnection, holder: int, *, release: str) -> FailureGroup:
    """A job fails with a worker of this release; returns the group."""
    make()
    (job,) = claimed(own, holder)
    report(own, held_by(holder, release=release), finished_as(job, retried(wait=-60)))
    return FailureGroup.objects.get()


def test_only_a_resolved_group_can_regress(own: OwnConnection, holder: int) -> None:
    fail(own, holder, release="r1")
    for state in ("open", "ignored"):
        FailureGroup.objects.update(state=state)
        again = fail(own, holder, release="r2")
        assert (again.state, again.regressed_at) == (state, None)
    FailureGroup.objects.update(state="resolved", last_seen=ago(60))
    before = timezone.now()
    again = fail(own, holder, release="r1")
    assert again.state == "open"
    assert again.regressed_at is not None
    assert again.regressed_at >= before
    assert again.last_seen >= before
    # Releases that ran before the fix reopen none.
    FailureGroup.objects.update(state="resolved", excused=["r1", "r2"])
    assert fail(own, holder, release="r2").state == "resolved"
    assert fail(own, holder, release="r3").state == "open"


def test_jobs_of_a_worker_that_died_are_counted_and_reopen_by_the_same_rule(
    own: OwnConnection,
) -> None:
    def crash(release: str) -> str:
        worker = register(own, release=release)
        make_many(3)
        make(ONCE)
        claimed(own, worker, 4, lane(), lane(ONCE))
        rescue(own, [worker], crashed=True, reason="killed by signal 9")
        QueuedJob.objects.all().delete()
        return str(FailureGroup.objects.get(frame=ADD).state)

    crash("r1")
    frames = dict(FailureGroup.objects.values_list("fingerprint", "frame"))
    by_type = {frames[mark]: counts for mark, counts in figures().items()}
    assert by_type == {ADD: (0, 3), ONCE: (1, 0)}
    FailureGroup.objects.update(state="resolved", excused=["r1"])
    assert crash("r1") == "resolved"
    assert crash("r2") == "open"
