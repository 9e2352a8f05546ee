"""The plans of the hot statements, with statistics that know nothing of the rows.

Statistics are taken of an empty table, and then a burst arrives: what autovacuum does
to every queue. Counts of rows and pages are asserted, never times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from django_jobqueue.models import JobType
from django_jobqueue.store import arrays
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import claim, finish, lanes, release
from django_jobqueue.store.queue.claim_rated import CLAIM_RATED
from django_jobqueue.store.queue.claim_weighed import CLAIM_WEIGHED
from django_jobqueue.store.queue.lanes import LaneMark, mark_params
from tests.store.meanwhile import open_transaction
from tests.store.plans import Plan, plan_of
from tests.store.rows import ADD, LIMITED, claimed, job_type, lane, make

BURST = 20_000
READY = "jobqueue_q_ready"
RUNNING = "jobqueue_q_running"
PRIMARY = "jobqueue_queuedjob_pkey"

FILL = """
INSERT INTO jobqueue_queuedjob (job_type, run_after, status, worker_id, fence)
SELECT %(job_type)s, clock_timestamp() + %(from)s::interval + n * interval '1 ms',
       %(status)s, %(worker)s, 1
  FROM generate_series(1, %(count)s) AS n
"""
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
        plan_of(own, claim.CLAIM_LIMITED, given)
    fill(LIMITED)
    fill(LIMITED, count=1, status="running", worker=holder)
    fill(ADD, status="running", worker=holder)

    plan = plan_of(own, claim.CLAIM_LIMITED, given)

    assert_index_scans(plan, READY, RUNNING)
    assert plan.rows() == 3  # one runs, so one more: picked, and found again


@pytest.mark.parametrize("planned", ["while empty", "after the burst"])
@pytest.mark.parametrize("concurrency", [None, 2])
@pytest.mark.parametrize(
    ("statement", "rule"), [(CLAIM_RATED, None), (CLAIM_WEIGHED, WEIGHED)]
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
    fill()
    with open_transaction(other) as transaction:
        transaction.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        transaction.fetch("SELECT 1")
        last = claimed(own, holder, BURST)[-1]
        own.run("DELETE FROM jobqueue_queuedjob WHERE worker_id IS NOT NULL")
        make()
        mark = LaneMark(lane().lane, (last.run_after, last.id))

        (head,) = lanes.scan(own, [lane()])
        looked = plan_of(own, lanes.SCAN, lanes._params([mark]))
        looked_in_vain = plan_of(own, lanes.SCAN, lanes._params([lane()]))
        marked = plan_of(own, claim.CLAIM, params(holder, mark))
        claimed_in_vain = plan_of(own, claim.CLAIM, params(holder, lane()))

    assert head.mark > mark.mark
    assert looked.buffers < 100
    assert marked.buffers < 100
    assert looked_in_vain.buffers > 5 * looked.buffers
    assert claimed_in_vain.buffers > 5 * marked.buffers


PLANNED = ["while empty", "after a truncation", "after the burst"]


@pytest.mark.parametrize("planned", PLANNED)
def test_a_success_finds_its_jobs_by_their_ids(
    finishing: OwnConnection, holder: int, planned: str
) -> None:
    given = _outcomes(holder)
    _plan_early(finishing, finish.SUCCEED, {**given, **_arrays([])}, planned)
    fill(status="running", worker=holder)
    rows = finishing.fetch("SELECT id, fence FROM jobqueue_queuedjob LIMIT 200")

    plan = plan_of(finishing, finish.SUCCEED, {**given, **_arrays(rows)})

    assert_index_scans(plan, PRIMARY)
    assert plan.rows() == 200
    assert plan.compared == 0


@pytest.mark.parametrize("planned", PLANNED)
def test_every_other_outcome_finds_its_jobs_by_their_ids(
    finishing: OwnConnection, holder: int, planned: str
) -> None:
    given = _outcomes(holder)
    none = {**given, "outcomes": "[]", "ids": "{}"}
    _plan_early(finishing, finish.END, none, planned)
    fill(status="running", worker=holder)
    rows = finishing.fetch("SELECT id, fence FROM jobqueue_queuedjob LIMIT 200")
    outcomes = [
        {
            "id": str(id),
            "fence": fence,
            "status": "failed" if number % 2 else None,
            "wait": 1,
            "refund": 0,
            "ran": 1,
            "ago": 0,
            "ended": "failed",
            "reason": "",
        }
        for number, (id, fence) in enumerate(rows)
    ]

    plan = plan_of(
        finishing,
        finish.END,
        {**given, "outcomes": json.dumps(outcomes), "ids": [id for id, _ in rows]},
    )

    assert_index_scans(plan, PRIMARY)
    assert plan.rows() <= 600  # to be locked, to go, to come back
    assert plan.compared == 0
    assert "Seq Scan" not in plan.indexes("jobqueue_failure")
    assert "Seq Scan" not in plan.indexes("jobqueue_failuregroup")


def _plan_early(
    db: OwnConnection, statement: str, nothing: dict[str, Any], planned: str
) -> None:
    """Have it planned before the burst, if so."""
    if planned == "after a truncation":
        db.run("TRUNCATE jobqueue_queuedjob")
    if planned != "after the burst":
        plan_of(db, statement, nothing)


def test_a_look_reads_one_entry_of_each_known_lane(
    own: OwnConnection,
) -> None:
    names = [job_type(f"t{number}") for number in range(5)]
    for name in names:
        fill(name, count=BURST // 5)
    known = [lane(name) for name in names]

    plan = plan_of(own, lanes.SCAN, lanes._params(known))

    assert_index_scans(plan, READY)
    assert plan.rows() == 5
    assert plan.buffers < 200


@pytest.mark.parametrize("statement", [lanes.SCAN, lanes.FULL_SCAN])
def test_a_look_that_knows_nothing_reads_one_entry_of_each_lane(
    own: OwnConnection, statement: str
) -> None:
    names = [job_type(f"t{number}") for number in range(5)]
    for name in names:
        fill(name, count=BURST // 5)

    plan = plan_of(own, statement, lanes._params([]))

    assert_index_scans(plan, READY)
    assert plan.rows() <= 10  # an average that PostgreSQL rounds, times the loops
    assert plan.buffers < 200


@pytest.mark.parametrize("waiting", [100, 2_500, 20_000])
@pytest.mark.parametrize("verb", ["succeed", "end", "release"])
def test_jobs_are_found_by_their_ids_also_when_statistics_know_of_no_worker(
    own: OwnConnection, finishing: OwnConnection, holder: int, waiting: int, verb: str
) -> None:
    """Analysed while all jobs waited, as autovacuum may; then a burst runs."""
    fill(count=waiting)
    own.run("ANALYZE jobqueue_queuedjob")
    fill(count=1_000, status="running", worker=holder)
    rows = own.fetch(
        "SELECT id, fence FROM jobqueue_queuedjob WHERE worker_id IS NOT NULL LIMIT 200"
    )
    ids, fences = [id for id, _ in rows], [fence for _, fence in rows]
    if verb == "succeed":
        plan = plan_of(
            finishing, finish.SUCCEED, {**_outcomes(holder), **_arrays(rows)}
        )
    elif verb == "end":
        outcomes = [{"id": str(id), "fence": f, "status": "failed"} for id, f in rows]
        times = {"ran": 1, "ago": 0, "refund": 0}
        listed = json.dumps([{**outcome, **times} for outcome in outcomes])
        given = {**_outcomes(holder), "outcomes": listed, "ids": ids}
        plan = plan_of(finishing, finish.END, given)
    else:
        given = {"worker": holder, "ids": ids, "fences": fences}
        plan = plan_of(own, release.RELEASE, given)

    assert_index_scans(plan, PRIMARY)
    assert plan.rows() <= 600


def _outcomes(holder: int) -> dict[str, Any]:
    return {"alerts": True, "worker_id": holder, "worker": "host:1", "release": ""}


def _arrays(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "ids": arrays.of_ids(id for id, _ in rows),
        "fences": arrays.of_numbers([fence for _, fence in rows]),
        "ran": arrays.of_numbers([1] * len(rows)),
        "ago": arrays.of_numbers([0] * len(rows)),
        "results": json.dumps([None] * len(rows)),
    }
