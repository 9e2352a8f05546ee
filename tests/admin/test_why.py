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
from tests.admin.scene import ADD, FAIL
from tests.store.rows import KEYED, make

MINUTE = timedelta(minutes=1)


@pytest.fixture
def reasons(rf: Any, admin_user: Any) -> Any:
    """What the list says of a job."""

    def reasons(id: UUID) -> list[str]:
        request = rf.get("/")
        request.user = admin_user
        job = QueuedJob.objects.select_related("job_type").get(pk=id)
        (dressed,) = site._registry[QueuedJob].annotate(request, [job])
        found: list[str] = dressed.row_context.why
        return found

    return reasons


@pytest.fixture(autouse=True)
def worker(db: None) -> int:
    """One that lives, serves every queue and has room."""
    return rows.worker()


def test_nothing_is_in_the_way(reasons: Any) -> None:
    assert reasons(rows.queued()) == ["it is about to be claimed"]


def test_every_slot_is_taken(reasons: Any) -> None:
    Worker.objects.update(running=4)
    assert reasons(rows.queued()) == ["it waits for a free slot"]


def test_others_of_its_lane_come_first(reasons: Any) -> None:
    Worker.objects.update(running=4)
    before = timezone.now() - MINUTE
    rows.queued(run_after=before, priority=5)
    rows.queued(FAIL, run_after=before)
    rows.queued(run_after=before)
    mine = rows.queued()
    assert reasons(mine) == [
        "1 ahead of it in line",
        "it waits for a free slot",
    ]
    Worker.objects.update(running=0)
    assert reasons(mine) == ["1 ahead of it in line"]
    for _ in range(100):
        rows.queued(run_after=before)
    assert reasons(mine) == ["at least 100 ahead of it in line"]


def test_it_is_not_due(reasons: Any) -> None:
    later = rows.queued(run_after=timezone.now() + 5.5 * MINUTE)
    assert reasons(later) == ["it is not due for another 5 m"]


def test_its_type_or_queue_is_paused(reasons: Any) -> None:
    until = timezone.now() + MINUTE
    JobType.objects.filter(name=ADD).update(paused=True, paused_by="carl")
    Queue.objects.create(name="mail", paused=True, resume_at=until)
    said = reasons(rows.queued(queue="mail"))
    assert said[0] == "carl paused its job type"
    assert said[1].startswith("its queue is paused until 20")
    JobType.objects.update(paused=True, resume_at=timezone.now() - MINUTE)
    assert reasons(rows.queued()) == ["it is about to be claimed"]


def test_the_reason_of_a_pause_is_told(reasons: Any) -> None:
    JobType.objects.filter(name=ADD).update(
        paused=True, paused_by="carl", paused_reason="wrong sums " * 20
    )
    (said,) = reasons(rows.queued())
    assert said.startswith("carl paused its job type: wrong sums wrong sums")
    assert len(said) < 120


@pytest.mark.parametrize("model", ["jobtype", "queue"])
def test_a_reason_leads_to_what_it_is_about(
    anna: Client, log_in: LogIn, worker: int, model: str
) -> None:
    Worker.objects.update(queues=["other"], job_types=[FAIL])
    job, name = rows.queued(queue="mail"), {"jobtype": ADD, "queue": "mail"}[model]
    address, sees = page_of(model, name), ("view_queuedjob", f"view_{model}")
    seeing, blind = log_in(*sees), log_in("view_queuedjob", name="blind")
    for page in (list_of("queuedjob"), page_of("queuedjob", job)):
        assert address in get(anna, page).links
        assert address in get(seeing, page).links
        assert address not in get(blind, page).links


def test_its_type_is_at_its_limit(reasons: Any, worker: int) -> None:
    JobType.objects.filter(name=ADD).update(concurrency=5, concurrency_override=1)
    mine = rows.queued()
    assert reasons(mine) == ["it is about to be claimed"]
    rows.queued(status="running", worker_id=worker, started_at=timezone.now())
    assert reasons(mine) == ["its job type is at its limit: 1 of 1 run"]
    JobType.objects.update(concurrency_override=-1)
    assert reasons(mine) == ["it is about to be claimed"]


def test_its_type_is_at_its_rate(reasons: Any, worker: int) -> None:
    JobType.objects.filter(name=ADD).update(rate="20/1200s burst 2")
    mine = rows.queued()
    assert reasons(mine) == ["it is about to be claimed"]
    full_at = timezone.now() + timedelta(seconds=100)
    Bucket.objects.create(limit_key=ADD, full_at=full_at)  # one more may start
    (reason,) = reasons(mine)
    assert reason.startswith(
        "its job type is at its rate, 20/1200s burst 2: the next may start at "
    )
    JobType.objects.update(rate_override="unlimited")
    assert reasons(mine) == ["it is about to be claimed"]


