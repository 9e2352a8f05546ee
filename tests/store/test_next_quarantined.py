"""When a job that must run alone may be claimed: said exactly when a claim finds it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.db import connection

from django_jobqueue.models import JobType, Queue
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue.claim_quarantined import (
    NEXT_QUARANTINED,
    NextQuarantined,
    claim_quarantined,
    next_quarantined,
    quarantine_params,
)
from tests.pairwise import pairwise
from tests.store.plans import plan_of
from tests.store.rows import ADD, ago, job_type, make, make_many, register
from tests.support.undone import check_each, undone

OTHER = "tests.sample.aadd"
PAUSES = ("no", "for good", "until then", "is over")
OPTIONS: dict[str, tuple[Any, ...]] = {
    "type_paused": PAUSES,
    "queue_paused": PAUSES,
    "limit": ("none", "room", "used up", "override 0", "override -1", "override frees"),
    "due": (True, False),
    "expires": ("never", "later", "is over", "before it is due"),
    "served": ("every queue", "this one", "another"),
    "known": (True, False),
    "quarantined": (True, False),
}
FREE = {
    "type_paused": "no",
    "queue_paused": "no",
    "limit": "none",
    "due": True,
    "expires": "never",
    "served": "every queue",
    "known": True,
    "quarantined": True,
}
ALL_PAIRS = pairwise(OPTIONS)
ONE_BY_ONE = [{**FREE, name: v} for name, values in OPTIONS.items() for v in values]


def pause(kind: str) -> dict[str, Any]:
    """The columns of a pause."""
    ends = {"until then": ago(-3_600), "is over": ago(1)}
    return {"paused": kind != "no", "resume_at": ends.get(kind)}


LIMITS: dict[str, tuple[int | None, int | None]] = {
    "none": (None, None),
    "room": (2, None),
    "used up": (1, None),
    "override 0": (None, 0),
    "override -1": (1, -1),
    "override frees": (1, 2),
}


def moments(case: dict[str, Any]) -> dict[str, datetime | None]:
    """When the job is due, and when it expires."""
    due = ago(10) if case["due"] else ago(-600)
    expires = {
        "never": None,
        "later": ago(-3_600),
        "is over": ago(1),
        "before it is due": ago(-300) if not case["due"] else ago(5),
    }
    return {"run_after": due, "expires_at": expires[case["expires"]]}


@pytest.fixture
def db(db: None) -> DjangoDatabase:
    """The connection of the test, in its transaction."""
    return DjangoDatabase()


def arrange(db: DjangoDatabase, case: dict[str, Any]) -> tuple[NextQuarantined, int]:
    """Make the case; return what is said, and how many jobs a claim finds."""
    names = [ADD] if case["known"] else [OTHER]
    served = {"every queue": None, "this one": ["q"], "another": ["default"]}
    queues = served[case["served"]]
    declared, override = LIMITS[case["limit"]]
    worker = register(db)
    JobType.objects.filter(name=ADD).update(
        concurrency=declared,
        concurrency_override=override,
        **pause(case["type_paused"]),
    )
    Queue.objects.create(name="q", **pause(case["queue_paused"]))
    make(queue="q", status="running", worker_id=worker, quarantined=True)  # counts
    make(queue="q", quarantined=case["quarantined"], **moments(case))
    said = next_quarantined(db, names, queues)
    jobs = claim_quarantined(db, worker, names, queues)
    return said, len(jobs)


@pytest.mark.dear
def test_it_says_now_when_a_claim_finds_a_job(db: DjangoDatabase) -> None:
    @undone()
    def check(case: dict[str, Any]) -> None:
        said, found = arrange(db, case)
        assert (said.due_in == 0) == bool(found)
        if said.is_held_back:
            assert not found
        if said.due_in:
            assert 500 < said.due_in <= 600

    check_each(check, [(case,) for case in [*ONE_BY_ONE, *ALL_PAIRS]], least=40)


def test_of_several_the_first_that_may_run_counts(db: DjangoDatabase) -> None:
    make()
    assert next_quarantined(db, [ADD], None) == NextQuarantined(None, False)
    make(queue="paused", quarantined=True, run_after=ago(100))
    Queue.objects.create(name="paused", paused=True)
    assert next_quarantined(db, [ADD, OTHER], None) == NextQuarantined(None, True)
    make(OTHER, quarantined=True, run_after=ago(-600))
    make(OTHER, quarantined=True, run_after=ago(-60))
    said = next_quarantined(db, [ADD, OTHER], None)
    assert said.is_held_back
    assert 0 < (said.due_in or 0) <= 60
    make(OTHER, quarantined=True, run_after=ago(1), expires_at=ago(0.5))
    assert next_quarantined(db, [ADD, OTHER], None).due_in != 0
    make(OTHER, quarantined=True, run_after=ago(1))
    assert next_quarantined(db, [ADD, OTHER], None) == NextQuarantined(0.0, True)


@pytest.fixture
def keeping(transactional_db: None) -> Iterator[OwnConnection]:
    """A connection as the maintenance process's, and statistics that know nothing of
    the rows."""
    connection_ = OwnConnection("tests")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobqueue_queuedjob SET (autovacuum_enabled = off)")
        cursor.execute("ANALYZE jobqueue_queuedjob")
        yield connection_
        cursor.execute("ALTER TABLE jobqueue_queuedjob RESET (autovacuum_enabled)")
    connection_.close()


def test_only_the_jobs_that_run_alone_are_read(keeping: OwnConnection) -> None:
    """Whatever else waits and runs."""
    job_type("tests.of_others")
    keeping.run(
        "INSERT INTO jobqueue_queuedjob (job_type, status, worker_id) "
        "SELECT %(add)s, 'queued', NULL FROM generate_series(1, 1500) UNION ALL "
        "SELECT 'tests.of_others', 'running', 1 FROM generate_series(1, 1000)",
        {"add": ADD},
    )
    make_many(3, quarantined=True)
    for limit in (None, 5):
        JobType.objects.filter(name=ADD).update(concurrency=limit)
        plan = plan_of(keeping, NEXT_QUARANTINED, quarantine_params([ADD], None))
        assert "Seq Scan" not in {scan["Node Type"] for scan in plan.scans()}
        assert plan.rows() < 20
