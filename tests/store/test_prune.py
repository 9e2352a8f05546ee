"""Prune: archived to gone, by status and age, in small batches."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta

import pytest

from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    JobType,
    QueuedJob,
    Report,
)
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.control import prune
from django_jobqueue.store.control.prune import Rule, Walk
from tests.store.meanwhile import open_transaction
from tests.store.plans import plan_of
from tests.store.rows import ADD, ago, archive, make

DAY = 86_400.0
OTHER = "tests.sample.aadd"
RETENTION: Mapping[str, float | None] = {
    "succeeded": 7 * DAY,
    "failed": 90 * DAY,
    "expired": 30 * DAY,
    "cancelled": None,
}

ARCHIVE = "jobqueue_archivedjob"
FILL = """
INSERT INTO jobqueue_archivedjob (job_type, status, finished_at)
SELECT %(job_type)s, 'succeeded', clock_timestamp() - n * interval '1 hour'
  FROM generate_series(100, 99 + %(count)s) AS n
"""


def run(own: OwnConnection, *rules: Rule) -> list[int]:
    """Prune by these rules; return the number of each batch."""
    return [gone for rule in rules for gone in prune.prune(own, rule)]


def left() -> set[uuid.UUID]:
    """The ids that are still there."""
    return set(ArchivedJob.objects.values_list("id", flat=True))


def old(status: str, days: float, job_type: str = ADD) -> uuid.UUID:
    """Archive a job that ended so long ago."""
    return archive(job_type, status, finished_at=ago(days * DAY))


STATUSES = ["succeeded", "failed", "expired", "cancelled"]


def test_what_is_just_old_enough_to_stay_is_neither_counted_nor_pruned(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutoff, tick = ago(10 * DAY), timedelta(microseconds=1)
    text = f"SELECT '{cutoff.isoformat()}'::timestamptz, %(keep)s::float8"
    monkeypatch.setattr(prune, "CUTOFF", text)
    for status in ("succeeded", "failed"):
        ArchivedJob.objects.all().delete()
        stays = {
            archive(ADD, status, finished_at=cutoff),
            archive(ADD, status, finished_at=cutoff + tick),
        }
        archive(ADD, status, finished_at=cutoff - tick)
        rule = Rule(status=status, keep=10 * DAY)
        assert prune.count(own, rule) == 1
        assert sum(run(own, rule)) == 1
        assert left() == stays


def test_a_count_keeps_the_newest_of_each_job_type(own: OwnConnection) -> None:
    for status in STATUSES:
        ArchivedJob.objects.all().delete()
        other_status = "failed" if status == "succeeded" else "succeeded"
        moment = ago(DAY)
        stay = {old(other_status, days) for days in (1, 2, 3, 4)}
        stay |= {old(status, days, OTHER) for days in (1, 2, 3)}
        stay |= {old(status, days) for days in (0.5, 0.7)}
        # What ended together with the last one that is kept stays, too.
        stay |= {archive(ADD, status, finished_at=moment) for _ in range(3)}
        for days in (4, 5):
            old(status, days)
        rules = prune.rules(own, {}, {status: 3})
        assert [(rule.job_type, prune.count(own, rule)) for rule in rules] == [(ADD, 2)]
        assert prune.rules(own, {}, {status: 3}, only_type=OTHER) == []
        (rule,) = prune.rules(own, {}, {status: 2}, only_type=OTHER)
        assert (rule.job_type, prune.count(own, rule)) == (OTHER, 1)
        assert sum(run(own, *rules)) == 2
        assert left() == stay
        assert prune.rules(own, {}, {status: None}) == []


def test_a_rule_takes_what_is_older_and_of_its_status(own: OwnConnection) -> None:
    for status in STATUSES:
        ArchivedJob.objects.all().delete()
        stays = {old(other, 11) for other in STATUSES if other != status}
        stays.add(old(status, 9))
        old(status, 11)
        rule = Rule(status=status, keep=10 * DAY)
        for db in (own, DjangoDatabase()):
            assert prune.count(db, rule) == 1
            assert sum(prune.prune(db, rule)) == 1
            assert left() == stays
            old(status, 11)


def test_the_settings_are_rules_and_none_is_forever(own: OwnConnection) -> None:
    rules = prune.rules(own, RETENTION)
    assert [(rule.status, rule.keep) for rule in rules] == [
        ("succeeded", 7 * DAY),
        ("failed", 90 * DAY),
        ("expired", 30 * DAY),
    ]
    assert rules[0] == Rule(status="succeeded", keep=7 * DAY)


def test_a_job_type_with_its_own_retention_is_exempt(own: OwnConnection) -> None:
    JobType.objects.filter(name=ADD).update(keep_succeeded_override=timedelta(days=1))
    JobType.objects.filter(name=OTHER).update(
        keep_unsuccessful_override=timedelta(days=400)
    )

    rules = prune.rules(own, RETENTION)

    assert {(r.status, r.job_type, r.keep, r.but_for) for r in rules} == {
        ("succeeded", ADD, DAY, ()),
        ("succeeded", None, 7 * DAY, (ADD,)),
        ("failed", OTHER, 400 * DAY, ()),
        ("failed", None, 90 * DAY, (OTHER,)),
        ("expired", OTHER, 400 * DAY, ()),
        ("expired", None, 30 * DAY, (OTHER,)),
        ("cancelled", OTHER, 400 * DAY, ()),
    }
    kept = {
        *(old("succeeded", 0.5), old("succeeded", 2, OTHER), old("failed", 89)),
        *(old("failed", 399, OTHER), old("cancelled", 4_000), old("expired", 29)),
        old("cancelled", 399, OTHER),
    }
    for days, status in ((2, "succeeded"), (91, "failed"), (31, "expired")):
        old(status, days)
    for days, status in ((8, "succeeded"), (401, "failed"), (401, "cancelled")):
        old(status, days, OTHER)
    assert sum(run(own, *rules)) == 6
    assert left() == kept

    # Zero keeps nothing.
    JobType.objects.filter(name=ADD).update(keep_succeeded_override=timedelta(0))
    old("succeeded", 0.001)
    assert sum(run(own, *prune.rules(own, RETENTION))) == 2


def test_rules_can_be_asked_for_one_job_type(own: OwnConnection) -> None:
    JobType.objects.filter(name=ADD).update(keep_succeeded_override=timedelta(days=1))
    JobType.objects.filter(name=OTHER).update(keep_succeeded_override=timedelta(days=2))
    rules = prune.rules(own, RETENTION, only_type=ADD)
    assert {(r.status, r.job_type, r.keep) for r in rules} == {
        ("succeeded", ADD, DAY),
        ("failed", ADD, 90 * DAY),
        ("expired", ADD, 30 * DAY),
    }
    gone = [old("failed", 91), old("succeeded", 1.5)]
    kept = {old("failed", 91, OTHER), old("succeeded", 1.5, OTHER)}
    assert [prune.count(own, rule) for rule in rules].count(1) == len(gone)
    run(own, *rules)
    assert left() == kept


def test_pruning_goes_in_batches_from_the_oldest_on(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "BATCH", 3)
    days = [20, 12, 18, 14, 16, 11, 19]
    made = {day: old("failed", day) for day in days}
    steps = prune.prune(own, Rule(status="failed", keep=10 * DAY))
    assert next(steps) == 3
    assert left() == {made[day] for day in (12, 14, 16, 11)}
    assert next(steps) == 3
    assert left() == {made[11]}
    assert list(steps) == [1]


def test_what_is_kept_is_walked_once_also_by_who_goes_on_later(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "BATCH", 2)
    rule, walk = Rule(status="succeeded", keep=10 * DAY), Walk()
    kept = {old("failed", 100 - n) for n in range(4)}
    old("succeeded", 50)
    assert list(prune.prune(own, rule, walk)) == [0, 0, 1]
    locks = "SELECT DISTINCT xmax::text FROM jobqueue_archivedjob"
    assert own.fetch(locks) == [("0",)]  # nor is what is kept locked
    behind = old("succeeded", 60)
    old("succeeded", 40)
    assert list(prune.prune(own, rule, walk)) == [1]
    assert left() == {*kept, behind}
    assert run(own, rule) == [0, 0, 1]
    assert left() == kept


def test_a_batch_is_read_in_order_of_time_and_deleted_by_position(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "BATCH", 100)
    own.run(FILL, {"job_type": ADD, "count": 5_000})
    rule = Rule(status="succeeded", keep=DAY)
    after, after_id = Walk().position
    params = {**rule.params(ago(DAY)), "after": after, "after_id": after_id}
    pruning = prune._PRUNE.format(condition=rule.condition)  # private: its plan
    plan = plan_of(own, pruning, params)
    assert plan.indexes(ARCHIVE) == {"jobqueue_a_newest", "Tid Scan"}
    assert plan.rows(ARCHIVE) == 300  # seen, locked, deleted
    assert plan.sorts(ARCHIVE) == []


def test_jobs_that_ended_at_the_same_moment_are_all_seen_and_later_ones_left(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "BATCH", 2)
    moment = ago(20 * DAY)
    for _ in range(5):
        archive(finished_at=moment)
    steps = prune.prune(own, Rule(status="succeeded", keep=0))
    assert next(steps) == 2
    late = archive()  # it ends while a pass runs
    assert list(steps) == [2, 1]
    assert left() == {late}


def test_a_locked_row_is_skipped(own: OwnConnection, other: OwnConnection) -> None:
    locked = old("failed", 20)
    old("failed", 15)
    rule = Rule(status="failed", keep=10 * DAY)
    with open_transaction(other) as transaction:
        transaction.lock(locked, "jobqueue_archivedjob")
        assert run(own, rule) == [1]
    assert left() == {locked}
    assert run(own, rule) == [1]


def test_the_failures_of_a_job_go_with_it(own: OwnConnection) -> None:
    gone, kept, waiting = old("failed", 20), old("failed", 5), make()
    for id in (gone, gone, kept, waiting):
        Failure.objects.create(job_id=id, job_type=ADD, number=1, end="failed")
    run(own, Rule(status="failed", keep=10 * DAY))
    assert set(Failure.objects.values_list("job_id", flat=True)) == {kept, waiting}


def test_what_would_go_can_be_counted_before(own: OwnConnection) -> None:
    for status in ("succeeded", "failed", "cancelled"):
        for name in (ADD, OTHER, OTHER):
            old(status, 20, name)
            old(status, 5, name)
    rules = {
        Rule(status="succeeded", keep=10 * DAY): 3,
        Rule(status="failed", keep=10 * DAY, job_type=ADD): 1,
        Rule(status="failed", keep=10 * DAY, but_for=(ADD,)): 2,
        Rule(status="cancelled", keep=10 * DAY): 3,
    }
    for rule, count in rules.items():
        assert prune.count(own, rule) == sum(run(own, rule)) == count
        assert prune.count(own, rule) == 0


def test_a_group_of_nothing_and_nobody_is_forgotten(own: OwnConnection) -> None:
    def make_group(**columns: object) -> uuid.UUID:
        values = {"first_seen": ago(2 * DAY), "coarse": uuid.uuid4(), **columns}
        mark: uuid.UUID = FailureGroup.objects.create(
            fingerprint=uuid.uuid4(), **values
        ).fingerprint
        return mark

    of_failure, of_job = make_group(), make_group()
    Failure.objects.create(
        job_id=uuid.uuid4(),
        job_type=ADD,
        number=1,
        end="failed",
        fingerprint=of_failure,
    )
    archive(status="failed", fingerprint=of_job)
    make_group()  # forgotten
    kept = {
        *(of_failure, of_job, make_group(first_seen=ago(DAY / 2))),
        *(make_group(state="resolved"), make_group(state="ignored")),
        *(make_group(assignee="anna"), make_group(notes="see the ticket")),
    }

    prune.forget_groups(own)

    assert set(FailureGroup.objects.values_list("fingerprint", flat=True)) == kept


def test_what_a_job_left_that_is_gone_goes_too_in_time(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "BATCH", 2)
    kept = [make(), archive(ADD, "failed")]
    gone = [make(), archive(ADD, "failed"), uuid.uuid4()]
    for id in (*gone, *kept):
        for fence in (1, 2):
            Failure.objects.create(job_id=id, job_type=ADD, number=fence, end="failed")
            Report.objects.create(job_id=id, fence=fence, number=fence)
    QueuedJob.objects.filter(id__in=gone).delete()
    ArchivedJob.objects.filter(id__in=gone).delete()

    walked: dict[str, int] = {}
    rows = []
    for _ in range(7):
        prune.tidy(own, walked)
        rows.append((Failure.objects.count(), Report.objects.count()))

    assert rows == [(8, 8), (6, 6), (4, 4), (4, 4), (4, 4), (4, 4), (4, 4)]
    for model in (Failure, Report):
        assert set(model.objects.values_list("job_id", flat=True)) == set(kept)
    Failure.objects.create(job_id=gone[0], job_type=ADD, number=1, end="failed")
    for _ in range(4):
        prune.tidy(own, walked)
    assert Failure.objects.count() == 4