@pytest.mark.parametrize("weight", [None, 2])
def test_its_weight_waits_for_the_rate(
    reasons: Any, worker: int, weight: int | None
) -> None:
    rule = {"by": "tokens", "default": 2, "of_type": True, "of_key": False}
    of_type = JobType.objects.filter(name=ADD)
    of_type.update(rate="20/1200s burst 2", weight_rule=rule)
    mine = rows.queued(weight=weight)
    assert reasons(mine) == ["it is about to be claimed"]
    full_at = timezone.now() + timedelta(seconds=50)
    Bucket.objects.create(limit_key=ADD, full_at=full_at)  # 1 may start
    (reason,) = reasons(mine)
    assert reason.startswith("its job type is at its rate, 20/1200s burst 2")
    of_type.update(weight_rule={**rule, "of_type": False})
    assert reasons(mine) == ["it is about to be claimed"]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"queues": ["other"]}, "no living worker serves its queue"),
        ({"job_types": [FAIL]}, "no running worker handles this type"),
        ({"state": WorkerState.LOST}, "no worker is alive"),
        ({"lease_until": timezone.now() - MINUTE}, "no worker is alive"),
        (
            {"state": WorkerState.DRAINING},
            "the workers that could run it take no new jobs",
        ),
    ],
)
def test_no_worker_can_run_it(reasons: Any, columns: dict[str, Any], why: str) -> None:
    Worker.objects.update(**columns)
    assert reasons(rows.queued()) == [why]


def test_one_serves_the_queue_and_another_knows_the_type(reasons: Any) -> None:
    Worker.objects.update(queues=["other"])
    rows.worker("web-2:1", job_types=[FAIL])
    why = "no living worker serves its queue and knows its type"
    assert reasons(rows.queued()) == [why]


def test_it_was_set_aside_to_run_alone(reasons: Any) -> None:
    why = "it waits for a process of its own, because its workers died"
    assert reasons(rows.queued(quarantined=True, crashes=1)) == [why]


def test_it_has_expired(reasons: Any) -> None:
    expired = rows.queued(expires_at=timezone.now() - MINUTE)
    assert reasons(expired) == ["it has expired and is about to be archived"]


def test_what_runs_needs_no_reason_unless_it_is_in_trouble(
    reasons: Any, worker: int
) -> None:
    running = {"status": "running", "started_at": timezone.now()}
    assert reasons(rows.queued(worker_id=worker, **running)) == []
    asked = rows.queued(worker_id=worker, cancel_requested_at=timezone.now(), **running)
    assert reasons(asked) == ["it was asked to stop and has not stopped yet"]
    gone = rows.queued(worker_id=0, **running)
    assert reasons(gone) == ["its worker is gone; it will be rescued"]


def test_it_is_told_in_the_list_and_on_the_page(anna: Client) -> None:
    JobType.objects.filter(name=ADD).update(paused=True, paused_by="<b>carl")
    mine = rows.queued()
    for address in (list_of("queuedjob"), page_of("queuedjob", mine)):
        assert "<b>carl paused its job type" in get(anna, address).text


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


def test_its_key_is_at_its_limit(reasons: Any, worker: int) -> None:
    Worker.objects.update(job_types=[KEYED])
    columns = {"status": "running", "worker_id": worker, "started_at": timezone.now()}
    for _ in range(2):
        make(KEYED, data={"key": 7}, **columns)
    other = make(KEYED, data={"key": 8})
    mine = make(KEYED, data={"key": 7})

    assert reasons(mine) == ["its key is at its limit: 2 of 2 run"]
    assert reasons(other) == ["it is about to be claimed"]
    behind = make(KEYED, data={"key": 8})
    assert reasons(behind) == ["1 of its key ahead of it"]
    KeyOverride.objects.create(limit_key=f"{KEYED} 7", concurrency=3)
    assert reasons(mine) == ["it is about to be claimed"]
    KeyOverride.objects.create(limit_key=f"{KEYED} 8", concurrency=0)
    assert reasons(other) == ["its key is held"]


def test_the_order_of_its_key_is_strict(reasons: Any, worker: int) -> None:
    Worker.objects.update(job_types=[KEYED])
    KeyLimit.objects.filter(pk=KEYED).update(concurrency=1, strict=True)
    later = timezone.now() + timedelta(hours=1)
    first = make(KEYED, data={"key": 7}, fence=1, run_after=later)
    mine, other = (make(KEYED, data={"key": key}) for key in (7, 8))
    (reason,) = reasons(mine)
    assert reason.startswith(
        f"the order of its key is strict: job {first} is first, due at "
    )
    assert reason.remedy == f"jobqueue run-now {first}"
    assert "its key" not in str(reasons(other))
    (of_first,) = reasons(first)
    assert of_first.startswith("it is not due for another")


def test_its_key_is_at_its_rate(reasons: Any, worker: int) -> None:
    Worker.objects.update(job_types=[KEYED])
    KeyLimit.objects.update(rate="20/1200s burst 2")
    other, mine = (make(KEYED, data={"key": key}) for key in (8, 7))
    full_at = timezone.now() + timedelta(seconds=100)
    Bucket.objects.create(limit_key=f"{KEYED} 7", full_at=full_at)

    (reason,) = reasons(mine)
    assert reason.startswith("its key is at its rate, 20/1200s burst 2: the next may")
    assert reasons(other) == ["it is about to be claimed"]
    KeyLimit.objects.update(rate_override="unlimited")
    assert reasons(mine) == ["it is about to be claimed"]
