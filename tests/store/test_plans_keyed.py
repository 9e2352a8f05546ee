"""The plans of claims by key, whatever the statistics say: true ones, those of an empty
table, and those of a table in which nothing ran or no job had a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from django_jobqueue.models import JobType
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import claim_keyed
from django_jobqueue.store.queue.claim_keyed import CLAIM, KeyedClaim
from django_jobqueue.store.queue.claim_keyed_rated import CLAIM_RATED
from django_jobqueue.store.queue.claim_weighed import CLAIM_KEYED_WEIGHED
from django_jobqueue.store.queue.lanes import START
from tests.store.plans import Plan, plan_of
from tests.store.rows import ADD, KEYED

pytestmark = pytest.mark.django_db(transaction=True)

WAITING, KEYS, RUNNING = 4_000, 200, 500
KEYED_INDEX, READY = "jobqueue_q_keyed", "jobqueue_q_ready"
KEYED_RUNNING, STARTED = "jobqueue_q_keyed_running", "jobqueue_q_keyed_started"

FILL = """
INSERT INTO jobqueue_queuedjob (job_type, queue, priority, data, limit_key, status,
                                worker_id, run_after)
SELECT %(type)s, 'default', 0, '{}', %(type)s || ' ' || n %% %(keys)s, %(status)s,
       CASE WHEN %(status)s = 'running' THEN %(worker)s::bigint END,
       clock_timestamp() - interval '1 hour' + n * interval '1 ms'
  FROM generate_series(1, %(count)s) AS n
"""


def fill(
    count: int, worker: int, status: str = "queued", job_type: str = KEYED
) -> None:
    """Insert rows of each key in turn."""
    with connection.cursor() as cursor:
        given = {"type": job_type, "keys": KEYS, "status": status, "worker": worker}
        cursor.execute(FILL, {**given, "count": count})


def indexes(plan: Plan) -> set[str]:
    """The names of those that were really used."""
    used = {scan.get("Index Name") for scan in plan.scans() if scan["Actual Loops"]}
    return {name for name in used if name is not None}


def run(statement: str) -> None:
    """Execute it."""
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture(autouse=True)
def _stale_statistics(transactional_db: None) -> Iterator[None]:
    """Nobody else analyses the table meanwhile."""
    run("ALTER TABLE jobqueue_queuedjob SET (autovacuum_enabled = off)")
    yield
    run("ALTER TABLE jobqueue_queuedjob RESET (autovacuum_enabled)")


@pytest.mark.parametrize("statistics", ["empty", "full", "nothing ran", "no keys"])
def test_a_claim_by_key_reads_a_few_rows_of_each_key_by_index(
    own: OwnConnection, holder: int, statistics: str
) -> None:
    params: dict[str, Any] = {
        "queue": "default",
        "priority": 0,
        "job_type": KEYED,
        "limit_name": KEYED,
        "locks_limit": True,
        "locks_type": False,
        "sees_rates": False,
        "first": "",
        "oldest": False,
        "taken": 0,
        "limit": 10,
        "worker": holder,
    }
    if statistics == "empty":
        run("ANALYZE jobqueue_queuedjob")
    fill(RUNNING, holder, "running", ADD)
    run("UPDATE jobqueue_queuedjob SET limit_key = NULL")
    if statistics == "no keys":
        run("ANALYZE jobqueue_queuedjob")
    fill(WAITING, holder)
    if statistics == "nothing ran":
        run("DELETE FROM jobqueue_queuedjob WHERE status = 'running'")
        run("ANALYZE jobqueue_queuedjob")
        fill(RUNNING, holder, "running", ADD)
    fill(1, holder, "running")
    if statistics == "full":
        run("ANALYZE jobqueue_queuedjob")

    def check(claim: KeyedClaim) -> None:
        for statement, each in ((claim.heads, 1), (claim.several, 4)):
            plan = plan_of(own, statement, {**params, "each": each})
            assert indexes(plan) == {KEYED_INDEX, KEYED_RUNNING}
            assert plan.sorts() == []
            assert plan.rows() <= 60
        plan = plan_of(own, claim.in_order, {**params, "each": 1})
        assert indexes(plan) == {KEYED_INDEX, KEYED_RUNNING, STARTED}
        assert plan.sorts() == []
        assert plan.rows() <= 60

    check(CLAIM)
    run("UPDATE jobqueue_keylimit SET rate = '1000/60s burst 100'")
    params |= {"locks_type": True, "sees_rates": True}
    check(CLAIM_RATED)
    rule = {"by": "weight", "default": 1, "of_type": True, "of_key": True}
    JobType.objects.filter(pk=KEYED).update(weight_rule=rule)
    check(CLAIM_KEYED_WEIGHED)


def test_the_next_retry_is_found_by_index(own: OwnConnection) -> None:
    run("ANALYZE jobqueue_queuedjob")
    fill(WAITING, 0)
    run(
        "UPDATE jobqueue_queuedjob SET fence = 1, run_after = clock_timestamp()"
        " + interval '1 hour' WHERE id IN (SELECT id FROM jobqueue_queuedjob LIMIT 20)"
    )
    for _statistics in ("of the empty table", "of this one"):
        plan = plan_of(own, claim_keyed.NEXT_RETRY, {"limit_name": KEYED})
        assert indexes(plan) == {STARTED}
        assert plan.rows() == 20
        run("ANALYZE jobqueue_queuedjob")


def test_a_look_for_jobs_without_a_key_reads_a_part_of_the_lane(
    own: OwnConnection, holder: int
) -> None:
    run("ANALYZE jobqueue_queuedjob")
    fill(WAITING, holder)
    params = {"queue": "default", "priority": 0, "job_type": KEYED}
    params |= {"since": START[0], "since_id": START[1]}
    for _statistics in ("of the empty table", "of this one"):
        plan = plan_of(own, claim_keyed.ADOPT, params)
        assert plan.indexes() - {"Tid Scan"} == {READY}
        assert plan.rows() == claim_keyed.ADOPTED
        run("ANALYZE jobqueue_queuedjob")
