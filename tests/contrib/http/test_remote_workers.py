"""Remote workers: programs that claim jobs over HTTP, and say what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.models import F
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import PerKey, Rate, enqueue, operations, remote_job
from django_jobqueue.contrib.http import access
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.remote import lane_scans, remote_claims
from django_jobqueue.contrib.remote.lane_scans import LaneScans
from django_jobqueue.domain.fingerprints import Fingerprint
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.models import (
    ArchivedJob,
    AuditEntry,
    Bucket,
    Failure,
    FailureGroup,
    JobType,
    QueuedJob,
    Report,
    Worker,
)
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import lanes, limits_in_force, rescue
from django_jobqueue.store.queue.finish_unsuccessful import GROUPS_PER_PLACE
from django_jobqueue.store.queue.lanes import Head
from django_jobqueue.store.rows import Lane
from tests.admin.scene import insert_all
from tests.contrib.http.conftest import Program, problem
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import counted

TYPE = "fleet.resize"
ONCE = "fleet.pay"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _types() -> None:
    JobType.objects.create(name=TYPE)
    JobType.objects.create(name=ONCE, delivery="at_most_once", max_attempts=1)


@pytest.fixture(autouse=True)
def _turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes were not served in other tests."""
    # private: of the process, as the scans.
    monkeypatch.setattr(remote_claims, "_turns", None)


class Remote:
    """A remote worker, as a program."""

    def __init__(self, program: Program, *types: str, **options: Any) -> None:
        self.program = program
        body = {"name": "node-1", "job_types": types or [TYPE], "slots": 10, **options}
        sent = program.send("POST", "/workers", body)
        assert sent.status_code == 201, sent.content
        self.registered = sent.json()
        self.id = self.registered["id"]

    def send(self, method: str, path: str = "", body: Any = None) -> Any:
        return self.program.send(method, f"/workers/{self.id}{path}", body)

    def claim(self, limit: int = 1) -> list[dict[str, Any]]:
        sent = self.send("POST", "/claim", {"limit": limit})
        assert sent.status_code == 200, sent.content
        found: list[dict[str, Any]] = sent.json()["jobs"]
        return found

    def end(self, job: dict[str, Any], status: str = "succeeded", **said: Any) -> Any:
        body = {"worker": self.id, "fence": job["fence"], "status": status, **said}
        return self.program.send("POST", f"/jobs/{job['name']}/{job['id']}", body)


@pytest.fixture
def node(billing: Program) -> Remote:
    """A remote worker of TYPE."""
    return Remote(billing)


def id_of(job: dict[str, Any]) -> UUID:
    return UUID(job["id"].removeprefix("job_"))


def archived(job: dict[str, Any]) -> ArchivedJob:
    return ArchivedJob.objects.get(pk=id_of(job))


def queued(job: dict[str, Any]) -> QueuedJob:
    return QueuedJob.objects.get(pk=id_of(job))


def test_a_remote_worker_does_a_job(node: Remote) -> None:
    enqueued = enqueue(TYPE, {"image": 7})
    (job,) = node.claim()
    assert job["id"] == f"job_{enqueued.id}"
    assert (job["data"], job["attempt"]) == ({"image": 7}, 1)
    sent = node.end(job, result={"size": [1, 2]})
    assert (sent.status_code, sent.json()["status"]) == (200, "succeeded")
    done = archived(job)
    assert (done.result, done.worker) == ({"size": [1, 2]}, "node-1")
    assert counted("succeeded", job_type=TYPE) == 1
    assert node.claim() == []


def test_jobs_are_claimed_most_urgent_first_and_within_the_slots(
    billing: Program,
) -> None:
    node = Remote(billing, slots=3)
    for number in range(4):
        enqueue(TYPE, {"number": number}, priority=number)
    assert [job["data"]["number"] for job in node.claim(limit=2)] == [3, 2]
    assert [job["data"]["number"] for job in node.claim(limit=9)] == [1]
    assert node.claim() == []


