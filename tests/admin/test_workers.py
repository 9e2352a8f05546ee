"""Workers: what each runs and for how long, where it is, results of its jobs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from django_jobqueue import operations, remote_job
from django_jobqueue.admin.jobs.stack_dump import place_of
from django_jobqueue.admin.workers import worker_page
from django_jobqueue.contrib.http.auth import TokenCaller, UserCaller
from django_jobqueue.contrib.http.callers import Caller, identity_of
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import JobType, QueuedJob, Worker
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, MINUTE, archived, endpoint, queued, worker
from tests.admin.test_job_types import row_of
from tests.admin.units import act, buttons, context, press, question, shown

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("requests_commit")]

STACK = '  File "/srv/shop/jobs.py", line 7, in charge\n    gateway.post(card)\n'
CLOCK = r"\d\d:\d\d:\d\d"
MODEL = "worker"


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


def stopped(id: int, state: str = "stopped") -> None:
    Worker.objects.filter(pk=id).update(state=state, stopped_at=timezone.now())


def test_the_list_tells_what_each_worker_runs(anna: Client) -> None:
    later = timezone.now() + timedelta(days=2, minutes=30)
    busy = worker("web-2:7", release="r8", running=5, async_slots=6, lease_until=later)
    ids = running(busy, 5)
    idle = worker("web-2:8", lease_until=later)
    remote = worker("node-1", remote=True, owner="house:fleet", host="", pid=0)
    lost = worker("web-1:5", rescued={"queued": 3, "failed": 1})
    stopped(lost, "lost")
    page = get(anna, list_of(MODEL))
    said = row_of(page, "web-2:7")
    assert said.startswith("running lease in 2 d 0 h 5 / 10 ")
    assert re.search(
        rf"{ADD} \( 9 m ago {CLOCK} \) {ADD} \( 8 m ago {CLOCK} \) \+3 every queue r8",
        said,
    )
    there = [page_of("queuedjob", id) in page.links for id in ids]
    assert there == [True, True, False, False, False]
    assert row_of(page, "web-2:8").startswith("running lease in 2 d 0 h 0 / 4 – ")
    assert page_of(MODEL, idle) in page.links
    assert "node-1 remote" in page.text
    assert "Remote worker of fleet" in get(anna, page_of(MODEL, remote)).text
    assert "Endpoints" not in page.text
    # A worker that died tells results of its jobs.
    fate = "3 jobs queued again 1 job failed"
    assert fate in row_of(page, "web-1:5")
    assert f"When it ended: {fate}" in get(anna, page_of(MODEL, lost)).text


def test_a_remote_worker_is_of_a_token_or_a_user(anna: Client) -> None:
    """By name; the row has what a later token of this name has not."""
    user = User.objects.create_user("bert")
    made = create_token("fleet", "work").row
    callers: list[Caller] = [
        UserCaller(user),
        TokenCaller(made.name, str(made.id), (), (), frozenset()),
    ]
    rows = [
        worker("node", remote=True, owner=identity_of(caller), host="", pid=0)
        for caller in callers
    ]
    names = ["bert", "fleet"]
    for row, name in zip(rows, names, strict=True):
        assert f"Remote worker of {name} " in get(anna, page_of(MODEL, row)).text
    user.delete()
    Token.objects.all().delete()
    for row in rows:
        assert "Remote worker of" in get(anna, page_of(MODEL, row)).text


SECRETS = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "s3cret", "hooks")
ENDPOINT = {
    "url": f"https://shipping.internal:8443/{SECRETS[2]}",
    "secrets": [SECRETS[0]],
    "auth": ("jobs", SECRETS[1]),
}


def configure(settings: Any, *names: str) -> None:
    endpoints = dict.fromkeys(names, ENDPOINT)
    settings.JOBQUEUE = {**settings.JOBQUEUE, "ENDPOINTS": endpoints}


def test_endpoints_stand_above_the_workers_with_their_answers(
    anna: Client, settings: Any
) -> None:
    configure(settings, "mail", "shipping")
    refused = {"failed": 2, "answered": 1_340, "problem": "ConnectError: no route"}
    id = endpoint("shipping", 204, **refused)
    old = endpoint("old", 503, failed=3, answered=3)
    running(id, 3)
    some = worker("web-2:8")
    assert shown(anna, MODEL) == [str(some)]
    page = get(anna, list_of(MODEL), state="endpoint")
    assert {*page.rows} == {str(id), str(old)}
    assert row_of(page, "shipping").startswith("shipping.internal:8443 3 9 m")
    assert f"endpoint 3 {ADD} (" in page.text
    assert re.search(
        "Last failure mail shipping.internal:8443 0 – – – – "
        rf"old not in ENDPOINTS here 0 – 503 took 250 ms 2 m ago {CLOCK} "
        rf"3 of 3 failed 503, seen by web-1:7 2 m ago {CLOCK} "
        rf"shipping shipping.internal:8443 3 9 m 204 took 250 ms 2 m ago {CLOCK} "
        rf"2 of 1,340 failed connection refused, seen by web-1:7 3 m ago {CLOCK} "
        "ConnectError: no route",
        page.text,
    ), page.text
    assert page_of(MODEL, id) in page.links
    detail = get(anna, page_of(MODEL, id))
    for text in (
        "Address shipping.internal:8443 Time limits",
        "Last answer 204 took 250 ms",
        "2 of 1,340 failed Last failure connection refused",
        "Handed over 3 Oldest",
    ):
        assert text in detail.text
    for one in (page, detail):
        assert "9999" not in one.text
        assert not [secret for secret in SECRETS if secret in one.html]
        assert "shipping.internal" not in "".join(one.links)


def test_answers_that_nobody_can_read_harm_no_page(anna: Client) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    seen = {"class": "2xx", "at": 1, "worker": hostile, "problem": hostile}
    texts = (
        [],
        "text",
        {"last": 7, "last_failure": [], "minutes": []},
        {"last": {"class": "2xx", "at": "soon"}, "minutes": {"x": [1, 1]}},
        {"last": {"class": "new", "at": 1}, "minutes": {"99999999": ["1", 1]}},
        {"last": {"class": "2xx", "at": 1e300, "status": "<b>"}, "minutes": {"9": 9}},
        {"last": seen, "last_failure": seen},
    )
    for number, text in enumerate(texts):
        id = endpoint(f"{number} {hostile[:25]}", 204, failed=1, answered=2)
        Worker.objects.filter(pk=id).update(answers=text)
        assert "not in ENDPOINTS here" in str(context(anna, MODEL, id)["summary"]), text
    for address in (list_of(MODEL), page_of(MODEL, id)):
        html = get(anna, address).html
        assert "not in ENDPOINTS here" in html
        assert "&lt;script&gt;alert(1)" in html
        assert "<script>alert(1)" not in html
        assert "\u202e" not in html


def test_workers_are_found_by_state_host_and_release(anna: Client) -> None:
    past = timezone.now() - MINUTE
    ids = {
        "running": worker("web-1:1"),
        "draining": worker("web-1:2", state="draining"),
        "lapsed": worker("web-1:3", lease_until=past),
        "stopped": worker("web-1:4", state="stopped", stopped_at=past),
        "lost": worker("web-1:5", state="lost", stopped_at=past),
        "other": worker("web-2:7", host="web-2", release="r8", state="stopped"),
    }
    for query, names in (
        *(({"state": name}, [name]) for name in ("running", "draining", "lapsed")),
        ({"state": "lost"}, ["lost"]),
        ({"host": "web-1", "state": "stopped"}, ["stopped"]),
        ({"host": "web-2"}, ["other"]),
        ({"release": "r8"}, ["other"]),
        ({"release": "r8", "state": "lost"}, []),
        ({"host": "\x00"}, []),
    ):
        assert shown(anna, MODEL, **query) == [str(ids[name]) for name in names], query


def test_the_page_has_the_running_and_the_last_jobs_of_this_worker(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    JobType.objects.filter(pk=ADD).update(timeout_override=timedelta(minutes=30))
    JobType.objects.filter(pk=FAIL).update(timeout_override=timedelta(0))
    id = worker("web-2:7", started_at=now - 60 * MINUTE)
    running(id, 2)
    running(id, 1, FAIL, started_at=now - 40 * MINUTE)
    mine = [
        archived(worker="web-2:7", finished_at=now - number * MINUTE, run_ms=1_500)
        for number in range(3)
    ]
    mine += [archived(worker="web-2:7", finished_at=now - 90 * MINUTE)]
    for number in range(5):
        archived(worker="web-3:1", finished_at=now - (number + 1.5) * MINUTE)
    with connection.execute_wrapper(_limited):
        page = get(anna, page_of(MODEL, id))
    assert "40 m, without a timeout" in page.text
    assert "9 m of 30 m" in page.text
    bars = page.all("progress")
    assert [bar["max"] for bar in bars] == ["1800000", "1800000"]
    assert 540_000 <= int(bars[0]["value"] or 0) < 560_000
    there = [page_of("archivedjob", job) in page.links for job in mine]
    assert there == [True, True, True, False]
    assert "Among the" not in page.text
    assert re.search(rf"succeeded 1 m ago {CLOCK} 1\.5 s", page.text)

    monkeypatch.setattr(worker_page, "WINDOW", 2)
    page = get(anna, page_of(MODEL, id))
    assert "Among the 2 newest jobs of the archive" in page.text
    there = [page_of("archivedjob", job) in page.links for job in mine]
    assert there == [True, True, False, False]


def _limited(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    if "jobqueue_archivedjob" in sql:
        assert " LIMIT " in sql
    return execute(sql, params, many, context)


def test_a_request_is_followed_from_the_question_to_its_end(anna: Client) -> None:
    id = worker("web-2:7", running=1)
    row = Worker.objects.filter(pk=id)

    def steps() -> dict[str, str]:
        found = context(anna, MODEL, id)["page"].process.steps
        return {str(name): str(value) for name, value in found}

    act(anna, MODEL, "drain", id)
    text = get(anna, page_of(MODEL, id)).text
    assert "running asked to drain" in text
    assert "Heard not yet Done not yet: 1 job runs" in text
    assert "anna Asked: Drain." in text
    heard = {**row.get().request, "heard_at": timezone.now().isoformat()}
    row.update(request=heard, state="draining")
    assert "asked to drain" not in str(context(anna, MODEL, id)["state"])
    assert "ago" in steps()["Heard"]
    assert steps()["Done"] == "not yet: 1 job runs"
    row.update(running=0)
    assert steps()["Done"] == "yes"


# Where it is now.


def test_a_stack_is_requested_awaited_and_shown(anna: Client) -> None:
    id = worker("web-2:7")
    (job,) = running(id)
    address = page_of(MODEL, id)
    assert "Not requested." in get(anna, address).text
    told = act(anna, MODEL, "where", id)
    assert told == "Request sent to 1 worker; its page shows the stacks."
    assert [entry.object_id for entry in LogEntry.objects.all()] == [str(id)]
    assert "no answer yet." in get(anna, address).text

    number = Worker.objects.get(pk=id).request["stack_request"]
    said = {"job_id": str(job), "job_type": ADD, "seconds": 240.5, "stack": STACK}
    hostile = "<script>alert(1)</script>"
    stack = f'  File "{hostile}", line 1, in {hostile}\n    {hostile}\n'
    odd = {"job_id": hostile, "job_type": hostile, "seconds": 1, "stack": stack}
    threads = {"thread": "completer", "stack": ""}, {"thread": hostile, "stack": ""}
    answered(id, said, odd, *threads, stack_request=number)
    page = get(anna, address)
    assert "no answer yet." not in page.text
    for text in (
        f"{ADD} ran for 4 m 00 s",
        "/srv/shop/jobs.py:7 in charge",
        "gateway.post(card)",
        "Thread completer",
        hostile,
    ):
        assert text in page.text
    assert "<script>alert" not in page.html
    act(anna, MODEL, "where", id)
    text = get(anna, address).text
    assert "no answer yet." in text
    assert "gateway.post(card)" in text


def test_the_page_of_a_running_job_tells_where_it_was(anna: Client) -> None:
    id = worker("web-2:7")
    job, other = running(id, 2)
    stack = page_of(MODEL, id).replace("/change/", "/stack/")

    def place() -> tuple[bool, bool]:
        found = place_of(QueuedJob.objects.get(pk=job))
        return found.traceback is not None, found.is_awaited

    page = get(anna, page_of("queuedjob", job))
    posts = page.all("button", formmethod="post", form="queuedjob_form")
    assert [stack in str(one["formaction"]) for one in posts] == [True]
    assert "Where it was" not in page.text
    (region,) = page.all("div", **{"data-jq-region": "job"})
    assert "data-jq-soon" not in region

    press(anna, stack)
    page = get(anna, page_of("queuedjob", job))
    assert "The stack was requested and will appear here." in page.text
    (region,) = page.all("div", **{"data-jq-region": "job"})
    assert "data-jq-soon" in region  # refreshed every two seconds
    number = Worker.objects.get(pk=id).request["stack_request"]
    told = {"job_id": str(job), "job_type": ADD, "seconds": 240.5, "stack": STACK}
    answered(id, told, stack_request=number)
    text = get(anna, page_of("queuedjob", job)).text
    assert re.search(r"Where it was \d+ s ago:", text)
    assert "/srv/shop/jobs.py:7 in charge" in text
    assert place_of(QueuedJob.objects.get(pk=other)).traceback is None
    assert place() == (True, False)
    press(anna, stack)
    assert place() == (True, True)
    Worker.objects.filter(pk=id).update(state="lost")
    assert place() == (True, False)
    QueuedJob.objects.filter(pk=job).update(started_at=timezone.now() + MINUTE)
    assert place() == (False, False)


def test_an_answer_that_is_none_harms_no_page(anna: Client) -> None:
    texts = (
        [],
        "x",
        {"stacks": "x", "at": "soon", "left_out": "many"},
        {"stacks": [1, {}, {"job_id": "x"}, {"seconds": "x", "stack": 7}]},
        {"at": "2026-99-01T00:00:00Z"},
    )
    for number, text in enumerate(texts):
        odd = {"stack_dump": text, "request": text, "rescued": text}
        id = worker(f"web-1:{number}", **odd)
        context(anna, MODEL, id)
        (job,) = running(id)
        assert place_of(QueuedJob.objects.get(pk=job)).traceback is None
        stopped(id, "lost")
        get(anna, page_of(MODEL, id))
    get(anna, list_of(MODEL))


def test_the_stack_of_one_worker_is_had_without_a_question(
    anna: Client, viewer: Client
) -> None:
    id, over = worker("web-2:7"), worker("web-2:8")
    stopped(over)
    (job,) = running(id)
    (button,) = get(anna, page_of(MODEL, id)).all("button", formmethod="post")
    stack = str(button["formaction"])
    assert anna.get(stack).status_code == 405
    assert Worker.objects.get(pk=id).request is None
    assert anna.post(stack).headers["Location"] == page_of(MODEL, id)
    assert "stack_request" in Worker.objects.get(pk=id).request
    there = page_of("queuedjob", job)
    then = anna.post(f"{stack.partition('?')[0]}?{urlencode({'next': there})}")
    assert then.headers["Location"] == there
    assert "stack" not in buttons(viewer, MODEL, id)
    # A worker that ended has none, and is not asked.
    assert "stack" not in buttons(anna, MODEL, over)
    ended = "1 worker had already ended."
    assert press(anna, page_of(MODEL, over).replace("/change/", "/stack/")) == ended
    assert operations.request_stack_dumps([over]) == []
    assert act(anna, MODEL, "where", over) == ended


def test_who_may_see_only_workers_is_shown_no_jobs(log_in: LogIn) -> None:
    client = log_in("view_worker")
    id = worker("web-2:7")
    running(id)
    archived(worker="web-2:7")
    for page in (get(client, list_of(MODEL)), get(client, page_of(MODEL, id))):
        assert not [link for link in page.links if "job" in link.rpartition("/job")[0]]
        assert "Last finished jobs" not in page.text


# Endpoints and moves, which are rows beside those of workers.


NO_ANSWERS = {"failed": 0, "answered": 0}
NOT_OF_ENDPOINTS = (  # sections and lines of the page of a process
    *("Where it is", "Operators' requests", "Handlers", "Supervisor", "Release"),
    *("Threads", "Async slots", "Memory", "Lease until", "Exit", "Versions", "Process"),
)
NOT_OF_MOVES = (
    *("Where it is", "Operators' requests", "Handlers", "Supervisor", "Release"),
    *("Threads", "Async slots", "Memory", "Exit", "Versions", "Last finished jobs"),
)


def buttons_of(page: Page, id: int) -> list[str]:
    """The addresses of what can be done with this worker, on its page."""
    targets = [*page.links, *(one.get("formaction") for one in page.all("button"))]
    pattern = re.compile(rf"/worker/({id}/stack|\w+)/(\?keys={id}\b|$)")
    return [one for one in map(str, targets) if pattern.search(one)]


def move(**columns: Any) -> int:
    values = {"threads": 0, "job_types": [], "versions": {}, "rss": 0, **columns}
    return worker("move to archive", state="moving", **values)


def test_the_page_of_an_endpoint_has_what_concerns_one(
    anna: Client, settings: Any
) -> None:
    configure(settings, "shipping")
    id = endpoint("shipping", 204, failed=0, answered=5)
    jobs = running(id, 2)
    done = archived(worker="shipping", finished_at=timezone.now())
    page = get(anna, page_of("worker", id))
    for text in (
        "View endpoint",
        "Time limits 2 s to connect, 6.5 s to answer",
        "Concurrency 50 of each job type Handed over 2 Oldest",
        "0 of 5 failed",
        "The code of this site sends it no jobs.",
    ):
        assert text in page.text
    assert [page_of("queuedjob", job) in page.links for job in jobs] == [True] * 2
    assert page_of("archivedjob", done) in page.links
    assert [words for words in NOT_OF_ENDPOINTS if words in page.text] == []
    assert buttons_of(page, id) == []
    of_worker = worker("web-9:1")
    page = get(anna, page_of("worker", of_worker))
    assert len(buttons_of(page, of_worker)) > 3
    # A job that it was handed has no stack to show.
    assert "/stack/" not in get(anna, page_of("queuedjob", jobs[0])).html


def test_an_unlimited_endpoint_and_the_job_types_that_it_is_sent(
    anna: Client, settings: Any
) -> None:
    unlimited = {**ENDPOINT, "concurrency": None, "read_timeout": 90}
    endpoints = {"shipping": unlimited}
    settings.JOBQUEUE = {**settings.JOBQUEUE, "ENDPOINTS": endpoints}
    name = "shop.label"
    remote_job(name, endpoint="shipping")
    try:
        JobType.objects.create(name=name)
        page = get(anna, page_of("worker", endpoint("shipping", 204, **NO_ANSWERS)))
        other = context(anna, "worker", endpoint("mail", 204, **NO_ANSWERS))["page"]
    finally:
        registry.remove(name)
    assert "2 s to connect, 1 m 30 s to answer Concurrency unlimited" in page.text
    assert "sends it jobs of 1 job type. shop.label" in page.text
    assert page_of("jobtype", name) in page.links
    assert other.job_types.text == "The code of this site sends it no jobs."


def test_the_jobs_that_have_no_room_are_a_link_away(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for state in ("endpoint", "moving", "running"):
        id = worker(f'the "big" {state}', state=state)
        ids = running(id, 3)
        monkeypatch.setattr(worker_page, "MOST_JOBS", 2)
        page = context(anna, "worker", id)["page"]
        first = [str(ids[0]) in str(slot.job) for slot in page.slots]
        assert first == [True, False]
        assert "state%3Arunning" in page.all_jobs, state
        monkeypatch.setattr(worker_page, "MOST_JOBS", 3)
        assert context(anna, "worker", id)["page"].all_jobs == "", state
    monkeypatch.setattr(worker_page, "MOST_JOBS", 2)
    (address,) = [
        link
        for link in get(anna, page_of("worker", id)).links
        if "state%3Arunning" in link
    ]
    assert {*get(anna, address).rows} == {*map(str, ids)}


def test_the_page_of_a_move_has_what_concerns_one(anna: Client) -> None:
    id = move()
    JobType.objects.filter(pk=ADD).update(timeout_override=timedelta(minutes=30))
    (job,) = running(id)
    page = get(anna, page_of("worker", id))
    assert "View move to another database" in page.text
    assert "Host web-1 Process 4100 Held jobs 1 Oldest" in page.text
    assert "Lease until" in page.text
    assert page_of("queuedjob", job) in page.links
    assert page.all("progress") == []
    assert "timeout" not in page.text
    assert "lapsed" not in page.text
    assert [words for words in NOT_OF_MOVES if words in page.text] == []
    assert buttons_of(page, id) == []
    # One that was killed is lapsed.
    Worker.objects.filter(pk=id).update(lease_until=timezone.now() - MINUTE)
    assert "moving lapsed" in get(anna, page_of("worker", id)).text
    assert "moving lapsed" in row_of(get(anna, list_of("worker")), "move to archive")


def test_endpoints_and_moves_are_not_asked(anna: Client) -> None:
    ids = [endpoint("shipping", 204, **NO_ANSWERS), move()]
    left_alone = "2 are endpoints or moves, and are left alone."
    for verb in ("drain", "resume", "stop", "restart", "where"):
        if verb != "where":
            asked = question(anna, "worker", verb, *ids)
            assert left_alone in asked
            assert "already exited" not in asked
        told = act(anna, "worker", verb, *ids)
        assert left_alone in told, verb
        assert "had already ended" not in told
    assert not LogEntry.objects.exists()
    rows = Worker.objects.filter(pk__in=ids)
    assert [*rows.values_list("desired", "request")] == [("", None)] * 2
