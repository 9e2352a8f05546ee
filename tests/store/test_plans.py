"""The plans of the hot statements, with statistics that know nothing of the rows.

Statistics are taken of an empty table, and then a burst arrives: what autovacuum does
to every queue. Counts of rows and pages are asserted, never times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from django.db import connection

from django_jobqueue.models import JobType
from django_jobqueue.store import on_failure
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.prepared import array_of_ids, array_of_numbers
from django_jobqueue.store.queue import (
    claim,
    claim_limited,
    finish,
    finish_unsuccessful,
    lanes,
    release,
)
from django_jobqueue.store.queue.claim_rated import CLAIM_RATED
from django_jobqueue.store.queue.claim_weighed import CLAIM_WEIGHED
from django_jobqueue.store.queue.lanes import LaneMark, mark_params
from tests.store.meanwhile import open_transaction
from tests.store.plans import Plan, plan_of
from tests.store.rows import ADD, LIMITED, claimed, job_type, lane, make

BURST = 2_500
READY = "jobqueue_q_ready"
RUNNING = "jobqueue_q_running"
PRIMARY = "jobqueue_queuedjob_pkey"

FILL = """
INSERT INTO jobqueue_queuedjob (job_type, run_after, status, worker_id, fence)
SELECT %(job_type)s, clock_timestamp() + %(from)s::interval + n * interval '1 ms',
       %(status)s, %(worker)s, 1
  FROM generate_series(1, %(count)s) AS n
"""
lane_params = lanes._params  # private: what a scan is sent with
WEIGHED = {"by": "weight", "default": 1, "of_type": True, "of_key": True}


@pytest.fixture(autouse=True)
def _stale_statistics(transactional_db: None) -> Iterator[None]:
    """The statistics of the hot table say that it is empty, and stay so."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobqueue_queuedjob SET (autovacuum_enabled = off)")
        cursor.execute("ANALYZE jobqueue_queuedjob")
        yield
        cursor.execute("ALTER TABLE jobqueue_queuedjob RESET (autovacuum_enabled)")


def fill(
    job_type: str = ADD,
    from_: str = "-1 hour",
    *,
    count: int = BURST,
    status: str = "queued",
    worker: int | None = None,
) -> None:
    """Insert many rows, due one millisecond after the other."""
    with connection.cursor() as cursor:
        cursor.execute(
            FILL,
            {
                "job_type": job_type,
                "from": from_,
                "count": count,
                "status": status,
                "worker": worker,
            },
        )


def params(worker: int, *lanes: LaneMark, limit: int = 10) -> dict[str, Any]:
    """The parameters of a claim."""
    given = mark_params(lanes or [lane()])
    return {**given, "worker": worker, "limit": limit}


def assert_index_scans(plan: Plan, *indexes: str) -> None:
    """The hot table is read by these indexes and by position only; nothing is
    sorted."""
    assert plan.indexes() - {"Tid Scan"} == set(indexes)
    assert plan.sorts() == []


@pytest.mark.parametrize("planned", ["while empty", "after the burst"])
def test_a_claim_reads_its_lane_in_order_and_no_further_than_its_limit(
    own: OwnConnection, holder: int, planned: str
) -> None:
    if planned == "while empty":
        plan_of(own, claim.CLAIM, params(holder))
    fill()
    plan = plan_of(own, claim.CLAIM, params(holder))
    assert_index_scans(plan, READY)
    assert plan.rows() == 20  # picked, and found again by position


def test_a_claim_touches_little_whatever_stands_before_and_behind_its_jobs(
    own: OwnConnection, holder: int
) -> None:
    job_type("a.in.front")
    fill("a.in.front", "-1 day")
    fill(ADD, "-1 hour")
    fill(ADD, "1 hour")
    plan = plan_of(own, claim.CLAIM, params(holder))
    assert_index_scans(plan, READY)
    assert plan.rows() <= 40
    assert plan.buffers <= 400


