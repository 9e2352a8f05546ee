"""Workers: what each runs and for how long, where it is, what became of its jobs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.admin.workers import worker_page
from django_jobqueue.models import JobType, QueuedJob, Worker
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, confirm, get, list_of, page_of, post
from tests.admin.scene import (
    ADD,
    FAIL,
    Scene,
    archived,
    endpoint,
    queued,
    worker,
)
from tests.admin.test_job_types import queries, row_of

pytestmark = pytest.mark.usefixtures("requests_commit")

MINUTE = timedelta(minutes=1)
STACK = '  File "/srv/shop/jobs.py", line 7, in charge\n    gateway.post(card)\n'


def running(id: int, count: int = 1, job_type: str = ADD, **columns: Any) -> list[Any]:
    """Running jobs of a worker, the first one for the longest time."""
    now = timezone.now()
    return [
        queued(
            job_type,
            worker_id=id,
            status="running",
            attempts=1,
            started_at=columns.get("started_at", now - (9 - number) * MINUTE),
        )
        for number in range(count)
    ]


def answered(
    id: int, *stacks: dict[str, Any], stack_request: int = 1, **more: Any
) -> None:
    """What a worker said when it was asked where it is."""
    said = {"stack_request": stack_request, "stacks": stacks, "left_out": 0, **more}
    at = {"at": timezone.now().isoformat()}
    Worker.objects.filter(pk=id).update(stack_dump={**at, **said})


def test_the_list_tells_what_each_worker_runs(anna: Client, scene: Scene) -> None:
    QueuedJob.objects.all().delete()
    later = timezone.now() + timedelta(days=2, minutes=30)
    busy = worker("web-2:7", release="r8", running=5, async_slots=6, lease_until=later)
    ids = running(busy, 5)
    idle = worker("web-2:8", lease_until=later)
    page = get(anna, list_of("worker"))
    said = row_of(page, "web-2:7")
    assert said.startswith("running lease in 2 d 0 h 5 / 10 ")
    clock = r"\d\d:\d\d:\d\d"
    assert re.search(
        rf"{ADD} \( 9 m ago {clock} \) {ADD} \( 8 m ago {clock} \) \+3 every queue r8",
        said,
    )
    assert [page_of("queuedjob", id) in page.links for id in ids] == [
        *[True] * 2,
        *[False] * 3,
    ]
    assert row_of(page, "web-2:8").startswith("running lease in 2 d 0 h 0 / 4 – ")
    assert page_of("worker", idle) in page.links


def test_remote_workers_are_shown_as_such(anna: Client) -> None:
    id = worker("node-1")
    owner = "TokenCaller:fleet"
    Worker.objects.filter(pk=id).update(remote=True, owner=owner, host="", pid=0)
    assert "node-1 remote" in get(anna, list_of("worker")).text
    assert "Remote worker of fleet" in get(anna, page_of("worker", id)).text


def test_endpoints_are_shown_with_what_was_handed_over_to_them(
    anna: Client, scene: Scene
) -> None:
    QueuedJob.objects.all().delete()
    id = endpoint("shipping", 204, failed=0, answered=0)
    running(id, 3)
    page = get(anna, list_of("worker"), state="endpoint")
    assert page.rows == [str(id)]
    above, _shipping, row = page.text.rpartition("shipping ")
    assert "Endpoints" in above
    assert row.startswith(f"endpoint 3 {ADD} (")
    page = get(anna, page_of("worker", id))
    assert "Handed over 3 Oldest" in page.text
    assert "9999" not in page.text


SECRETS = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "s3cret", "hooks")
ENDPOINT = {
    "url": f"https://shipping.internal:8443/{SECRETS[2]}",
    "secrets": [SECRETS[0]],
    "auth": ("jobs", SECRETS[1]),
}


def configure(settings: Any, *names: str) -> None:
    """These endpoints are in the settings."""
    endpoints = dict.fromkeys(names, ENDPOINT)
    settings.JOBQUEUE = {**settings.JOBQUEUE, "ENDPOINTS": endpoints}


def test_endpoints_stand_above_the_workers_with_their_answers(
    anna: Client, scene: Scene, settings: Any
) -> None:
    QueuedJob.objects.all().delete()
    configure(settings, "mail", "shipping")
    id = endpoint(
        "shipping", 204, failed=2, answered=1_340, problem="ConnectError: no route"
    )
    old = endpoint("old", 503, failed=3, answered=3)
    running(id, 3)
    page = get(anna, list_of("worker"))
    assert {str(id), str(old)}.isdisjoint(page.rows)
    clock = r"\d\d:\d\d:\d\d"
    assert re.search(
        "Last failure mail shipping.internal:8443 0 – – – – "
        rf"old not in ENDPOINTS here 0 – 503 took 250 ms 2 m ago {clock} "
        rf"3 of 3 failed 503, seen by web-1:7 2 m ago {clock} "
        rf"shipping shipping.internal:8443 3 9 m 204 took 250 ms 2 m ago {clock} "
        rf"2 of 1,340 failed connection refused, seen by web-1:7 3 m ago {clock} "
        "ConnectError: no route",
        page.text,
    ), page.text
    assert page_of("worker", id) in page.links
    detail = get(anna, page_of("worker", id))
    assert "Address shipping.internal:8443 Time limits" in detail.text
    assert "Last answer 204 took 250 ms" in detail.text
    assert "2 of 1,340 failed Last failure connection refused" in detail.text
    for shown in (page, detail):
        assert not [secret for secret in SECRETS if secret in shown.html]
        assert "shipping.internal" not in "".join(shown.links)


def test_without_endpoints_the_list_says_nothing_of_them(
    anna: Client, scene: Scene
) -> None:
    assert "Endpoints" not in get(anna, list_of("worker")).text


@pytest.mark.parametrize(
    "answers",
    [
        [],
        "text",
        {"last": 7, "last_failure": [], "minutes": []},
        {"last": {"class": "2xx", "at": "soon"}, "minutes": {"x": [1, 1]}},
        {"last": {"class": "new", "at": 1}, "minutes": {"99999999": ["1", 1]}},
        {"last": {"class": "2xx", "at": 1e300, "status": "<b>"}, "minutes": {"9": 9}},
    ],
)
def test_answers_that_nobody_can_read_harm_no_page(anna: Client, answers: Any) -> None:
    id = endpoint("shipping", 204, failed=0, answered=0)
    Worker.objects.filter(pk=id).update(answers=answers)
    for address in (list_of("worker"), page_of("worker", id)):
        assert "not in ENDPOINTS here" in get(anna, address).text


def test_what_is_known_of_a_failure_stays_text(anna: Client) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    id = endpoint("shipping", 204, failed=1, answered=2, problem=hostile)
    row = Worker.objects.get(pk=id)
    row.answers["last"]["worker"] = row.answers["last_failure"]["worker"] = hostile
    Worker.objects.filter(pk=id).update(
        name="<script>alert(1)</script>", answers=row.answers
    )
    for address in (list_of("worker"), page_of("worker", id)):
        html = get(anna, address).html
        assert "&lt;script&gt;alert(1)" in html
        assert "<script>alert(1)" not in html
        assert "\u202e" not in html


def test_only_who_may_see_workers_sees_endpoints(
    log_in: LogIn, scene: Scene, settings: Any
) -> None:
    configure(settings, "shipping")
    others = [right for right in VIEWS if right != "view_worker"]
    assert log_in(*others).get(list_of("worker")).status_code == 403
    page = get(log_in("view_worker", name="clara"), list_of("worker"))
    assert "shipping.internal:8443" in page.text


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"state": "running"}, ["running"]),
        ({"state": "draining"}, ["draining"]),
        ({"state": "lapsed"}, ["lapsed"]),
        ({"state": "lost"}, ["lost"]),
        ({"host": "web-1", "state": "stopped"}, ["stopped"]),
        ({"host": "web-2"}, ["other"]),
        ({"release": "r8"}, ["other"]),
        ({"release": "r8", "state": "lost"}, []),
        ({"host": "\x00"}, []),
    ],
)
def test_workers_are_found_by_state_host_and_release(
    anna: Client, scene: Scene, query: dict[str, str], shown: list[str]
) -> None:
    scene.workers["other"] = worker("web-2:7", host="web-2", release="r8")
    Worker.objects.filter(pk=scene.workers["other"]).update(
        state="stopped", stopped_at=timezone.now()
    )
    if query.get("state") == "stopped":
        assert "other" not in shown
    page = get(anna, list_of("worker"), **query)
    assert page.rows == [str(scene.workers[name]) for name in shown]


def test_a_worker_that_died_tells_what_became_of_its_jobs(
    anna: Client, scene: Scene
) -> None:
    lost = scene.workers["lost"]
    Worker.objects.filter(pk=lost).update(rescued={"queued": 3, "failed": 1})
    fate = "3 jobs queued again 1 job failed"
    assert fate in row_of(get(anna, list_of("worker")), "web-1:5")
    assert f"When it ended: {fate}" in get(anna, page_of("worker", lost)).text


def test_the_page_tells_for_how_long_each_job_runs(anna: Client, scene: Scene) -> None:
    JobType.objects.filter(pk=ADD).update(timeout_override=timedelta(minutes=30))
    JobType.objects.filter(pk=FAIL).update(timeout_override=timedelta(0))
    id = worker("web-2:7")
    running(id, 2)
    running(id, 1, FAIL, started_at=timezone.now() - 40 * MINUTE)
    page = get(anna, page_of("worker", id))
    assert "40 m, without a timeout" in page.text
    assert "9 m of 30 m" in page.text
    bars = page.all("progress")
    assert [bar["max"] for bar in bars] == ["1800000", "1800000"]
    assert 540_000 <= int(bars[0]["value"] or 0) < 560_000


def test_the_page_has_the_last_jobs_of_this_worker(
    anna: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    id = worker("web-2:7", started_at=now - 60 * MINUTE)
    mine = [
        archived(worker="web-2:7", finished_at=now - number * MINUTE, run_ms=1_500)
        for number in range(3)
    ]
    older = archived(worker="web-2:7", finished_at=now - 90 * MINUTE)
    for number in range(5):
        archived(worker="web-3:1", finished_at=now - (number + 1.5) * MINUTE)
    page = get(anna, page_of("worker", id))
    shown = [page_of("archivedjob", job) in page.links for job in (*mine, older)]
    assert shown == [True, True, True, False]
    assert "Among the" not in page.text
    assert re.search(r"succeeded 1 m ago \d\d:\d\d:\d\d 1\.5 s", page.text)

    monkeypatch.setattr(worker_page, "WINDOW", 2)
    page = get(anna, page_of("worker", id))
    assert "Among the 2 newest jobs of the archive" in page.text
    shown = [page_of("archivedjob", job) in page.links for job in mine]
    assert shown == [True, False, False]


def test_no_page_of_a_worker_reads_the_archive_without_a_limit(
    anna: Client, scene: Scene
) -> None:
    with connection.execute_wrapper(_limited):
        get(anna, page_of("worker", scene.workers["running"]))


def _limited(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    if "jobqueue_archivedjob" in sql:
        assert " LIMIT " in sql
    return execute(sql, params, many, context)


def test_a_request_is_followed_from_the_question_to_its_end(
    anna: Client, scene: Scene
) -> None:
    id = worker("web-2:7", running=1)
    address = page_of("worker", id)
    confirm(anna, "worker", "drain", id)
    text = get(anna, address).text
    assert "running asked to drain" in text
    assert "Heard not yet Done not yet: 1 job runs" in text

    said = Worker.objects.get(pk=id).request
    heard = {**said, "heard_at": timezone.now().isoformat()}
    Worker.objects.filter(pk=id).update(request=heard, state="draining")
    text = get(anna, address).text
    assert "asked to drain" not in text
    assert re.search(r"s ago\) Done not yet: 1 job runs", text)

    Worker.objects.filter(pk=id).update(running=0)
    assert "Done yes" in get(anna, address).text
    assert "anna Asked: Drain." in get(anna, address).text


def test_where_is_it_now(anna: Client, scene: Scene) -> None:
    id = worker("web-2:7")
    (job,) = running(id)
    address = page_of("worker", id)
    assert "Nobody has asked." in get(anna, address).text
    page = confirm(anna, "worker", "where", id)
    assert "1 worker was asked; its page shows the answer." in page.text
    assert "has not answered yet." in get(anna, address).text
    assert [entry.object_id for entry in LogEntry.objects.all()] == [str(id)]

    stack_request = Worker.objects.get(pk=id).request["stack_request"]
    told = {"job_id": str(job), "job_type": ADD, "seconds": 240.5, "stack": STACK}
    answered(
        id, told, {"thread": "completer", "stack": ""}, stack_request=stack_request
    )
    page = get(anna, address)
    assert "has not answered yet." not in page.text
    assert f"{ADD} ran for 4 m 00 s" in page.text
    assert "/srv/shop/jobs.py:7 in charge" in page.text
    assert "gateway.post(card)" in page.text
    assert "Thread completer" in page.text

    confirm(anna, "worker", "where", id)
    page = get(anna, address)
    assert "has not answered yet." in page.text
    assert "gateway.post(card)" in page.text


def test_the_page_of_a_running_job_tells_where_it_was(
    anna: Client, scene: Scene
) -> None:
    id = worker("web-2:7")
    job, other = running(id, 2)
    page = get(anna, page_of("queuedjob", job))
    buttons = page.all("button", formmethod="post", form="queuedjob_form")
    assert [f"/worker/{id}/stack/" in str(one["formaction"]) for one in buttons] == [
        True
    ]
    assert "Where it was" not in page.text
    told = {"job_id": str(job), "job_type": ADD, "seconds": 240.5, "stack": STACK}
    answered(id, told)
    text = get(anna, page_of("queuedjob", job)).text
    assert re.search(r"Where it was \d+ s ago:", text)
    assert "/srv/shop/jobs.py:7 in charge" in text
    assert "Where it was" not in get(anna, page_of("queuedjob", other)).text

    QueuedJob.objects.filter(pk=job).update(started_at=timezone.now() + MINUTE)
    assert "Where it was" not in get(anna, page_of("queuedjob", job)).text


def test_a_stack_that_was_requested_is_awaited_on_the_page_of_the_job(
    anna: Client, scene: Scene
) -> None:
    id = worker("web-2:7")
    (job,) = running(id)
    told = {"job_id": str(job), "job_type": ADD, "seconds": 1.5, "stack": STACK}

    def is_awaited() -> bool:
        page = get(anna, page_of("queuedjob", job))
        (region,) = page.all("div", **{"data-jq-region": "job"})
        is_said = "The stack was requested and will appear here." in page.text
        assert is_said == ("data-jq-soon" in region)  # refreshed every two seconds
        return is_said

    assert not is_awaited()
    post(anna, page_of("worker", id).replace("/change/", "/stack/"), {})
    assert is_awaited()
    request = Worker.objects.get(pk=id).request["stack_request"]
    answered(id, told, stack_request=request)
    assert not is_awaited()
    post(anna, page_of("worker", id).replace("/change/", "/stack/"), {})
    assert is_awaited()
    Worker.objects.filter(pk=id).update(state="lost")
    assert not is_awaited()


@pytest.mark.parametrize(
    "answer",
    [
        [],
        "x",
        {"stacks": "x", "at": "soon", "left_out": "many"},
        {"stacks": [1, {}, {"job_id": "x"}, {"seconds": "x", "stack": 7}]},
        {"at": "2026-99-01T00:00:00Z"},
    ],
)
def test_an_answer_that_is_none_harms_no_page(
    anna: Client, scene: Scene, answer: Any
) -> None:
    Worker.objects.update(stack_dump=answer, request=answer, rescued=answer)
    for id in (*scene.workers.values(),):
        get(anna, page_of("worker", id))
    get(anna, list_of("worker"))
    get(anna, page_of("queuedjob", scene.queued["running"]))


def test_what_an_answer_says_stays_text(anna: Client, scene: Scene) -> None:
    hostile = "<script>alert(1)</script>"
    id = scene.workers["running"]
    before = get(anna, page_of("worker", id))
    stack = f'  File "{hostile}", line 1, in {hostile}\n    {hostile}\n'
    said = {"job_id": hostile, "job_type": hostile, "seconds": 1, "stack": stack}
    answered(id, said, {"thread": hostile, "stack": hostile})
    page = get(anna, page_of("worker", id))
    assert len(page.all("script")) == len(before.all("script"))
    assert hostile in page.text


def test_only_who_controls_workers_may_ask_where_they_are(
    log_in: LogIn, scene: Scene
) -> None:
    id = scene.workers["running"]
    client = log_in(*VIEWS)
    assert not get(client, page_of("worker", id)).all("button", formmethod="post")
    stack = page_of("worker", id).replace("/change/", "/stack/")
    assert client.post(stack).status_code == 403
    said = {"keys": str(id), "confirmed": "1"}
    assert client.post("/admin/jobqueue/worker/where/", said).status_code == 403
    assert Worker.objects.get(pk=id).request is None

    client = log_in(*VIEWS, "control_worker", name="carl")
    assert client.get("/admin/jobqueue/worker/where/", said).status_code == 200
    assert Worker.objects.get(pk=id).request is None
    assert client.post("/admin/jobqueue/worker/where/", said).status_code == 302
    assert "stack_request" in Worker.objects.get(pk=id).request


def test_the_stack_of_one_worker_is_had_without_a_question(
    anna: Client, scene: Scene
) -> None:
    id = scene.workers["running"]
    job = page_of("queuedjob", scene.queued["running"])
    (button,) = get(anna, page_of("worker", id)).all("button", formmethod="post")
    stack = str(button["formaction"])
    assert anna.get(stack).status_code == 405
    assert Worker.objects.get(pk=id).request is None
    assert anna.post(stack).headers["Location"] == page_of("worker", id)
    assert "stack_request" in Worker.objects.get(pk=id).request
    answer = anna.post(f"{stack.partition('?')[0]}?{urlencode({'next': job})}")
    assert answer.headers["Location"] == job


def test_a_worker_that_ended_has_no_stack(anna: Client, scene: Scene) -> None:
    id = scene.workers["stopped"]
    page = get(anna, page_of("worker", id))
    assert page.all("button", formmethod="post") == []
    address = page_of("worker", id).replace("/change/", "/stack/")
    assert "1 worker had ended already." in post(anna, address, {}).text


def test_a_worker_that_ended_is_not_asked(anna: Client, scene: Scene) -> None:
    id = scene.workers["stopped"]
    assert operations.request_stack_dumps([id]) == []
    page = confirm(anna, "worker", "where", id)
    assert "1 worker had ended already." in page.text


def test_who_may_see_only_workers_is_shown_no_jobs(log_in: LogIn, scene: Scene) -> None:
    client = log_in("view_worker")
    pages: list[Page] = [get(client, list_of("worker"))]
    pages += [get(client, page_of("worker", id)) for id in scene.workers.values()]
    for page in pages:
        assert not [link for link in page.links if "job" in link.rpartition("/job")[0]]
        assert "Last finished jobs" not in page.text


def test_pages_cost_the_same_however_much_there_is(anna: Client, scene: Scene) -> None:
    id = scene.workers["running"]
    running(id)
    addresses = (list_of("worker"), page_of("worker", id))
    before = [queries(anna, address) for address in addresses]
    for number in range(20):
        other = worker(f"web-9:{number}", host=f"web-{number}", release=f"r{number}")
        running(other, 3)
        running(id, 2, FAIL)
        archived(worker="web-1:1")
    after = [queries(anna, address) for address in addresses]
    assert all(now <= then for now, then in zip(after, before, strict=True))
    assert max(before) <= 13


def test_endpoints_cost_one_query(anna: Client, scene: Scene, settings: Any) -> None:
    configure(settings, "mail")
    id = endpoint("shipping", 204, failed=1, answered=2)
    running(id)
    addresses = (list_of("worker"), page_of("worker", id))
    before = [queries(anna, address) for address in addresses]
    for number in range(20):
        other = endpoint(f"shipping-{number}", 503, failed=1, answered=2)
        running(other, 3)
        running(id, 3)
    assert [queries(anna, address) for address in addresses] == before
