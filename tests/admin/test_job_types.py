"""Job types: live figures, who knows the handler, failures, and what their pages
cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from django_jobqueue import RetryRule, job
from django_jobqueue.domain.histogram import BUCKETS, bucket_of
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import ArchivedJob, Failure, JobType, Rollup
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from tests.admin import scene as rows
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, MINUTE, ONCE, Scene, insert, queued, worker
from tests.admin.units import context, listing, shown

NOBODY = "no handler in any live worker"
UNCLAIMED = "No living worker has a handler for this job type."


def histogram(**seconds: int) -> list[int]:
    """So many runs of each length: ``histogram(s1=3)`` is three of a second."""
    counts = [0] * BUCKETS
    for name, count in seconds.items():
        counts[bucket_of(float(name[1:].replace("_", ".")))] += count
    return counts


def happened(ago: timedelta, job_type: str = ADD, **columns: Any) -> None:
    values = {
        "bucket": timezone.now() - ago,
        "job_type": job_type,
        "queue": "default",
        "run_histogram": histogram(s1=columns.get("succeeded", 0)),
        "wait_histogram": histogram(s0_01=1),
    }
    insert(Rollup, {**values, **columns})


def row_of(page: Page, name: str) -> str:
    _before, _name, after = page.text.partition(f"{name} ")
    return after


def test_the_list_tells_how_each_job_type_does(anna: Client, scene: Scene) -> None:
    happened(timedelta(minutes=5), succeeded=960, failed=40)
    happened(timedelta(hours=20), succeeded=1_000)
    happened(timedelta(hours=25), succeeded=7, failed=7)
    JobType.objects.filter(pk=ADD).update(concurrency_override=9)
    page = get(anna, list_of("jobtype"), q=ADD)
    said = row_of(page, ADD)
    assert said.startswith("active 1 override default 2 ")
    assert "4 / 9 2,000 2.0 % failed ≤ 1.0 s 1 worker" in said


def test_a_job_type_that_no_living_worker_knows(anna: Client, db: None) -> None:
    def known() -> str:
        (row,) = listing(anna, "jobtype", q=ONCE).result_list
        return str(row.row_context.handler)

    page = get(anna, list_of("jobtype"), q=ONCE)
    assert NOBODY in row_of(page, ONCE)[:90]
    assert UNCLAIMED in get(anna, page_of("jobtype", ONCE)).text
    yesterday = timezone.now() - timedelta(days=1)
    for columns in (
        {"state": "stopped"},
        {"state": "lost"},
        {"lease_until": yesterday},
    ):
        worker(f"web-2:{columns}", job_types=[ONCE], **columns)
        assert NOBODY in known(), columns
    worker("web-2:6", job_types=[ONCE], state="draining")
    assert "only draining workers" in known()
    worker("web-2:7", job_types=[ONCE], release="r8")
    page = get(anna, list_of("jobtype"), q=ONCE)
    assert "1 worker r8" in row_of(page, ONCE)[:90]
    page = get(anna, page_of("jobtype", ONCE))
    assert "Workers that handle it web-2:7" in page.text
    assert "Handled by 1 worker r8" in page.text


def test_the_page_has_figures_of_several_windows_and_a_histogram(
    anna: Client, db: None
) -> None:
    page = get(anna, page_of("jobtype", ADD))
    assert [bar for bar in page.all("rect") if bar["class"] == "jq-bar"] == []
    assert "last hour 0 0 (–) 0 – – – –" in page.text
    minutes, day = timedelta(minutes=5), timedelta(hours=20)
    happened(
        minutes, succeeded=90, failed=10, retried=3, run_histogram=histogram(s1=30)
    )
    happened(day, succeeded=100, run_histogram=histogram(s10=10))
    happened(timedelta(days=6), succeeded=1_000)
    happened(timedelta(days=8), succeeded=5_000)
    happened(minutes, FAIL, succeeded=5_000)
    page = get(anna, page_of("jobtype", ADD))
    for text in (
        "last hour 100 10 (10.0 %) 3 ≤ 10 ms ≤ 1.0 s ≤ 1.0 s ≤ 1.0 s",
        "last 24 h 200 10 (5.0 %) 3 ≤ 10 ms ≤ 1.0 s ≤ 10.0 s ≤ 10.0 s",
        "last 7 days 1,200 10 (0.8 %) 3 ≤ 10 ms ≤ 1.0 s ≤ 1.0 s",
    ):
        assert text in page.text
    # The histogram is readable without seeing it.
    (drawing,) = [
        one for one in page.all("svg", role="img") if "half" in str(one["aria-label"])
    ]
    assert "half took ≤ 1.0 s, 95 % took ≤ 10.0 s" in str(drawing["aria-label"])
    bars = [bar for bar in page.all("rect") if bar["class"] == "jq-bar"]
    assert [bar["height"] for bar in bars] == ["96", "0", "0", "0", "0", "32"]
    assert "≤ 1.0 s: 30" in page.text  # the title of a bar
    assert "Run time Attempts ≤ 1.0 s 30 ≤ 1.6 s 0" in page.text


def test_the_page_tells_what_waits_and_its_own_failures(
    anna: Client, scene: Scene
) -> None:
    for _ in range(3):
        queued(FAIL, run_after=timezone.now() - timedelta(minutes=7))
    page = get(anna, page_of("jobtype", FAIL))
    waits = "Ready 3 Oldest ready 7 m Later 1 Retrying 1 Running 0"
    assert waits in page.text
    assert page_of("failuregroup", scene.group) in page.links
    jobs = f"{list_of('archivedjob')}?job_type={FAIL}&fingerprint={scene.group}"
    assert jobs in page.links
    assert page_of("archivedjob", scene.archived["failed"]) in page.links
    assert page_of("archivedjob", scene.archived["once"]) not in page.links
    (failed,) = [link for link in page.links if "status=failed" in link]
    assert f"{list_of('queuedjob')}?job_type={FAIL}" in page.links
    query = {"job_type": FAIL, "status": "failed"}
    assert failed == f"{list_of('archivedjob')}?job_type={FAIL}&status=failed"
    assert shown(anna, "archivedjob", **query) == [str(scene.archived["failed"])]
    waiting = shown(anna, "queuedjob", job_type=FAIL, state="retrying")
    assert waiting == [str(scene.queued["retrying"])]
    ArchivedJob.objects.update(finished_at=timezone.now() - timedelta(days=8))
    failures = context(anna, "jobtype", FAIL)["page"].failures
    assert (list(failures.groups), list(failures.jobs)) == ([], [])


def test_who_may_see_only_job_types_is_shown_no_jobs(
    log_in: LogIn, scene: Scene
) -> None:
    page = get(log_in("view_jobtype"), page_of("jobtype", FAIL))
    assert "Failed in the last 7 days" not in page.text
    assert "no luck" not in page.text
    assert not [link for link in page.links if "job/" in link or "worker/" in link]
    assert page.all("input", name="priority_override") == []
    assert not [link for link in page.links if "clear" in link]
    # An override needs the right to change.
    client = log_in(*VIEWS, name="carl")
    for address in (page_of("jobtype", FAIL), "/admin/jobqueue/jobtype/clear/"):
        said = {"priority_override": "3", "keys": FAIL, "confirmed": "1"}
        assert client.post(address, said).status_code == 403
    assert JobType.objects.get(pk=FAIL).priority_override is None


def test_the_page_of_a_type_lists_its_followers(anna: Client) -> None:
    followers = {"on_success": [FAIL, {"job_type": "<b>gone", "delay": 5}]}
    followers["on_failure"] = [ONCE]
    JobType.objects.filter(name=ADD).update(followers=followers)
    page = get(anna, page_of("jobtype", ADD))
    assert f"On success {FAIL} <b>gone" in page.text
    assert f"On failure {ONCE}" in page.text
    assert "On completion" not in page.text
    assert page_of("jobtype", FAIL) in page.links


# Retry rules.


NAME = "tests.with_rules"


def by_error(attempt: int, exception: BaseException, job: Any) -> float:
    return 5


@pytest.fixture
def with_rules(db: None) -> Any:
    @job(
        name=NAME,
        max_attempts=9,
        backoff=by_error,
        retry={
            KeyError: False,
            OSError: True,
            ValueError: "quartic",
            TypeError: RetryRule(max_attempts=3, backoff=30),
        },
    )
    def handler() -> None: ...

    job_types.declare(DjangoDatabase(), [handler.declaration])
    yield handler
    registry.remove(NAME)


def test_the_page_of_a_job_type_tells_its_rules(anna: Client, with_rules: Any) -> None:
    row = JobType.objects.filter(pk=NAME)
    row.update(max_attempts_override=2, timeout_override=MINUTE)
    page = get(anna, page_of("jobtype", NAME))
    rules = (
        "KeyError: not retried OSError: retried ValueError: backoff quartic "
        "TypeError: max attempts 3, backoff fixed(wait=0:00:30)"
    )
    for text in ("Backoff by_error", "1 m", f"Retry rules {rules}"):
        assert text in page.text
    # Rules that plain SQL wrote break no page.
    for retry in (0, "", {}, [5], [{}], [{"exception": 5}]):
        row.update(retry=retry)
        context(anna, "jobtype", NAME)
    assert "Retry rules" in get(anna, page_of("jobtype", NAME)).text


def test_the_page_of_a_job_tells_what_it_has_for_itself(anna: Client, db: None) -> None:
    own = {"timeout": timedelta(seconds=90)}
    for backoff, text in (
        ({"policy": "fixed", "wait": 30}, "fixed(wait=30)"),
        ({"policy": "quartic"}, "quartic"),
        ({"policy": "<b>"}, "{'policy': '<b>'}"),
    ):
        id = rows.queued(FAIL, **own, backoff=backoff)
        page = get(anna, page_of("queuedjob", id))
        assert "Timeout 1 m 30 s" in page.text
        assert f"Backoff {text}" in page.text
        id = rows.archived(FAIL, "failed", **own, backoff=backoff)
        summary = {
            str(name): str(value)
            for name, value in context(anna, "archivedjob", id)["page"].summary
        }
        assert "1 m 30 s" in summary["Timeout"]
        assert summary["Backoff"] == text
    text = get(anna, page_of("queuedjob", rows.queued(FAIL))).text
    assert "Backoff" not in text
    assert "Timeout" not in text


def test_an_attempt_tells_which_rule_decided_and_one_that_runs_its_timeout(
    anna: Client, db: None
) -> None:
    now = timezone.now()
    id = rows.queued(FAIL, attempts=1, run_after=now + MINUTE)
    attempt = {"job_id": id, "job_type": FAIL, "number": 1, "end": "failed"}
    moments = {"started_at": now, "finished_at": now}
    error = {"error_class": "OSError", "error_message": "no answer"}
    why = {"reason": "the wait for <OSError>"}
    rows.insert(Failure, {**attempt, **moments, **error, **why})
    page = get(anna, page_of("queuedjob", id))
    assert "OSError : no answer the wait for <OSError>" in page.text
    worker = rows.worker(running=1)
    runs = {"status": "running", "worker_id": worker, "attempts": 1}
    begun = {"started_at": now - MINUTE, "timeout": timedelta(minutes=7)}
    rows.queued(FAIL, **runs, **begun)
    assert "7 m" in get(anna, page_of("worker", worker)).text