def test_a_claim_of_lanes_that_are_paused_or_empty_touches_none_of_their_jobs(
    own: OwnConnection, holder: int
) -> None:
    JobType.objects.filter(name=ADD).update(paused=True)
    fill()
    empty = [lane(queue=f"q{number}") for number in range(50)]
    plan = plan_of(own, claim.CLAIM, params(holder, lane(), *empty))
    assert plan.rows() == 0


@pytest.mark.parametrize("planned", ["while empty", "after the burst"])
def test_a_claim_within_a_limit_counts_what_runs_by_index(
    own: OwnConnection, holder: int, planned: str
) -> None:
    given = {**params(holder, lane(LIMITED)), "job_type": LIMITED}
    if planned == "while empty":
        plan_of(own, claim_limited.CLAIM_LIMITED, given)
    fill(LIMITED)
    fill(LIMITED, count=1, status="running", worker=holder)
    fill(ADD, status="running", worker=holder)
    plan = plan_of(own, claim_limited.CLAIM_LIMITED, given)
    assert_index_scans(plan, READY, RUNNING)
    assert plan.rows() == 3  # one runs, so one more: picked, and found again


@pytest.mark.parametrize(
    ("statement", "rule", "concurrency", "planned"),
    [
        (CLAIM_RATED, None, None, "while empty"),
        (CLAIM_RATED, None, 2, "after the burst"),
        (CLAIM_WEIGHED, WEIGHED, None, "after the burst"),
        (CLAIM_WEIGHED, WEIGHED, 2, "while empty"),
    ],
)
def test_a_claim_within_a_rate_reads_no_further_than_the_rate_lets_start(
    own: OwnConnection,
    holder: int,
    planned: str,
    concurrency: int | None,
    statement: str,
    rule: dict[str, Any] | None,
) -> None:
    rate = "7/60s burst 3"
    job_type(LIMITED, rate=rate, weight_rule=rule, concurrency=concurrency)
    given = {**params(holder, lane(LIMITED)), "job_type": LIMITED}
    if planned == "while empty":
        plan_of(own, statement, given)
    fill(LIMITED)
    fill(LIMITED, count=1, status="running", worker=holder)
    fill(ADD, status="running", worker=holder)

    plan = plan_of(own, statement, given)

    # Picked, and found again; and the one that runs, if it is to be counted.
    used = {s.get("Index Name") for s in plan.scans() if s["Actual Loops"]}
    assert used - {None} == ({READY} if concurrency is None else {READY, RUNNING})
    assert plan.sorts() == []
    assert plan.rows() == (6 if concurrency is None else 3)
    assert plan.rows("jobqueue_bucket") <= 1


