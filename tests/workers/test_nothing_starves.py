"""A job that may run is claimed, whatever stands before it, and more of that than any
claim looks at: by a worker, by a remote worker, and by drain()."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from django_jobqueue import PerKey, Rate, job, operations, remote_job
from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.contrib.remote import remote_claims
from django_jobqueue.contrib.remote.lane_scans import LaneScans
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.models import QueuedJob
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue.claim_keyed import WALK
from django_jobqueue.testing import drain
from django_jobqueue.workers.claiming.lane_scanner import TimeShare
from tests.contrib.http.conftest import ALL, Program
from tests.store.rows import register
from tests.support.hand_driven import Make

pytestmark = pytest.mark.django_db(transaction=True)

MANY = WALK + 1
NAME = "tests.starving"
LAST = "zzz"

# So many jobs, each of a key of its own, all before the key of the job that may run.
FILL = f"""
INSERT INTO jobqueue_queuedjob
       (job_type, queue, priority, data, limit_key, status, worker_id, fence, attempts,
        run_after, expires_at)
SELECT '{NAME}', 'default', 0, jsonb_build_object('key', key), '{NAME} ' || key,
       %(status)s, CASE WHEN %(status)s = 'running' THEN %(worker)s::bigint END,
       %(fence)s, %(fence)s,
       clock_timestamp() + %(due)s::interval + n * interval '1 us',
       clock_timestamp() + %(expires)s::interval
  FROM (SELECT n, 'a' || to_char(n, 'FM00000') AS key
          FROM generate_series(1, %(count)s) AS n) AS made
"""


def act(key: str) -> None: ...


def fill(
    count: int = MANY,
    *,
    due: str = "-1 hour",
    status: str = "queued",
    fence: int = 0,
    expires: str | None = None,
    worker: int | None = None,
) -> None:
    given = {"count": count, "due": due, "status": status, "fence": fence}
    execute(FILL, {**given, "expires": expires, "worker": worker})


def execute(statement: str, given: dict[str, Any] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)


def run_others(count: int = MANY) -> None:
    """A job of each key runs elsewhere."""
    fill(count, status="running", fence=1, worker=register(DjangoDatabase()))


def spend(keys: int = MANY) -> None:
    """The rate of each key lets nothing start today."""
    execute(
        f"INSERT INTO jobqueue_bucket SELECT '{NAME} a' || to_char(n, 'FM00000'),"
        " clock_timestamp() + interval '1 day' FROM generate_series(1, %(keys)s) AS n",
        {"keys": keys},
    )


def forbid() -> None:
    """An operator's number for each key."""
    execute(
        "INSERT INTO jobqueue_keyoverride (limit_key, concurrency)"
        " SELECT limit_key, 0 FROM jobqueue_queuedjob"
    )


ONE = PerKey("key", concurrency=1)
STRICT = PerKey("key", concurrency=1, strict=True)
RATED = PerKey("key", rate=Rate(1, per=86_400))
Before = Callable[[], object]
Declare = Callable[..., Handler[..., Any]]

# What stands before, by key limit.
BEFORE: dict[str, tuple[PerKey, list[Before]]] = {
    "jobs for later": (ONE, [lambda: fill(due="1 day")]),
    "in turns, jobs for later": (PerKey("key"), [lambda: fill(due="1 day")]),
    "keys at their limit": (ONE, [fill, run_others]),
    "twice as many at their limit": (
        ONE,
        [lambda: fill(2 * MANY), lambda: run_others(2 * MANY)],
    ),
    "keys that an operator stopped": (PerKey("key"), [fill, forbid]),
    "keys that have no start left": (RATED, [fill, spend]),
    "retries that are due later": (
        STRICT,
        [lambda: fill(due="1 day", fence=1), fill],
    ),
    "heads that have expired": (ONE, [lambda: fill(expires="-1 minute")]),
    "older jobs at their limit, and jobs for later": (
        ONE,
        [run_others, fill, lambda: fill(2 * MANY, due="1 day")],
    ),
}


