"""Why a queued job is not running, in words, in the list and on its page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.admin import site
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue.domain.states import WorkerState
from django_jobqueue.models import (
    Bucket,
    JobType,
    KeyLimit,
    KeyOverride,
    Queue,
    QueuedJob,
    Worker,
)
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of
from tests.admin.scene import ADD, FAIL, MINUTE
from tests.store.rows import KEYED, make

SOON = ["it is about to be claimed"]
RATE = "20/1200s burst 2"


@pytest.fixture
def reasons(rf: Any, admin_user: Any) -> Any:
    """What the list says of a job."""

    def reasons(id: UUID) -> list[str]:
        request = rf.get("/")
        request.user = admin_user
        job = QueuedJob.objects.select_related("job_type").get(pk=id)
        (dressed,) = site.get_model_admin(QueuedJob).annotate(request, [job])
        found: list[str] = dressed.row_context.why
        return found

    return reasons


@pytest.fixture(autouse=True)
def worker(db: None) -> int:
    """One that lives, serves every queue and has room."""
    return rows.worker()


def full(key: str, seconds: int) -> None:
    """The bucket of this key is full in so many seconds; 60 are one job of the rate."""
    at = timezone.now() + timedelta(seconds=seconds)
    Bucket.objects.create(limit_key=key, full_at=at)


def test_others_of_its_lane_come_first_or_every_slot_is_taken(reasons: Any) -> None:
    assert reasons(rows.queued()) == SOON
    QueuedJob.objects.all().delete()
    Worker.objects.update(running=4)
    before = timezone.now() - MINUTE
    rows.queued(run_after=before, priority=5)
    rows.queued(FAIL, run_after=before)
    first = rows.queued(run_after=before)
    assert reasons(first) == ["it waits for a free slot"]
    mine = rows.queued()
    assert reasons(mine) == ["1 ahead of it in line", "it waits for a free slot"]
    Worker.objects.update(running=0)
    assert reasons(mine) == ["1 ahead of it in line"]
    before_it = [rows.queued_row(run_after=before) for _ in range(100)]
    rows.insert_all(QueuedJob, before_it)
    assert reasons(mine) == ["at least 100 ahead of it in line"]


def test_it_has_a_state_of_its_own(reasons: Any, worker: int) -> None:
    now = timezone.now()
    runs = {"status": "running", "started_at": now, "worker_id": worker}
    alone = "it waits for a process of its own, because its workers died"
    for columns, expected in (
        ({"run_after": now + 5.5 * MINUTE}, ["it is not due for another 5 m"]),
        ({"quarantined": True, "crashes": 1}, [alone]),
        ({"expires_at": now - MINUTE}, ["it has expired and is about to be archived"]),
        (runs, []),  # needs no reason unless it is in trouble
        (
            {**runs, "cancel_requested_at": now},
            ["it was asked to stop and has not stopped yet"],
        ),
        ({**runs, "worker_id": 0}, ["its worker is gone; it will be rescued"]),
    ):
        assert reasons(rows.queued(**columns)) == expected


def test_its_type_or_queue_is_paused(reasons: Any) -> None:
    now, of_type = timezone.now(), JobType.objects.filter(name=ADD)
    of_type.update(paused=True, paused_by="carl")
    Queue.objects.create(name="mail", paused=True, resume_at=now + MINUTE)
    said = reasons(rows.queued(queue="mail"))
    assert said[0] == "carl paused its job type"
    assert said[1].startswith("its queue is paused until 20")
    of_type.update(paused_reason="wrong sums " * 20)
    (said,) = reasons(rows.queued())
    assert said.startswith("carl paused its job type: wrong sums wrong sums")
    assert len(said) < 120
    QueuedJob.objects.all().delete()
    of_type.update(resume_at=now - MINUTE)
    assert reasons(rows.queued()) == SOON


def test_its_type_is_at_its_limit(reasons: Any, worker: int) -> None:
    JobType.objects.filter(name=ADD).update(concurrency=5, concurrency_override=1)
    mine = rows.queued()
    assert reasons(mine) == SOON
    rows.queued(status="running", worker_id=worker, started_at=timezone.now())
    assert reasons(mine) == ["its job type is at its limit: 1 of 1 run"]
    JobType.objects.update(concurrency_override=-1)
    assert reasons(mine) == SOON


def test_a_reason_leads_to_what_it_is_about(anna: Client, worker: int) -> None:
    of_type = JobType.objects.filter(name=ADD)
    of_type.update(concurrency=1)
    rows.queued(status="running", worker_id=worker, started_at=timezone.now())
    mine = page_of("queuedjob", rows.queued())
    holders = f"{list_of('queuedjob')}?state=running&job_type={ADD}"
    assert holders.replace("&", "&amp;") in get(anna, mine).html
    of_type.update(paused=True)
    Queue.objects.create(name="default", paused=True)
    links = get(anna, mine).links
    assert {page_of("jobtype", ADD), page_of("queue", "default")} <= set(links)


def test_its_type_is_at_its_rate(reasons: Any) -> None:
    of_type = JobType.objects.filter(name=ADD)
    of_type.update(rate=RATE)
    mine = rows.queued()
    assert reasons(mine) == SOON
    full(ADD, 100)  # one more may start
    (reason,) = reasons(mine)
    at_its_rate = f"its job type is at its rate, {RATE}: the next may start at "
    assert reason.startswith(at_its_rate)
    of_type.update(rate_override="unlimited")
    assert reasons(mine) == SOON
    # A job of more weight waits for more.
    rule = {"by": "tokens", "default": 2, "of_type": True, "of_key": False}
    of_type.update(rate_override=None)
    for weight in (None, 2):
        QueuedJob.objects.all().delete(), Bucket.objects.all().delete()
        of_type.update(weight_rule=rule)
        mine = rows.queued(weight=weight)
        assert reasons(mine) == SOON
        full(ADD, 50)  # 1 may start
        (reason,) = reasons(mine)
        assert reason.startswith(at_its_rate[:40])
        of_type.update(weight_rule={**rule, "of_type": False})
        assert reasons(mine) == SOON


def test_no_worker_can_run_it(reasons: Any) -> None:
    before, mine = Worker.objects.values().get(), rows.queued()
    columns: dict[str, Any]
    for columns, why in (
        ({"queues": ["other"]}, "no living worker serves its queue"),
        ({"job_types": [FAIL]}, "no running worker handles this type"),
        ({"state": WorkerState.LOST}, "no worker is alive"),
        ({"lease_until": timezone.now() - MINUTE}, "no worker is alive"),
        (
            {"state": WorkerState.DRAINING},
            "the workers that could run it take no new jobs",
        ),
    ):
        Worker.objects.update(**{**before, **columns})
        assert reasons(mine) == [why]
    # One serves the queue and another knows the type.
    Worker.objects.update(**{**before, "queues": ["other"]})
    rows.worker("web-2:1", job_types=[FAIL])
    why = "no living worker serves its queue and knows its type"
    assert reasons(mine) == [why]


def test_its_key_is_at_its_limit(reasons: Any, worker: int) -> None:
    Worker.objects.update(job_types=[KEYED])
    columns = {"status": "running", "worker_id": worker, "started_at": timezone.now()}
    for _ in range(2):
        make(KEYED, data={"key": 7}, **columns)
    other = make(KEYED, data={"key": 8})
    mine = make(KEYED, data={"key": 7})
    assert reasons(mine) == ["its key is at its limit: 2 of 2 run"]
    assert reasons(other) == SOON
    behind = make(KEYED, data={"key": 8})
    assert reasons(behind) == ["1 of its key ahead of it"]
    KeyOverride.objects.create(limit_key=f"{KEYED} 7", concurrency=3)
    assert reasons(mine) == SOON
    KeyOverride.objects.create(limit_key=f"{KEYED} 8", concurrency=0)
    assert reasons(other) == ["its key is held"]


def test_the_order_of_its_key_is_strict(reasons: Any) -> None:
    Worker.objects.update(job_types=[KEYED])
    KeyLimit.objects.filter(pk=KEYED).update(concurrency=1, strict=True)
    later = timezone.now() + timedelta(hours=1)
    first = make(KEYED, data={"key": 7}, fence=1, run_after=later)
    mine, other = (make(KEYED, data={"key": key}) for key in (7, 8))
    (reason,) = reasons(mine)
    strict = f"the order of its key is strict: job {first} is first, due at "
    assert reason.startswith(strict)
    assert reason.remedy == f"jobqueue run-now {first}"
    assert "its key" not in str(reasons(other))
    (of_first,) = reasons(first)
    assert of_first.startswith("it is not due for another")


def test_its_key_is_at_its_rate(reasons: Any) -> None:
    Worker.objects.update(job_types=[KEYED])
    KeyLimit.objects.update(rate=RATE)
    other, mine = (make(KEYED, data={"key": key}) for key in (8, 7))
    full(f"{KEYED} 7", 100)
    (reason,) = reasons(mine)
    assert reason.startswith(f"its key is at its rate, {RATE}: the next may")
    assert reasons(other) == SOON
    KeyLimit.objects.update(rate_override="unlimited")
    assert reasons(mine) == SOON


def test_it_is_told_in_the_list_and_on_the_page_and_leads_to_what_it_is_about(
    anna: Client, log_in: LogIn
) -> None:
    JobType.objects.filter(name=ADD).update(paused=True, paused_by="<b>carl")
    Worker.objects.update(queues=["other"], job_types=[FAIL])
    blind = log_in("view_queuedjob", name="blind")
    seeing = {
        page_of(model, name): log_in("view_queuedjob", f"view_{model}", name=model)
        for model, name in (("jobtype", ADD), ("queue", "mail"))
    }
    job = rows.queued(queue="mail")
    for page in (list_of("queuedjob"), page_of("queuedjob", job)):
        found = get(anna, page)
        assert "<b>carl paused its job type" in found.text
        assert seeing.keys() <= {*found.links}
        for address, client in seeing.items():
            assert seeing.keys() & {*get(client, page).links} == {address}
        assert not seeing.keys() & {*get(blind, page).links}


def test_the_number_of_queries_does_not_grow_with_the_jobs(anna: Client) -> None:
    JobType.objects.update(concurrency=1)
    get(anna, list_of("queuedjob"))  # what is read once is read now
    counts = []
    for number in (1, 20):
        for _ in range(number):
            rows.queued()
            rows.queued(FAIL, attempts=1)
        with CaptureQueriesContext(connection) as captured:
            get(anna, list_of("queuedjob"))
        counts.append(len(captured))
    assert counts[0] == counts[1]