def test_a_mark_spares_a_scan_the_entries_that_an_old_snapshot_keeps(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    many = 8_000
    fill(count=many)
    with open_transaction(other) as transaction:
        transaction.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        transaction.fetch("SELECT 1")
        last = claimed(own, holder, many)[-1]
        own.run("DELETE FROM jobqueue_queuedjob WHERE worker_id IS NOT NULL")
        make()
        mark = LaneMark(lane().lane, (last.run_after, last.id))

        (head,) = lanes.scan(own, [lane()])
        looked = plan_of(own, lanes.SCAN, lane_params([mark]))
        looked_in_vain = plan_of(own, lanes.SCAN, lane_params([lane()]))
        marked = plan_of(own, claim.CLAIM, params(holder, mark))
        claimed_in_vain = plan_of(own, claim.CLAIM, params(holder, lane()))

    assert head.mark > mark.mark
    assert looked.buffers < 100
    assert marked.buffers < 100
    assert looked_in_vain.buffers > 5 * looked.buffers
    assert claimed_in_vain.buffers > 5 * marked.buffers


@pytest.mark.parametrize(
    "planned", ["while empty", "after a truncation", "after the burst"]
)
def test_outcomes_find_their_jobs_by_their_ids(
    finishing: OwnConnection, holder: int, planned: str
) -> None:
    given = _outcomes(holder)
    if planned == "after a truncation":
        finishing.run("TRUNCATE jobqueue_queuedjob")
    if planned != "after the burst":
        plan_of(finishing, finish.SUCCEED, {**given, **_arrays([])})
        plan_of(
            finishing,
            on_failure.composed(finish_unsuccessful.END),
            {**given, "outcomes": "[]", "ids": "{}"},
        )
    fill(status="running", worker=holder)
    rows = finishing.fetch("SELECT id, fence FROM jobqueue_queuedjob LIMIT 200")

    plan = plan_of(finishing, finish.SUCCEED, {**given, **_arrays(rows)})

    assert_index_scans(plan, PRIMARY)
    assert plan.rows() == 200
    assert plan.compared == 0

    plan = plan_of(
        finishing,
        on_failure.composed(finish_unsuccessful.END),
        {**given, **_ends(rows)},
    )

    assert_index_scans(plan, PRIMARY)
    assert plan.rows() <= 600  # to be locked, to go, to come back
    assert plan.compared == 0
    assert "Seq Scan" not in plan.indexes("jobqueue_failure")
    assert "Seq Scan" not in plan.indexes("jobqueue_failuregroup")


def test_a_look_reads_one_entry_of_each_lane(own: OwnConnection) -> None:
    names = [job_type(f"t{number}") for number in range(5)]
    for name in names:
        fill(name, count=BURST // 5)
    known = [lane(name) for name in names]
    for statement, marks in (
        (lanes.SCAN, known),
        (lanes.SCAN, []),
        (lanes.FULL_SCAN, []),
    ):
        plan = plan_of(own, statement, lane_params(marks))
        assert_index_scans(plan, READY)
        # An average that PostgreSQL rounds, times the loops.
        assert plan.rows() <= (5 if marks else 10)
        assert plan.buffers < 200


@pytest.mark.parametrize("waiting", [100, BURST])
def test_jobs_are_found_by_their_ids_also_when_statistics_know_of_no_worker(
    own: OwnConnection, finishing: OwnConnection, holder: int, waiting: int
) -> None:
    """Analysed while all jobs waited, as autovacuum may; then a burst runs."""
    fill(count=waiting)
    own.run("ANALYZE jobqueue_queuedjob")
    fill(count=1_000, status="running", worker=holder)
    rows = own.fetch(
        "SELECT id, fence FROM jobqueue_queuedjob WHERE worker_id IS NOT NULL LIMIT 200"
    )
    ids, fences = [id for id, _ in rows], [fence for _, fence in rows]
    released = {"worker": holder, "ids": ids, "fences": fences}
    given = _outcomes(holder)
    for plan in (
        plan_of(finishing, finish.SUCCEED, {**given, **_arrays(rows)}),
        plan_of(
            finishing,
            on_failure.composed(finish_unsuccessful.END),
            {**given, **_ends(rows)},
        ),
        plan_of(own, release.RELEASE, released),
    ):
        assert_index_scans(plan, PRIMARY)
        assert plan.rows() <= 600


def _outcomes(holder: int) -> dict[str, Any]:
    return {"alerts": True, "worker_id": holder, "worker": "host:1", "release": ""}


def _ends(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Every second one failed for good, the others wait again."""
    times = {"wait": 1, "refund": 0, "ran": 1, "ago": 0}
    words = {"ended": "failed", "reason": ""}
    outcomes = [
        {"id": str(id), "fence": fence, "status": status, **times, **words}
        for (id, fence), status in zip(rows, cycle(("failed", None)), strict=False)
    ]
    return {"outcomes": json.dumps(outcomes), "ids": [id for id, _ in rows]}


def _arrays(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "ids": array_of_ids(id for id, _ in rows),
        "fences": array_of_numbers([fence for _, fence in rows]),
        "ran": array_of_numbers([1] * len(rows)),
        "ago": array_of_numbers([0] * len(rows)),
        "results": json.dumps([None] * len(rows)),
    }