def by_worker(make_worker: Make) -> None:
    worker = make_worker(threads=2, async_slots=0)
    for _ in range(3):
        worker.turn(told=True)


def remote_claim(slots: int) -> Callable[[int], Any]:
    """What a new remote worker claims up to so many jobs by."""
    program = Program(create_token(f"fleet-{uuid4()}", ALL).text)
    body = {"name": "node", "job_types": [NAME], "slots": slots}
    path = f"/workers/{program.send('POST', '/workers', body).json()['id']}/claim"
    return lambda limit: program.send("POST", path, {"limit": limit})


def by_remote_worker(make_worker: Make) -> None:
    claim = remote_claim(slots=2)
    for _ in range(3):
        claim(2)


def by_drain(make_worker: Make) -> None:
    drain(limit=1)


WAYS = {"worker": by_worker, "remote worker": by_remote_worker, "drain()": by_drain}


@pytest.fixture(autouse=True)
def _scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """What remote workers saw of lanes and keys in another test is not there."""
    monkeypatch.setattr(remote_claims, "_scans", LaneScans())
    # private: of the process, as the scans.
    monkeypatch.setattr(remote_claims, "_key_turns", {})
    # private: likewise.
    monkeypatch.setattr(remote_claims, "_turns", None)


@pytest.fixture
def declare() -> Iterator[Declare]:
    """Declare the job type for one of the ways."""

    def declare(way: str, **options: Any) -> Handler[..., Any]:
        registry.remove(NAME)
        handler: Handler[..., Any] = (
            remote_job(NAME, **options)
            if way == "remote worker"
            else job(name=NAME, **options)(act)
        )
        job_types.declare(DjangoDatabase(), [handler.declaration])
        return handler

    yield declare
    registry.remove(NAME)


def starts(way: str, make_worker: Make, key: str = LAST) -> bool:
    """Whether the job of this key is started."""
    id = QueuedJob.objects.get(limit_key=f"{NAME} {key}").id
    WAYS[way](make_worker)
    return not QueuedJob.objects.filter(id=id, status="queued").exists()


@pytest.mark.parametrize("way", WAYS)
def test_a_job_of_a_key_with_room_starts_whatever_is_before_it(
    make_worker: Make,
    declare: Declare,
    way: str,
) -> None:
    wrong = []
    for before, (per_key, steps) in BEFORE.items():
        if per_key is RATED and way == "drain()":
            continue  # it keeps no rates, and runs them all
        handler = declare(way, per_key=per_key)
        for step in steps:
            step()
        handler.enqueue(key=LAST)
        execute("ANALYZE jobqueue_queuedjob")
        if not starts(way, make_worker):
            wrong.append(before)
        execute("TRUNCATE jobqueue_queuedjob, jobqueue_keyoverride, jobqueue_bucket")
    assert wrong == []


@pytest.mark.parametrize("way", ["worker", "remote worker"])
def test_without_time_for_more_the_next_turn_goes_on(
    make_worker: Make,
    monkeypatch: pytest.MonkeyPatch,
    declare: Declare,
    way: str,
) -> None:
    monkeypatch.setattr(TimeShare, "may_begin", lambda self: False)
    monkeypatch.setattr(remote_claims, "MOST_WALKS", 0)
    handler = declare(way, per_key=ONE)
    fill(2 * MANY)
    run_others(2 * MANY)
    handler.enqueue(key=LAST)
    assert starts(way, make_worker)


# Kinds of jobs that others of their priority may not keep waiting.
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "any": ({}, {}),
    "at most once": ({"delivery": "at_most_once"}, {}),
    "runs alone": ({}, {"quarantined": True, "crashes": 2}),
}