def test_queues_of_one_priority_take_turns_however_old_their_jobs_seem(
    node: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    # private: what another test has served is not there.
    monkeypatch.setattr(remote_claims, "_turns", None)
    long_ago = datetime(1970, 1, 1, tzinfo=UTC)
    for _ in range(6):
        enqueue(TYPE, queue="tenant-a", run_after=long_ago)
    for _ in range(3):
        enqueue(TYPE, queue="tenant-b")
    served = [job["queue"] for _ in range(6) for job in node.claim()]
    assert served == ["tenant-a", "tenant-b"] * 3


def test_only_types_without_a_handler_are_done_remotely(billing: Program) -> None:
    jobs.add.enqueue(a=1)
    body = {"name": "n", "job_types": ["tests.sample.add"]}
    problem(billing.send("POST", "/workers", body), 400, "not_remote")
    body = {"name": "n", "job_types": ["fleet.resise"]}
    document = problem(
        billing.send("POST", "/workers", body), 404, "job_type_not_found"
    )
    assert TYPE in document["detail"]


@pytest.fixture
def ship() -> Iterator[Handler[..., Any]]:
    """A job type of remote_job."""
    yield remote_job("fleet.ship", max_attempts=2, queue="ships")
    registry.remove("fleet.ship")


def test_a_remote_job_is_declared_in_python_and_done_elsewhere(
    ship: Handler[..., Any], billing: Program, worker: HandDriven
) -> None:
    node = Remote(billing, "fleet.ship")  # before its first enqueue
    ship.enqueue(order=7)
    worker.work()  # which has no handler for it
    (job,) = node.claim()
    assert (job["data"], job["queue"]) == ({"order": 7}, "ships")
    for status in ("queued", "failed"):
        assert node.end(job, "failed", retry_after=0).json()["status"] == status
        (job,) = node.claim() or [job]
    assert archived(job).attempts == 2


def test_a_failure_is_retried_by_the_rules_of_its_type(node: Remote) -> None:
    enqueue(TYPE)
    (job,) = node.claim()
    error = {"class": "net.Timeout", "message": "host 17 is away", "traceback": "at x"}
    before = timezone.now()
    assert node.end(job, "failed", error=error).json()["status"] == "queued"
    waiting = queued(job)
    assert (waiting.attempts, waiting.worker_id) == (1, None)
    assert waiting.run_after > before
    group = FailureGroup.objects.get()
    assert (group.error_class, group.template) == ("net.Timeout", "host <n> is away")
    assert counted("retried", job_type=TYPE) == 1


def test_what_a_worker_says_of_the_next_attempt_counts(node: Remote) -> None:
    enqueue(TYPE)
    (job,) = node.claim()
    node.end(job, "failed", retry_after=3_600)
    late = timezone.now() + timedelta(minutes=59)
    assert queued(job).run_after > late
    QueuedJob.objects.update(run_after=timezone.now())
    (job,) = node.claim()
    assert job["attempt"] == 2
    assert node.end(job, "failed", retryable=False).json()["status"] == "failed"
    assert FailureGroup.objects.count() == 1  # both are RemoteError


def test_a_job_is_cancelled_or_given_back(node: Remote) -> None:
    enqueue(TYPE)
    (job,) = node.claim()
    assert node.end(job, "released").json()["status"] == "queued"
    assert queued(job).attempts == 0
    (job,) = node.claim()
    error = {"message": "not wanted"}
    assert node.end(job, "cancelled", error=error).json()["status"] == "cancelled"
    assert archived(job).error_message == "not wanted"


def test_at_most_once_jobs_are_claimed_within_the_slots_and_never_again(
    billing: Program,
) -> None:
    node = Remote(billing, ONCE, slots=2)
    for _ in range(3):
        enqueue(ONCE)
    job, _ = node.claim(limit=9)
    assert node.claim(limit=9) == []
    for status in ("released", "failed"):
        sent = node.end(job, status, retry_after=1)
        if status == "released":
            assert sent.json()["status"] == "failed"
        else:
            problem(sent, 409, "stale_fence")


def test_limits_hold(node: Remote) -> None:
    JobType.objects.filter(pk=TYPE).update(concurrency=2)
    for _ in range(4):
        enqueue(TYPE)
    first = node.claim(limit=10)
    assert (len(first), node.claim()) == (2, [])
    node.end(first[0])
    assert len(node.claim(limit=10)) == 1


@pytest.fixture
def keyed() -> Iterator[Handler[..., Any]]:
    """A job type with a limit by key."""
    yield remote_job("fleet.sync", per_key=PerKey("tenant", concurrency=1))
    registry.remove("fleet.sync")


def test_rates_hold(node: Remote) -> None:
    JobType.objects.filter(pk=TYPE).update(rate="4/600s burst 2")
    for _ in range(4):
        enqueue(TYPE)
    assert (len(node.claim(limit=10)), node.claim(limit=10)) == (2, [])
    assert Bucket.objects.get().pk == TYPE


@pytest.mark.parametrize(("hold", "claimed"), [(True, 0), (False, 2)])
def test_a_worker_holds_back_all_that_share_its_rate(
    node: Remote, hold: bool, claimed: int
) -> None:
    JobType.objects.filter(pk=TYPE).update(rate="100000/600s burst 9")
    for _ in range(3):
        enqueue(TYPE)
    (job,) = node.claim()
    assert node.end(job, "failed", retry_after=60, hold=hold).status_code == 200
    assert len(node.claim(limit=5)) == claimed


def test_who_works_for_one_queue_holds_nothing_back_for_others(
    node: Remote, program: Callable[..., Program]
) -> None:
    JobType.objects.filter(pk=TYPE).update(rate="100000/600s burst 9")
    enqueue(TYPE, {}, queue="mail")
    mail = Remote(program("work", queues=["mail"]), queues=["mail"])
    (job,) = mail.claim()
    problem(mail.end(job, "failed", retry_after=60, hold=True), 403, "forbidden")
    assert mail.end(job, "failed", retry_after=60).status_code == 200
    enqueue(TYPE, {})
    (job,) = node.claim()
    year = node.end(job, "failed", retry_after=86_401, hold=True)
    problem(year, 400, "invalid_parameter")
    assert node.end(job, "failed", retry_after=86_400, hold=True).status_code == 200
    act = AuditEntry.objects.get(verb="hold")
    assert act.details["seconds"] == 86_400


def test_who_works_for_some_types_holds_nothing_back_for_those_that_share_a_limit(
    program: Callable[..., Program],
) -> None:
    shared = PerKey("tenant", concurrency=1, name="accounts")
    remote_job("fleet.shared", per_key=shared)
    held = {"worker": 1, "fence": 1, "status": "failed", "retry_after": 9, "hold": True}
    path = f"/jobs/fleet.shared/job_{uuid4()}"
    try:
        fleet = program("work", job_types=["fleet.*"])
        problem(fleet.send("POST", path, held), 403, "forbidden")
        problem(program("work").send("POST", path, held), 404, "worker_lost")
    finally:
        registry.remove("fleet.shared")


def test_a_worker_that_holds_no_job_holds_nothing_back(node: Remote) -> None:
    JobType.objects.filter(pk=TYPE).update(rate="100000/600s burst 9")
    for _ in range(3):
        enqueue(TYPE)
    (job,) = node.claim()
    node.end(job)
    problem(node.end(job, "failed", retry_after=60, hold=True), 409, "stale_fence")
    assert len(node.claim(limit=5)) == 2


def test_rates_that_count_weights_hold(billing: Program) -> None:
    by_size = Rate(100, per=600, burst=5, weight="size")
    of_keys = PerKey("account", rate=Rate(100, per=600, burst=2))
    for options in ({"rate": by_size}, {"rate": by_size, "per_key": of_keys}):
        handler = remote_job("fleet.weigh", **options)
        try:
            node = Remote(billing, "fleet.weigh")
            for size in (3, 2, 1):
                handler.enqueue(size=size, account="a")
            got = [job["data"]["size"] for job in node.claim(limit=10)]
            while more := node.claim(limit=10):
                got += [job["data"]["size"] for job in more]
            assert got == [3, 2]
        finally:
            registry.remove("fleet.weigh")
            QueuedJob.objects.all().delete()
            Bucket.objects.all().delete()


def test_rates_of_keys_hold(billing: Program) -> None:
    rate = Rate(4, per=600, burst=2)
    handler = remote_job("fleet.call", per_key=PerKey("account", rate=rate))
    try:
        node = Remote(billing, "fleet.call")
        for account in "aaabb":
            handler.enqueue(account=account)
        got = [job["data"]["account"] for job in node.claim(limit=10)]
        while more := node.claim(limit=10):
            got += [job["data"]["account"] for job in more]
        assert sorted(got) == ["a", "a", "b", "b"]
    finally:
        registry.remove("fleet.call")


def test_keys_take_turns_from_request_to_request(billing: Program) -> None:
    handler = remote_job("fleet.turns", per_key=PerKey("tenant"))
    try:
        node = Remote(billing, "fleet.turns")
        for tenant in "aaaaabc":
            handler.enqueue(tenant=tenant)
        got = [node.claim(limit=1)[0]["data"]["tenant"] for _ in range(4)]
        assert sorted(got[:3]) == ["a", "b", "c"]
        assert [job["data"]["tenant"] for job in node.claim(limit=9)] == ["a"] * 3
    finally:
        registry.remove("fleet.turns")


def test_limits_by_key_hold(keyed: Handler[..., Any], billing: Program) -> None:
    node = Remote(billing, "fleet.sync")
    for tenant in ("a", "a", "b"):
        keyed.enqueue(tenant=tenant)
    tenants = sorted(job["data"]["tenant"] for job in node.claim(limit=10))
    assert tenants == ["a", "b"]
    assert node.claim(limit=10) == []


def test_a_strict_order_holds(billing: Program) -> None:
    per_key = PerKey("order", concurrency=1, strict=True)
    handler = remote_job("fleet.strict", per_key=per_key)
    try:
        node = Remote(billing, "fleet.strict")
        for event in ("created", "paid", "sent"):
            handler.enqueue(order=1, event=event)
        (created,) = node.claim(limit=5)
        node.end(created, "failed", retry_after=60)
        assert node.claim(limit=5) == []
        operations.run_now(created["id"])
        (again,) = node.claim(limit=5)
        assert again["data"]["event"] == "created"
        node.end(again)
        (paid,) = node.claim(limit=5)
        assert paid["data"]["event"] == "paid"
    finally:
        registry.remove("fleet.strict")


def test_paused_types_are_not_claimed(node: Remote) -> None:
    enqueue(TYPE)
    operations.pause(TYPE)
    assert node.claim() == []
    operations.resume(TYPE)
    assert len(node.claim()) == 1


def quarantine(**data: Any) -> None:
    """A job that must run alone."""
    job = enqueue(TYPE, data)
    QueuedJob.objects.filter(pk=job.id).update(quarantined=True, crashes=2)


def test_a_job_that_must_run_alone_is_given_to_an_idle_worker_in_its_turn(
    node: Remote,
) -> None:
    enqueue(TYPE, {"good": 1})
    quarantine(bad=1)
    (good,) = node.claim()
    assert good["data"] == {"good": 1}
    enqueue(TYPE, {"good": 2})
    assert node.claim(limit=2) == []  # it is to end what it has
    node.end(good)
    (bad,) = node.claim(limit=2)
    assert bad["data"] == {"bad": 1}
    quarantine(bad=2)
    assert node.claim(limit=2) == []  # nothing runs beside it
    assert node.end(bad).json()["status"] == "succeeded"
    for expected in ({"good": 2}, {"bad": 2}):
        (job,) = node.claim(limit=2)
        assert job["data"] == expected
        node.end(job)


def test_for_a_job_that_must_run_alone_one_worker_of_many_leaves_its_slots_free(
    billing: Program,
) -> None:
    nodes = [Remote(billing, slots=4) for _ in range(3)]
    for count, node in zip((3, 2, 1), nodes, strict=True):
        for _ in range(count):
            enqueue(TYPE)
        held = node.claim(limit=3)
        node.send("PUT")
    quarantine(bad=1)
    for _ in range(6):
        enqueue(TYPE)
    assert [len(node.claim(limit=1)) for node in nodes] == [1, 1, 0]
    nodes[2].end(held[0])
    (bad,) = nodes[2].claim(limit=4)
    assert bad["data"] == {"bad": 1}


def test_queues_have_turns_by_their_weights(node: Remote) -> None:
    for _ in range(8):
        enqueue(TYPE, {}, queue="a")
        enqueue(TYPE, {}, queue="b", priority=9)
    with override_settings(JOBQUEUE={"QUEUE_WEIGHTS": {"a": 3}}):
        got = [node.claim()[0]["queue"] for _ in range(8)]
    assert Counter(got) == {"a": 6, "b": 2}


def test_a_renewal_says_what_is_asked_and_what_to_stop(node: Remote) -> None:
    enqueue(TYPE)
    enqueue(TYPE)
    wanted, unwanted = node.claim(limit=2)
    operations.cancel(id_of(unwanted))
    other = f"job_{uuid4()}"
    body = {
        "running": [wanted["id"], unwanted["id"], other],
        "progress": {wanted["id"]: {"done": 3, "total": 10, "note": "third"}},
    }
    said = node.send("PUT", "", body).json()
    assert sorted(said["cancel"]) == sorted([unwanted["id"], other])
    report = Report.objects.get()
    assert (report.done, report.total, report.note) == (3, 10, "third")
    assert node.end(unwanted, "failed").json()["status"] == "cancelled"
    worker_rows.ask(DjangoDatabase(), [node.id], "drain")
    assert node.send("PUT").json()["asked"] == "drain"
    enqueue(TYPE)
    sent = node.send("POST", "/claim", {"limit": 1, "wait": 20}).json()
    assert (sent["jobs"], sent["asked"]) == ([], "drain")
    assert Worker.objects.get(pk=node.id).state == "draining"


def test_jobs_of_a_lost_answer_go_to_others_after_a_lease(node: Remote) -> None:
    enqueue(TYPE)
    (job,) = node.claim()
    node.send("PUT", "", {"running": []})
    assert queued(job).status == "running"  # the answer may be on its way
    QueuedJob.objects.update(started_at=F("started_at") - timedelta(seconds=61))
    node.send("PUT", "", {"running": []})
    assert (queued(job).status, queued(job).attempts) == ("queued", 0)


def test_whoever_leaves_gives_its_jobs_back(billing: Program) -> None:
    node = Remote(billing, TYPE, ONCE)
    enqueue(TYPE)
    (job,) = node.claim()
    enqueue(ONCE)
    (once,) = node.claim()
    assert node.send("DELETE").json() == {"released": 2}
    assert (queued(job).status, queued(job).attempts) == ("queued", 0)
    assert archived(once).status == "failed"
    assert "outcome unknown" in archived(once).error_message
    for method, path in (("PUT", ""), ("POST", "/claim"), ("DELETE", "")):
        problem(node.send(method, path), 404, "worker_lost")


def test_a_lapsed_lease_is_rescued_like_any_other(node: Remote) -> None:
    enqueue(TYPE)
    (job,) = node.claim()
    lapse(node)
    db = DjangoDatabase()
    assert worker_rows.give_up(db) == [(node.id, "node-1", False)]
    rescue.rescue(db, [node.id], crashed=True, reason="its lease lapsed")
    assert (queued(job).status, queued(job).crashes) == ("queued", 1)
    problem(node.end(job), 404, "worker_lost")
    problem(node.send("POST", "/claim"), 404, "worker_lost")
    other = Remote(node.program)
    assert [one["id"] for one in other.claim()] == [job["id"]]


def lapse(node: Remote) -> None:
    """It has said nothing for long."""
    ago = timezone.now() - timedelta(hours=1)
    Worker.objects.filter(pk=node.id).update(lease_until=ago)


@pytest.mark.parametrize("field", ["name", "release", "queues", "job_types"])
@pytest.mark.parametrize("end", ["\n", "\r", "\x1b[2J", "\u2028"])
def test_what_a_worker_is_called_cannot_end_a_line_of_the_log(
    billing: Program, field: str, end: str
) -> None:
    text = f"{TYPE}{end}2026-11-28 00:00:00 CRITICAL forged"
    given = text if field in ("name", "release") else [text]
    body = {"name": "node", "job_types": [TYPE], field: given}
    problem(billing.send("POST", "/workers", body), 400, "invalid_parameter")


def test_registering_says_that_nobody_rescues(billing: Program) -> None:
    assert "runworkers" in Remote(billing).registered["notice"]
    Worker.objects.create(
        name="h:1", host="h", pid=1, lease_until=timezone.now() + timedelta(minutes=1)
    )
    assert Remote(billing).registered["notice"] is None


# A worker that lies harms nobody else.


def test_workers_of_others_are_not_there(
    node: Remote, program: Callable[..., Program]
) -> None:
    other = program("work")
    enqueue(TYPE)
    (job,) = node.claim()
    for method, path in (("PUT", ""), ("POST", "/claim"), ("DELETE", "")):
        sent = other.send(method, f"/workers/{node.id}{path}")
        problem(sent, 404, "worker_lost")
    body = {"worker": node.id, "fence": job["fence"], "status": "succeeded"}
    path = f"/jobs/{TYPE}/{job['id']}"
    problem(other.send("POST", path, body), 404, "worker_lost")
    liar = Remote(other)
    body["worker"] = liar.id
    problem(other.send("POST", path, body), 409, "stale_fence")
    liar.send("PUT", "", {"progress": {job["id"]: {"note": "mine"}}})
    assert not Report.objects.exists()
    assert queued(job).worker_id == node.id


def test_old_fences_and_double_finishes_change_nothing(node: Remote) -> None:
    enqueue(TYPE)
    (old,) = node.claim()
    node.end(old, "released")
    (job,) = node.claim()
    assert job["fence"] > old["fence"]
    problem(node.end(old, result="old"), 409, "stale_fence")
    node.end(job, result="new")
    problem(node.end(job, "failed"), 409, "stale_fence")
    assert (archived(job).status, archived(job).result) == ("succeeded", "new")
    assert counted("succeeded", job_type=TYPE) == 1


def test_huge_results_and_errors_are_refused_or_cut(node: Remote) -> None:
    for _ in range(2):
        enqueue(TYPE)
    job, large = node.claim(limit=2)
    with override_settings(JOBQUEUE={"MAX_RESULT_BYTES": 1_000}):
        node.end(large, result="x" * 5_000)
    assert "only 1,000 are kept" in archived(large).result["not_kept"]
    problem(node.end(job, result="\x00"), 400, "invalid_request")
    problem(node.end(job, result="x" * 2_000_000), 413, "entity_too_large")
    assert queued(job).status == "running"
    error = {"message": "m" * 500_000, "traceback": "t" * 500_000}
    assert node.end(job, "failed", error=error).status_code == 200
    assert len(Failure.objects.get().traceback) < 100_000


def test_secrets_of_the_data_are_masked_in_what_a_worker_says(node: Remote) -> None:
    JobType.objects.filter(pk=TYPE).update(sensitive=["card"])
    enqueue(TYPE, {"card": "4242-4242"})
    (job,) = node.claim()
    said = "card 4242-4242 is refused"
    node.send("PUT", "", {"progress": {job["id"]: {"done": 1, "note": said}}})
    (report,) = Report.objects.all()
    assert (report.done, report.note) == (1, "card •••• is refused")
    error = {"class": said, "message": said, "traceback": said}
    node.end(job, "failed", error=error, retryable=False)
    kept = [*ArchivedJob.objects.values("error_class", "error_message")]
    kept += Failure.objects.values("error_class", "error_message", "traceback")
    kept += FailureGroup.objects.values("error_class", "template")
    assert len(kept) == 3
    assert "4242" not in repr(kept)
    enqueue(TYPE, {"card": "4242-4242"})
    (job,) = node.claim()
    node.end(job, "cancelled", error={"message": said})
    assert archived(job).error_message == "card •••• is refused"


def test_what_remote_workers_say_makes_so_many_groups_of_failures_of_a_type(
    node: Remote,
) -> None:
    """However many classes their errors have."""
    marks = [
        Fingerprint.of_texts(f"Error of {number}", TYPE, "down")
        for number in range(GROUPS_PER_PLACE)
    ]
    FailureGroup.objects.bulk_create(
        FailureGroup(fingerprint=mark.value, coarse=mark.coarse, frame=TYPE)
        for mark in marks
    )
    for _ in range(3):
        enqueue(TYPE)
    for job in node.claim(3):
        error = {"class": f"Error of {job['id']}", "message": "down"}
        node.end(job, "failed", error=error, retryable=False)
    (other,) = FailureGroup.objects.filter(fingerprint=F("coarse"))
    assert (other.error_class, other.template) == ("…", "…")
    assert FailureGroup.objects.count() == GROUPS_PER_PLACE + 1


def test_an_attempt_past_its_timeout_is_ended(node: Remote) -> None:
    JobType.objects.filter(pk=TYPE).update(timeout=timedelta(seconds=1))
    enqueue(TYPE)
    (job,) = node.claim()
    assert job["timeout_seconds"] == 1
    QueuedJob.objects.update(started_at=F("started_at") - timedelta(seconds=60))
    said = node.send("PUT", "", {"running": [job["id"]]}).json()
    assert said["cancel"] == [job["id"]]
    assert (queued(job).status, queued(job).attempts) == ("queued", 1)
    problem(node.end(job), 409, "stale_fence")


def set_clock(days: float) -> None:
    """The database's clock is set forward: what it wrote is so much older for it."""
    ago = timedelta(days=days)
    Worker.objects.update(
        renewed_at=F("renewed_at") - ago, lease_until=F("lease_until") - ago
    )
    QueuedJob.objects.update(started_at=F("started_at") - ago)


def test_a_clock_that_is_set_ends_no_attempt_and_takes_no_job(node: Remote) -> None:
    """Nor does it when it is set back; the timeout counts on from there."""
    JobType.objects.filter(pk=TYPE).update(timeout=timedelta(seconds=100))
    enqueue(TYPE)
    (job,) = node.claim()
    enqueue(TYPE)
    node.claim()  # whose answer is on its way

    def renew() -> list[str]:
        listed: list[str] = node.send("PUT", "", {"running": [job["id"]]}).json()[
            "cancel"
        ]
        return listed

    for days in (100, 0, -100, 0, -1):
        set_clock(days)
        assert renew() == []
        assert QueuedJob.objects.filter(status="running").count() == 2
    for _ in range(2):
        assert queued(job).status == "running"
        QueuedJob.objects.update(started_at=F("started_at") - timedelta(seconds=60))
        said = renew()
    assert said == [job["id"]]


def test_an_attempt_ran_no_longer_than_its_worker_was_seen(node: Remote) -> None:
    enqueue(TYPE)
    (job,) = node.claim()
    set_clock(100)
    node.end(job)
    assert archived(job).run_ms < 60_000


def test_a_caller_has_so_many_workers(billing: Program) -> None:
    first = Remote(billing)
    owner = Worker.objects.get(pk=first.id).owner
    row = {"remote": True, "name": "n", "host": "h", "pid": 0, "owner": owner}
    insert_all(Worker, [row] * 999)
    body = {"name": "n", "job_types": [TYPE]}
    problem(billing.send("POST", "/workers", body), 429, "too_many_workers")


def test_a_claim_looks_at_no_lane_of_others(
    program: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many lanes there are, as others make more."""
    looked: list[list[str]] = []
    look = lanes.scan

    def scan(*args: Any) -> list[Head]:
        heads = look(*args)
        looked.append(sorted(head.lane.queue for head in heads))
        return heads

    monkeypatch.setattr(lanes, "scan", scan)
    for queue in ("a", "b", "b-2", "c"):
        enqueue(TYPE, queue=queue)
    for queues in (["b", "b-2"], ["b", "c"]):
        node = Remote(program("work", queues=["b*", "c"]), queues=queues)
        assert len(node.claim(4)) > 0
    assert looked == [["b", "b-2"], ["c"]]


def test_a_claim_reads_the_limits_of_the_types_with_due_jobs_alone(
    node: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many job types there are, as others make more."""
    read: list[list[str]] = []
    look = limits_in_force.overrides

    def overrides(*args: Any) -> dict[str, Any]:
        limits = look(*args)
        read.append(sorted(limits))
        return limits

    monkeypatch.setattr(limits_in_force, "overrides", overrides)
    assert node.claim() == []
    enqueue(TYPE)
    assert len(node.claim()) == 1
    assert read == [[], [TYPE]]


def test_types_and_queues_of_a_worker_are_asked_for_once_not_in_pairs(
    program: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []
    may = access.may

    def counting(*args: Any, **options: Any) -> bool:
        asked.append(None)
        return may(*args, **options)

    monkeypatch.setattr(access, "may", counting)
    names, queues = [f"fleet.{n}" for n in range(20)], [f"q{n}" for n in range(30)]
    insert_all(JobType, [{"name": name} for name in names])
    narrow = program("work", job_types=["fleet.*"], queues=["q*"])
    node = Remote(narrow, *names, queues=queues)
    assert node.claim() == []
    assert len(asked) < 3 * (len(names) + len(queues))
    for wrong in ({"job_types": ["fleet.1", "shop.x"]}, {"queues": ["q1", "other"]}):
        body = {"name": "n", "job_types": names, "queues": queues, **wrong}
        problem(narrow.send("POST", "/workers", body), 403, "forbidden")


def test_a_worker_of_named_queues_is_given_one_that_must_run_alone(
    program: Callable[..., Program],
) -> None:
    """If its token opens the queue of the job by now."""
    token = program("work", job_types=["fleet.*"], queues=["mail", "post"])
    node = Remote(token, queues=["mail", "post"])
    enqueue(TYPE, queue="mail")
    QueuedJob.objects.update(quarantined=True, crashes=2)
    opens = Token.objects.filter(name="program-0")
    opens.update(queues=["post"])
    assert node.claim() == []
    opens.update(queues=["m*"])
    assert len(node.claim()) == 1


def test_while_scans_take_long_claims_go_on_with_what_was_seen(
    billing: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = DjangoDatabase()
    scans, within = LaneScans(), (lanes.EVERYWHERE,)
    first, second = Lane("a", 0, TYPE), Lane("b", 0, TYPE)
    for lane in (first, second):
        enqueue(lane.job_type, queue=lane.queue)
    monkeypatch.setattr(lane_scans, "LONG_SCAN", -1.0)  # all are long
    assert [head.lane for head in scans.heads(db, within)] == [first, second]
    enqueue(TYPE, queue="c")
    scans.had_none(within, first)
    assert [head.lane for head in scans.heads(db, within)] == [second]
    queue_c = lanes.of_queues(["c"])  # whose scans are quick enough, or are not yet
    assert [head.lane.queue for head in scans.heads(db, queue_c)] == ["c"]


def test_a_claim_keeps_what_it_has_seen_though_others_are_remembered_meanwhile(
    billing: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More sets of queues than are remembered, in the threads of one process."""
    db, scans = DjangoDatabase(), LaneScans()
    look = lanes.scan
    enqueue(TYPE, queue="a")

    def scan(*args: Any) -> list[Head]:
        monkeypatch.setattr(lanes, "scan", lambda *args: [])
        for number in range(lane_scans.MOST):
            scans.heads(db, lanes.of_queues([f"q{number}"]))
        return look(*args)

    monkeypatch.setattr(lanes, "scan", scan)
    seen = scans.heads(db, lanes.of_queues(["a"]))
    assert [head.lane.queue for head in seen] == ["a"]
    scans.had_none(lanes.of_queues(["never seen"]), Lane("a", 0, TYPE))


def test_a_token_works_on_its_types_and_queues_alone(
    program: Callable[..., Program],
) -> None:
    narrow = program("work", job_types=["fleet.*"], queues=["mail"])
    every = {"name": "n", "job_types": [TYPE]}
    problem(narrow.send("POST", "/workers", every), 403, "forbidden")
    node = Remote(narrow, queues=["mail"])
    enqueue(TYPE)
    assert node.claim() == []
    enqueue(TYPE, queue="mail")
    assert len(node.claim()) == 1


def test_lists_show_remote_workers_as_such(billing: Program) -> None:
    Remote(billing)
    (row,) = billing.send("GET", "/workers").json()["workers"]
    assert (row["name"], row["is_remote"], row["is_alive"]) == ("node-1", True, True)


def test_two_modules_cannot_declare_one_remote_job(ship: Handler[..., Any]) -> None:
    elsewhere = {"__name__": "warehouse.jobs", "remote_job": remote_job}
    with pytest.raises(ImproperlyConfigured, match="by .* and by warehouse.jobs:flee"):
        eval("remote_job('fleet.ship')", elsewhere)
    assert remote_job("fleet.ship", queue="ships").name == ship.name  # loaded again
