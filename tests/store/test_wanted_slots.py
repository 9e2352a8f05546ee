"""How many slots a queue could use: the function, the store and a plain count agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import pytest
from django.db import ProgrammingError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from django_jobqueue.models import Queue, QueuedJob, Worker
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue.hand_over import declare_endpoints
from django_jobqueue.store.reading.wanted_slots import wanted_slots, wanted_slots_of
from tests.admin.scene import insert_all
from tests.store.rows import ago, job_type, make, register

TYPES: Final = ("shop.a", "shop.b", "shop.c")
QUEUES: Final = ("mail", "other")

pauses = st.sampled_from([None, None, "open", "over", "later"])
policies = st.fixed_dictionaries(
    {
        "concurrency": st.sampled_from([None, 0, 1, 3]),
        "concurrency_override": st.sampled_from([None, None, -1, 0, 2]),
        "pause": pauses,
    }
)
lanes = st.fixed_dictionaries(
    {
        "job_type": st.sampled_from(TYPES),
        "queue": st.sampled_from(QUEUES),
        "priority": st.sampled_from([-1, 0, 5]),
        "ready": st.integers(0, 4),
        "later": st.integers(0, 2),
        "quarantined": st.integers(0, 1),
        "running": st.integers(0, 4),
        "handed_over": st.integers(0, 2),
    }
)
states = st.fixed_dictionaries(
    {
        "types": st.fixed_dictionaries(dict.fromkeys(TYPES, policies)),
        "queues": st.fixed_dictionaries(dict.fromkeys(QUEUES, pauses)),
        "lanes": st.lists(lanes, max_size=6),
    }
)


def pause(kind: str | None) -> dict[str, Any]:
    """The columns of a pause that lasts, was over long ago, or ends later."""
    ends: dict[str | None, datetime | None] = {"over": ago(60), "later": ago(-3_600)}
    return {"paused": kind is not None, "resume_at": ends.get(kind)}


def set_up(state: dict[str, Any], worker: int, endpoint: int) -> None:
    """Make the rows of this state, and no others."""
    for model in (QueuedJob, Queue):
        model.objects.all().delete()
    for name, policy in state["types"].items():
        columns = {**policy, **pause(policy["pause"])}
        del columns["pause"]
        job_type(name, queue="declared", **columns)
    Queue.objects.bulk_create(
        Queue(name=name, **pause(kind)) for name, kind in state["queues"].items()
    )
    jobs = [one for lane in state["lanes"] for one in jobs_of(lane, worker, endpoint)]
    if jobs:
        insert_all(QueuedJob, jobs)


def jobs_of(
    lane: dict[str, Any], worker: int, endpoint: int
) -> Iterator[dict[str, Any]]:
    """The columns of each job of a lane."""
    place = {name: lane[name] for name in ("queue", "priority")}
    place.update(job_type_id=lane["job_type"], run_after=ago(9))
    running = {"status": "running", "worker_id": worker, "started_at": ago(5)}
    yield from [place] * lane["ready"]
    yield from [{**place, "run_after": ago(-600)}] * lane["later"]
    yield from [{**place, "quarantined": True}] * lane["quarantined"]
    yield from [{**place, **running}] * lane["running"]
    handed_over = {**running, "worker_id": endpoint}
    yield from [{**place, **handed_over}] * lane["handed_over"]


def plainly(state: dict[str, Any], queue: str) -> int:
    """The wanted slots of a queue, counted in Python."""
    ready: Counter[str] = Counter()
    running: Counter[str] = Counter()
    handed_over: Counter[str] = Counter()
    for lane in state["lanes"]:
        if lane["queue"] == queue:
            ready[lane["job_type"]] += lane["ready"] + lane["quarantined"]
            running[lane["job_type"]] += lane["running"] + lane["handed_over"]
            handed_over[lane["job_type"]] += lane["handed_over"]
    total = 0
    for name in {*ready, *running}:
        policy = state["types"][name]
        limit = policy["concurrency_override"]
        limit = policy["concurrency"] if limit is None else limit
        wanted = ready[name] + running[name]
        if limit not in (None, -1):
            wanted = min(wanted, limit)
        pauses = {policy["pause"], state["queues"][queue]}
        is_paused = bool(pauses & {"open", "later"})
        total += running[name] if is_paused else max(running[name], wanted)
        total -= handed_over[name]
    return total


@pytest.mark.dear
@pytest.mark.django_db
def test_the_function_the_store_and_a_plain_count_agree_on_random_states() -> None:
    worker = register(DjangoDatabase())
    declare_endpoints(DjangoDatabase(), ["shipping"])
    endpoint = Worker.objects.get(state="endpoint").pk

    @given(states)
    def agree(state: dict[str, Any]) -> None:
        set_up(state, worker, endpoint)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT jobqueue_wanted_slots('mail'), jobqueue_wanted_slots('other')"
            )
            by_function = dict(zip(QUEUES, cursor.fetchone(), strict=True))
        by_store = wanted_slots(DjangoDatabase())

        assert by_function == {queue: plainly(state, queue) for queue in QUEUES}
        assert Counter(by_store) == Counter(by_function)  # a queue may be left out
        assert by_store["declared"] == 0
        assert wanted_slots_of(DjangoDatabase(), "mail") == by_function["mail"]

    agree()


@pytest.mark.django_db
def test_a_queue_whose_only_job_runs_alone_is_read() -> None:
    make(job_type("shop.send"), queue="alone", run_after=ago(9), quarantined=True)
    assert wanted_slots(DjangoDatabase())["alone"] == 1


def test_of_each_lane_ten_thousand_jobs_are_counted(own: OwnConnection) -> None:
    job_type("shop.send")
    own.run(
        "INSERT INTO jobqueue_queuedjob (job_type, queue, priority, run_after) "
        "SELECT 'shop.send', 'mail', 1, clock_timestamp() - interval '1 hour' "
        "FROM generate_series(1, 10050)"
    )
    make("shop.send", queue="mail", run_after=ago(9))
    assert wanted_slots_of(own, "mail") == 10_001


@pytest.mark.django_db
def test_a_role_that_may_only_call_the_function_gets_the_number() -> None:
    make(job_type("shop.send"), queue="mail", run_after=ago(9))
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE jobqueue_scaler_of_tests")
        cursor.execute("SET LOCAL ROLE jobqueue_scaler_of_tests")
        # A table of the caller's is not the one that is read.
        cursor.execute("CREATE TEMP TABLE jobqueue_queuedjob (queue text)")
        cursor.execute("SELECT jobqueue_wanted_slots('mail')")
        assert cursor.fetchone() == (1,)
        cursor.execute("DROP TABLE pg_temp.jobqueue_queuedjob")
        denied = pytest.raises(ProgrammingError, match="permission denied")
        with denied, transaction.atomic():
            cursor.execute("SELECT count(*) FROM jobqueue_queuedjob")
        cursor.execute("RESET ROLE")