class Fleet:
    """A remote worker that asks for all of its free slots, as the guide says."""

    def __init__(self, *types: str) -> None:
        self.program = Program(create_token(f"fleet-{uuid4()}", ALL).text)
        body = {"name": "node", "job_types": types, "slots": 3}
        self.id = self.program.send("POST", "/workers", body).json()["id"]
        self.held: list[dict[str, Any]] = []

    def turn(self) -> None:
        """Finish the two that it has had longest, and ask for more."""
        ended, self.held = self.held[:2], self.held[2:]
        for one in ended:
            body = {"worker": self.id, "fence": one["fence"], "status": "succeeded"}
            self.program.send("POST", f"/jobs/{one['name']}/{one['id']}", body)
        body = {"limit": 3 - len(self.held)}
        sent = self.program.send("POST", f"/workers/{self.id}/claim", body)
        self.held += sent.json()["jobs"]


@pytest.mark.parametrize("way", ["remote worker", "drain()"])
def test_a_job_of_each_kind_starts_while_others_are_always_due(
    declare: Declare, way: str
) -> None:
    """Those of drain() have one priority less: it takes what is due first."""
    other, waits = f"{NAME}.others", []
    for kind, (options, columns) in KINDS.items():
        handler = declare(way, **options)
        others = remote_job(other) if way == "remote worker" else job(name=other)(act)
        job_types.declare(DjangoDatabase(), [others.declaration])
        others.enqueue(key="first")
        id = handler.using(priority=int(way == "drain()")).enqueue(key=LAST).id
        QueuedJob.objects.filter(pk=id).update(**columns)
        fleet = Fleet(NAME, other) if way == "remote worker" else None
        for _ in range(8):
            for _ in range(3):
                others.enqueue(key="more")
            drain(limit=1) if fleet is None else fleet.turn()
        if QueuedJob.objects.filter(pk=id, status="queued").exists():
            waits.append(kind)
        registry.remove(other)
        execute("TRUNCATE jobqueue_queuedjob")
    assert waits == []


# The keys of waiting jobs, and how many of each key are held by who has ten slots, by
# the options of the type. Which keys begin is anybody's turn.
TWO = {"concurrency": 2}
HELD: dict[str, tuple[dict[str, Any], str, list[int]]] = {
    "plain": ({}, "aab", [1, 2]),
    "limited": (TWO, "aaa", [2]),
    "limited, at most once": ({**TWO, "delivery": "at_most_once"}, "aaa", [2]),
    "by key": ({"per_key": ONE}, "aabb", [1, 1]),
    "by key, limited": ({"per_key": ONE, **TWO}, "aabbc", [1, 1]),
    "by key, in order": ({"per_key": STRICT}, "aabb", [1, 1]),
    "in turns": ({"per_key": PerKey("key")}, "aab", [1, 2]),
    "with a rate": ({"rate": Rate(4, per=86_400, burst=2)}, "aaa", [2]),
    "by key, with a rate": ({"per_key": RATED}, "aabb", [1, 1]),
    "with a rate, of keys": ({"per_key": ONE, "rate": Rate(1, per=60)}, "ab", [1]),
}


@pytest.mark.parametrize("way", ["worker", "remote worker"])
def test_all_who_claim_keep_the_same_limits(
    make_worker: Make, declare: Declare, way: str
) -> None:
    wrong = {}
    for kind, (options, put, held) in HELD.items():
        handler = declare(way, **options)
        for key in put:
            handler.enqueue(key=key)
        if way == "worker":
            make_worker(threads=10, async_slots=0).claim(told=True)
        else:
            claim = remote_claim(slots=10)
            for _ in put:
                claim(1)
        running = QueuedJob.objects.filter(status="running").values_list("data__key")
        if sorted(Counter(running).values()) != held:
            wrong[kind] = list(running)
        execute("TRUNCATE jobqueue_queuedjob, jobqueue_bucket")
    assert wrong == {}


def test_a_number_that_an_operator_gives_one_key_leaves_nothing_undrained(
    declare: Declare,
) -> None:
    handler = declare("drain()", per_key=PerKey("key"))
    operations.override_limit(NAME, 1, key="a")
    operations.override_limit(NAME, 0, key="b")
    for key in "aabc":
        handler.enqueue(key=key)
    assert len(drain()) == 3
    assert QueuedJob.objects.get().limit_key == f"{NAME} b"
