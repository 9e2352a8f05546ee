"""Bulk operations in the admin: drafted, confirmed, watched, steered; by whom."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client, RequestFactory
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.admin.actions.drafts import draft
from django_jobqueue.admin.lists import change_list, counts
from django_jobqueue.admin.lists.change_list import JobChangeList
from django_jobqueue.admin.parts import display
from django_jobqueue.models import ArchivedJob, BulkOperation, JobType, QueuedJob
from django_jobqueue.operations import bulk, bulk_counting, bulk_steps
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.bulk import results
from tests.admin.conftest import LogIn
from tests.admin.pages import (
    Page,
    confirm,
    get,
    list_of,
    page_of,
    post,
    select,
    verb_of,
)
from tests.admin.scene import ADD, ONCE, archived, queued, worker

pytestmark = pytest.mark.django_db

FAILED = Selection(Table.ARCHIVED, (Term("status", "failed"),))
WAITING = Selection(Table.QUEUED, (Term("type", ADD),))
RIGHTS = ("view_bulkoperation", "view_archivedjob", "view_queuedjob")
REPLAYER = (*RIGHTS, "start_bulkoperation", "replay_archivedjob")
MODEL = "bulkoperation"


def act(name: str, id: UUID) -> str:
    """The address of what is done with an operation."""
    return page_of(MODEL, id).replace("/change/", f"/{name}/")


def drafted(
    kind: str = "replay", selection: Selection = FAILED, **options: Any
) -> UUID:
    """A draft by carl."""
    return bulk.draft(kind, selection, by="carl", **options).id


def started(
    kind: str = "replay",
    selection: Selection = FAILED,
    *,
    here: bool = False,
    **options: Any,
) -> UUID:
    """One that carl started."""
    id = drafted(kind, selection, **options)
    assert bulk.start(id, by="carl", here=here)
    return id


def many(count: int, status: str = "failed") -> None:
    """So many archived jobs."""
    ArchivedJob.objects.bulk_create(
        ArchivedJob(id=uuid4(), job_type_id=ADD, status=status) for _ in range(count)
    )


def start(client: Client, id: UUID, status: int = 200, **said: Any) -> Page:
    """Press the button of the draft's page, which shows a number of jobs."""
    page = Page(client.get(page_of(MODEL, id)).content.decode())
    shown = {box["name"]: box["value"] for box in page.all("input", name="shown")}
    data = {"expires": "same", "skip_replayed": "any", **shown, **said}
    return post(client, act("start", id), data, status)


def state(id: UUID) -> str:
    return BulkOperation.objects.get(pk=id).state


def test_a_draft_says_what_it_would_do(anna: Client) -> None:
    old = archived(status="failed", expires_at=timezone.now())
    archived(ONCE, "failed")
    archived("shop.removed", "failed")
    archived()
    operations.replay_many([old])
    JobType.objects.filter(name=ADD).update(paused=True)
    page = get(anna, page_of(MODEL, drafted()))
    for text in (
        "Replay 0 jobs?",
        "Filter: status: failed.",
        "jobs that finish later are excluded",
        "0 will run again, 3 are skipped: 1 of an at-most-once type, "
        "1 replayed already, 1 job type gone.",
        "3 failed.",
        "1 was replayed before.",
        "1 belongs to an at-most-once type",
        "1 is past its expiry.",
        "1 is skipped: its job type is gone.",
        f"Paused, so that the new jobs will wait: {ADD}.",
    ):
        assert text in page.text
    assert page_of("archivedjob", old) in page.links
    assert page.all("input", type="submit", value="Replay 0 jobs")


def test_looking_at_a_draft_writes_nothing(anna: Client) -> None:
    many(3)
    id = drafted()
    get(anna, page_of(MODEL, id))
    get(anna, act("start", id), code=302)
    assert state(id) == "draft"
    assert QueuedJob.objects.count() == 0


def test_starting_a_draft(anna: Client, operated: list[dict[str, Any]]) -> None:
    many(3)
    id = drafted()
    start(anna, id, reason="fixed in 7", expires="never", queue="default", priority="5")
    row = BulkOperation.objects.get()
    assert (row.state, row.reason) == ("queued", "fixed in 7")
    options = bulk.get(id).options
    assert (options.expires, options.queue, options.priority) == ("never", "default", 5)
    assert options.skip_at_most_once is False  # an unchecked box
    (entry,) = LogEntry.objects.all()
    assert entry.object_id == str(id)
    assert entry.get_change_message() == (
        "Started: replay, 3 jobs. Filter: status: failed. fixed in 7"
    )
    (told,) = operated
    assert (told["verb"], told["by"], told["count"]) == ("start bulk replay", "anna", 3)


def test_a_second_click_does_nothing(anna: Client) -> None:
    many(3)
    id = drafted()
    start(anna, id)
    page = start(anna, id)
    assert "Nothing was done twice." in page.text
    assert QueuedJob.objects.count() == 1
    assert LogEntry.objects.count() == 1


def test_many_jobs_need_their_number_to_be_typed(anna: Client) -> None:
    many(1_001)
    archived()
    id = drafted("replay", FAILED.also(Term("type", ADD)))
    assert "Type 1,001 to confirm." in get(anna, page_of(MODEL, id)).text
    for typed in ("", "1000", "yes"):
        page = start(anna, id, typed=typed)
        assert "Type the number of jobs" in page.text
        assert state(id) == "draft"
    start(anna, id, typed="1,001")
    assert state(id) == "queued"


def test_the_number_that_the_page_asks_for_is_the_one_it_takes(anna: Client) -> None:
    """Whatever was chosen and typed before: title, button and help say one number."""
    many(1_001)
    ArchivedJob.objects.bulk_create(
        ArchivedJob(id=uuid4(), job_type_id=ONCE, status="failed") for _ in range(9)
    )
    id = drafted()
    page = get(anna, page_of(MODEL, id))
    assert "Type 1,001 to confirm." in page.text
    for leave_out, number in (("", "1,010"), ("on", "1,001"), ("", "1,010")):
        for typed in ("7", "8"):  # as shown before, and once more
            (shown,) = (box["value"] for box in page.all("input", name="shown"))
            said = {"skip_at_most_once": leave_out} if leave_out else {}
            page = start(anna, id, shown=shown, typed=typed, **said)
            assert f"Replay {number} jobs?" in page.text
            assert page.all("input", type="submit", value=f"Replay {number} jobs")
            assert re.findall(r"Type ([\d,]+) to confirm", page.text) == [number]
    (shown,) = (box["value"] for box in page.all("input", name="shown"))
    start(anna, id, shown=shown, typed="1,010")
    assert state(id) == "queued"


def test_a_draft_that_changes_nothing_does_not_start(anna: Client) -> None:
    """Nor does it resolve the failure group that it is about."""
    old = archived(status="failed")
    operations.replay_many([old])
    id = drafted()
    page = start(anna, id)
    assert "With these choices no job would be changed." in page.text
    assert state(id) == "draft"
    start(anna, id, skip_replayed="none")  # shows the number
    start(anna, id, skip_replayed="none", shown="1")
    assert state(id) == "queued"


@pytest.mark.parametrize("kind", ["replay", "prune"])
def test_a_draft_about_no_job_has_no_button(anna: Client, kind: str) -> None:
    id = drafted(kind)
    page = get(anna, page_of(MODEL, id))
    assert not page.all("input", type="submit", **{"class": "default"})
    assert "Discard the draft" in page.text
    assert "to confirm." not in page.text


def test_a_draft_that_one_may_not_start_asks_nothing(log_in: LogIn) -> None:
    many(1_001)
    client = log_in(*REPLAYER)
    page = get(client, page_of(MODEL, drafted()))
    assert "You may not start that" in page.text
    assert "to confirm." not in page.text
    assert not page.all("input", name="reason")


def test_no_number_is_asked_for_once_there_are_few(anna: Client) -> None:
    many(1_000)
    ArchivedJob.objects.bulk_create(
        ArchivedJob(id=uuid4(), job_type_id=ONCE, status="failed") for _ in range(9)
    )
    id = drafted(skip_at_most_once=False)
    assert "Type 1,009 to confirm." in get(anna, page_of(MODEL, id)).text
    page = start(anna, id, skip_at_most_once="on")
    assert "Replay 1,000 jobs?" in page.text
    assert "to confirm." not in page.text
    start(anna, id, skip_at_most_once="on", shown="1000")
    assert state(id) == "queued"


def test_deleting_always_needs_the_number(anna: Client) -> None:
    many(2)
    id = drafted("prune")
    assert "Their failures are deleted with them; deleted jobs do not come back." in (
        get(anna, page_of(MODEL, id)).text
    )
    start(anna, id)
    assert state(id) == "draft"
    start(anna, id, typed="2")
    assert state(id) == "queued"


def test_most_of_the_table_needs_a_right_of_its_own(log_in: LogIn) -> None:
    many(1_001)
    id = drafted("replay", Selection(Table.ARCHIVED))
    client = log_in(*REPLAYER)
    page = get(client, page_of(MODEL, id))
    assert "You may not start that" in page.text
    assert not page.all("input", type="submit", value="Replay 1,001 jobs")
    start(client, id, 403, typed="1001")
    assert state(id) == "draft"
    boss = log_in(*REPLAYER, "unbounded_bulkoperation", name="boss")
    start(boss, id, typed="1001")
    assert state(id) == "queued"


def test_a_rate_or_a_span(anna: Client) -> None:
    many(90)
    id = drafted()
    page = start(anna, id, per_minute="5", spread="30")
    assert "Give a rate or a span, not both." in page.text
    start(anna, id, spread="30")
    assert BulkOperation.objects.get().per_minute == 3


def test_a_reschedule_needs_something_to_change(anna: Client) -> None:
    queued()
    id = drafted("reschedule", WAITING)
    assert "Choose a time, a priority or a queue." in start(anna, id).text
    start(anna, id, priority="0")
    assert bulk.get(id).options.priority == 0
    assert state(id) == "queued"


def test_discarding_a_draft(anna: Client) -> None:
    many(1)
    id = drafted()
    page = post(anna, act("stop", id), {})
    assert "Discarded." in page.text
    assert state(id) == "stopped"
    assert "Nothing was done twice." in start(anna, id).text


def test_progress_is_shown(anna: Client) -> None:
    worker(job_types=[ADD, "jobqueue.bulk"])
    many(8)
    archived(ONCE, "failed")
    id = started(reason="fixed")
    while bulk_steps.step(id, max_rows=2) and BulkOperation.objects.get().seen < 6:
        pass
    page = get(anna, page_of(MODEL, id))
    assert page.all("div", **{"data-jq-region": "progress"})
    assert page.all("progress", value="66")
    for text in ("6 of 9 (66 %)", "running", "status: failed", "carl", "fixed"):
        assert text in page.text
    buttons = {b.get("formaction") for b in page.all("button")}
    assert {act("pause", id), act("stop", id)} <= buttons
    assert act("step", id) not in buttons
    row = get(anna, list_of(MODEL)).text
    assert "6 of 9 (66 %)" in row


def test_what_came_of_it_is_shown(anna: Client) -> None:
    many(4)
    archived(ONCE, "failed")
    id = started()
    bulk_steps.step(id, max_rows=100)
    made = list(QueuedJob.objects.filter(bulk_operation_id=id))
    archived(status="succeeded", bulk_operation_id=id)
    archived(status="failed", bulk_operation_id=id)
    QueuedJob.objects.filter(pk=made[0].pk).update(status="running", attempts=1)
    page = get(anna, page_of(MODEL, id))
    assert "done" in page.text
    assert "of an at-most-once type 1" in page.text
    for text in ("succeeded 1", "failed 1", "running 1", "not started 3"):
        assert text in page.text
    address = f"{list_of('archivedjob')}?q=operation%3A{id}+status%3Asucceeded"
    assert address in page.links
    shown = get(anna, list_of("archivedjob"), q=f"operation:{id} status:succeeded")
    assert len(shown.rows) == 1


def test_pause_resume_stop_and_undo(anna: Client) -> None:
    many(4)
    id = started()
    bulk_steps.step(id, max_rows=3)
    for name, after in (("pause", "paused"), ("resume", "queued"), ("stop", "stopped")):
        post(anna, act(name, id), {})
        assert state(id) == after
        page = post(anna, act(name, id), {})
        assert "it is in another state by now" in page.text
    said = [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]
    assert said == ["Paused.", "Resumed.", "Stopped. What it did stays."]


UNDO = "Cancel the created jobs that have not started"


def test_an_undo_asks_and_says_how_many(anna: Client) -> None:
    many(4)
    id = started()
    bulk_steps.step(id, max_rows=3)
    bulk.stop(id)
    assert f"{UNDO} (3)…" in get(anna, page_of(MODEL, id)).text
    page = post(anna, act("undo", id), {})
    assert "Cancel 3 jobs?" in page.text
    assert "Undone" not in page.text
    undo = BulkOperation.objects.exclude(pk=id).get()
    assert (undo.kind, undo.state, undo.total) == ("cancel", "draft", 3)
    assert QueuedJob.objects.filter(bulk_operation_id=id).count() == 3
    start(anna, undo.pk)
    bulk_steps.step(undo.pk, max_rows=100)
    assert QueuedJob.objects.filter(bulk_operation_id=id).count() == 0
    said = [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]
    which = f"made by bulk operation: {id} · attempts: 0"
    assert said == [f"Started: cancel, 3 jobs. Filter: {which}."]


def test_an_undo_is_not_offered_where_there_is_nothing_to_undo(anna: Client) -> None:
    archived(ONCE, "failed")
    skipped = started(selection=FAILED.also(Term("type", ONCE)))
    bulk_steps.step(skipped, max_rows=9)
    assert UNDO not in get(anna, page_of(MODEL, skipped)).text
    many(2)
    id = started(selection=FAILED.also(Term("type", ADD)))
    bulk_steps.step(id, max_rows=9)
    assert f"{UNDO} (2)…" in get(anna, page_of(MODEL, id)).text
    operations.cancel(
        QueuedJob.objects.filter(bulk_operation_id=id).values_list("pk", flat=True)
    )
    assert UNDO not in get(anna, page_of(MODEL, id)).text


def test_without_a_worker_it_can_be_run_here(anna: Client) -> None:
    many(7)
    id = started()
    page = get(anna, page_of(MODEL, id))
    assert "No living worker serves its queue, default." in page.text
    assert page.all("button", formaction=act("step", id))
    page = post(anna, act("step", id), {})
    assert "7 jobs were changed." in page.text
    assert state(id) == "done"
    assert QueuedJob.objects.filter(bulk_operation_id=id).count() == 7


def test_an_operation_whose_job_is_gone_can_be_resumed(anna: Client) -> None:
    many(2)
    id = started()
    operations.cancel([str(BulkOperation.objects.get().job_id)])
    page = get(anna, page_of(MODEL, id))
    assert "The job that ran this operation is gone." in page.text
    assert page.all("button", formaction=act("resume", id))
    post(anna, act("resume", id), {})
    assert QueuedJob.objects.filter(job_type_id="jobqueue.bulk").count() == 1


@pytest.mark.parametrize(
    ("quiet", "said"),
    [
        (None, "A command runs this operation and has made no progress yet."),
        (timedelta(seconds=3), "A command runs this operation."),
        (timedelta(hours=2), "there has been no progress for 2 h"),
    ],
)
def test_an_operation_that_a_command_runs_shows_when_it_last_progressed(
    anna: Client, quiet: timedelta | None, said: str
) -> None:
    many(2)
    id = started(here=True)
    moment = quiet and timezone.now() - quiet
    BulkOperation.objects.update(state="running", progress_at=moment)
    text = get(anna, page_of(MODEL, id)).text
    assert said in text
    assert "is gone. Resume" not in text
    assert get(anna, page_of(MODEL, id)).all("button", formaction=act("resume", id))


def test_to_resume_an_operation_beside_its_command_changes_each_job_once(
    anna: Client,
) -> None:
    many(700)  # two chunks
    id = started(here=True)
    command = bulk_steps.work_here(id, sleep=lambda _seconds: None)
    done = next(command).changed
    assert 0 < done < 700
    post(anna, act("resume", id), {})
    job = BulkOperation.objects.get(pk=id).job_id
    chunk = bulk_steps.step(id, max_rows=50, job=job)
    assert chunk is not None
    assert chunk.changed == 50
    done += chunk.changed + sum(chunk.changed for chunk in command)
    assert done == 700
    replays = QueuedJob.objects.filter(bulk_operation_id=id)
    assert replays.values("replay_of").distinct().count() == replays.count() == 700
    assert BulkOperation.objects.get(pk=id).state == "done"
    assert bulk_steps.step(id, max_rows=50, job=job) is None


def test_an_error_is_shown_and_the_operation_can_be_resumed(anna: Client) -> None:
    many(2)
    id = started()
    bulk_steps.fail(id, "ValueError: <b>no luck</b>")
    page = get(anna, page_of(MODEL, id))
    assert "ValueError: <b>no luck</b>" in page.text
    assert page.all("button", formaction=act("resume", id))


@pytest.mark.parametrize("name", ["start", "pause", "resume", "stop", "undo", "step"])
def test_who_may_only_look_can_do_nothing(log_in: LogIn, name: str) -> None:
    many(2)
    id = drafted() if name == "start" else started()
    before = state(id)
    client = log_in(*RIGHTS)
    page = get(client, page_of(MODEL, id))
    assert not [b for b in page.all("button") if "formaction" in b]
    assert client.post(act(name, id)).status_code == 403
    assert client.get(act(name, id)).status_code == 403
    assert state(id) == before


@pytest.mark.parametrize(
    ("rights", "name", "code"),
    [
        (("start_bulkoperation",), "start", 403),
        (("replay_archivedjob",), "start", 403),
        (("start_bulkoperation",), "pause", 302),
        (("start_bulkoperation",), "stop", 302),
        (("start_bulkoperation",), "resume", 403),
        (("start_bulkoperation", "replay_archivedjob"), "resume", 302),
        (("start_bulkoperation", "replay_archivedjob"), "undo", 403),
        (("start_bulkoperation", "cancel_queuedjob"), "undo", 302),
        (("start_bulkoperation", "replay_archivedjob"), "step", 302),
    ],
)
def test_each_thing_has_its_right(
    log_in: LogIn, rights: tuple[str, ...], name: str, code: int
) -> None:
    many(2)
    id = drafted() if name == "start" else started()
    client = log_in(*RIGHTS, *rights)
    assert client.post(act(name, id)).status_code == code


def test_an_operation_that_does_not_exist(anna: Client) -> None:
    assert anna.post(act("pause", uuid4())).status_code == 404


def test_a_form_without_its_token_is_refused() -> None:
    many(1)
    id = started()
    client = Client(enforce_csrf_checks=True)
    assert client.post(act("stop", id)).status_code in (302, 403)
    assert state(id) == "queued"


def test_the_list_is_read_in_a_fixed_number_of_queries(
    anna: Client, django_assert_max_num_queries: Any
) -> None:
    many(2)
    for _ in range(20):
        started()
    with django_assert_max_num_queries(9):
        page = get(anna, list_of(MODEL))
    assert page.text.count("status: failed") == 20


def request_of(client: Client, method: str = "post") -> Any:
    """A request as a page of the admin gets it."""
    request: Any = getattr(RequestFactory(), method)("/")
    request.user = client.get("/admin/").wsgi_request.user
    request.session = client.session
    request._messages = []
    request._messages = type("M", (list,), {"add": lambda s, *a: s.append(a)})()
    return request


def test_a_page_of_the_admin_drafts_by_its_selection(anna: Client) -> None:
    group = uuid4()
    archived(status="failed", fingerprint=group)
    many(2)
    selection = Selection(Table.ARCHIVED, (Term("group", group),))
    response = draft(request_of(anna), "replay", selection)
    row = BulkOperation.objects.get()
    assert (row.total, row.created_by, row.state) == (1, "anna", "draft")
    assert response["Location"] == page_of(MODEL, row.pk)


def test_a_selection_that_was_not_understood_drafts_nothing(anna: Client) -> None:
    many(2)
    request = request_of(anna)
    response = draft(request, "replay", FAILED.none(), back="/there/")
    assert response["Location"] == "/there/"
    assert "a filter is not understood" in str(request._messages)
    assert BulkOperation.objects.count() == 0


def test_a_draft_needs_a_post_and_both_rights(anna: Client, log_in: LogIn) -> None:
    from django.core.exceptions import PermissionDenied

    clients = [
        (request_of(anna, "get")),
        request_of(log_in("start_bulkoperation", name="one")),
        request_of(log_in("replay_archivedjob", name="two")),
    ]
    for request in clients:
        with pytest.raises(PermissionDenied):
            draft(request, "replay", FAILED)


def choose_all(client: Client, model: str, verb: str, **filters: Any) -> Page:
    """Choose a verb for all that match these filters."""
    some = ArchivedJob if model == "archivedjob" else QueuedJob
    data = {
        "action": verb,
        "index": 0,
        "select_across": "1",
        "_selected_action": [str(some.objects.values_list("pk", flat=True)[0])],
    }
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return post(client, f"{list_of(model)}?{query}", data)


def test_all_that_match_the_filter_become_a_draft(anna: Client) -> None:
    many(101)
    many(3, "cancelled")
    page = choose_all(anna, "archivedjob", "replay", status="failed")
    row = BulkOperation.objects.get()
    assert (row.kind, row.state, row.total) == ("replay", "draft", 101)
    assert bulk.get(row.pk).selection == FAILED
    assert "Replay 101 jobs?" in page.text
    assert QueuedJob.objects.count() == 0


@pytest.mark.parametrize("verb", ["cancel", "run_now", "reschedule"])
def test_all_queued_jobs_that_match_become_a_draft(anna: Client, verb: str) -> None:
    QueuedJob.objects.bulk_create(
        QueuedJob(id=uuid4(), job_type_id=ADD) for _ in range(101)
    )
    choose_all(anna, "queuedjob", verb, q=f"type:{ADD}")
    row = BulkOperation.objects.get()
    assert (row.kind, row.state, row.total) == (verb, "draft", 101)
    assert bulk.get(row.pk).selection == WAITING


def test_a_few_are_done_in_the_request(anna: Client) -> None:
    many(100)
    page = choose_all(anna, "archivedjob", "replay", status="failed")
    assert "Replay 100 jobs?" in page.text
    assert BulkOperation.objects.count() == 0


def test_all_that_match_need_the_right_to_start_bulk_operations(log_in: LogIn) -> None:
    many(1_001)
    client = log_in(*RIGHTS, "replay_archivedjob")
    page = choose_all(client, "archivedjob", "replay", status="failed")
    assert "At most 1,000 can be selected at once." in page.text
    assert BulkOperation.objects.count() == 0


def test_a_filter_that_is_not_understood_selects_nothing(anna: Client) -> None:
    many(150)
    page = choose_all(anna, "archivedjob", "replay", finished_at__range__gte_0="soon")
    assert BulkOperation.objects.count() == 0
    assert QueuedJob.objects.count() == 0
    assert "Replay 150 jobs?" not in page.text


def test_only_those_who_may_are_offered_all(anna: Client, log_in: LogIn) -> None:
    many(1_001)
    client = log_in(*RIGHTS, "replay_archivedjob")
    assert "at most 1,000 at once" in get(client, list_of("archivedjob")).text
    assert "at most 1,000 at once" not in get(anna, list_of("archivedjob")).text


SELECTED = r"(Select all .*?) Clear selection"


def offered(client: Client, **query: str) -> str:
    """What the list of archived jobs says about selecting more than the page."""
    text = get(client, list_of("archivedjob"), **query).text
    return "".join(re.findall(SELECTED, text))


def test_the_offer_to_select_all_names_only_a_number_of_all(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(1_200)
    assert offered(anna) == "Select all 1,200"
    assert offered(anna, status="failed") == "Select all 1,200"
    assert offered(anna, queue="default") == "Select all 1,200"
    monkeypatch.setattr(JobChangeList, "window", 1_100)
    assert offered(anna, status="failed") == "Select all 1,200"
    assert offered(anna, queue="default") == "Select all that match"
    assert offered(anna, q="queue:default") == "Select all that match"
    older = get(anna, list_of("archivedjob"), queue="default")
    (since,) = {link for link in older.links if "since=" in link}
    page = get(anna, list_of("archivedjob") + since)
    assert "".join(re.findall(SELECTED, page.text)) == "Select all that match"
    monkeypatch.setattr(change_list, "count", partial(counts.count, cap=60))
    assert offered(anna, status="failed") == "Select all that match"


def test_all_that_match_are_more_than_those_that_were_searched(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the list shows no more than are done at once."""
    many(150)
    monkeypatch.setattr(JobChangeList, "window", 60)
    page = choose_all(anna, "archivedjob", "replay", queue="default")
    assert "Replay 150 jobs?" in page.text
    assert BulkOperation.objects.get().total == 150


def test_what_was_not_counted_is_not_offered_to_those_who_do_a_few(
    log_in: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(150)
    client = log_in(*RIGHTS, "replay_archivedjob")
    assert offered(client, queue="default") == "Select all 150"
    monkeypatch.setattr(JobChangeList, "window", 60)
    assert offered(client, queue="default") == ""


def test_a_few_jobs_are_pruned_from_the_list(anna: Client) -> None:
    gone, kept = archived(status="failed"), archived()
    page = select(anna, "archivedjob", "prune", gone)
    assert "Delete 1 job?" in page.text
    assert "do not come back" in page.text
    done = confirm(anna, "archivedjob", "prune", gone)
    assert "1 job was deleted." in done.text
    assert [job.pk for job in ArchivedJob.objects.all()] == [kept]
    assert LogEntry.objects.get().get_change_message() == "Deleted."


def test_all_that_match_are_pruned_by_a_bulk_operation(anna: Client) -> None:
    many(101)
    page = choose_all(anna, "archivedjob", "prune", status="failed")
    assert "Type 101 to confirm." in page.text
    assert BulkOperation.objects.get().kind == "prune"


def test_pruning_has_a_right_of_its_own(log_in: LogIn) -> None:
    job = archived()
    client = log_in("view_archivedjob", "replay_archivedjob")
    assert "Delete selected" not in get(client, list_of("archivedjob")).text
    data = {"keys": str(job), "confirmed": "1"}
    assert client.post(verb_of("archivedjob", "prune"), data).status_code == 403
    assert ArchivedJob.objects.count() == 1


def test_values_of_data_are_shown_to_those_who_may_see_data(log_in: LogIn) -> None:
    archived(status="failed", data={"order": 8812})
    chosen = FAILED.also(Term("data", 8812, path=("order",)))
    ids = [drafted("replay", chosen), started("replay", chosen)]
    blind = log_in(*REPLAYER)
    seeing = log_in(*REPLAYER, "view_job_data", name="carla")
    for address in (list_of(MODEL), *(page_of(MODEL, id) for id in ids)):
        assert "data.order: ••••" in get(blind, address).text
        assert "8812" not in get(blind, address).text
        assert "data.order: 8812" in get(seeing, address).text


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no time to count while a draft is made."""
    monkeypatch.setattr(bulk_counting, "AT_ONCE", 0.0)


def button(page: Page) -> list[str | None]:
    """What the page offers to do with the jobs."""
    found = page.all("input", type="submit")
    return [box["value"] for box in found if str(box.get("class")).startswith("def")]


@pytest.mark.usefixtures("_slow")
def test_a_draft_waits_until_its_jobs_are_counted(log_in: LogIn, anna: Client) -> None:
    many(600)
    id = drafted()
    assert bulk.get(id).total is None
    bulk_counting.step(id, max_rows=500)
    client = log_in(*REPLAYER)
    page = get(client, page_of(MODEL, id))
    assert "500 jobs so far, among 500 that were looked at" in page.text
    assert "What is said here is of these. 500 failed." in page.text
    assert page.all("div", **{"data-jq-region": "draft"})[0]["data-jq-soon"] is None
    assert button(page) == []
    assert page.all("input", name="reason") == []
    start(client, id, 403)
    assert state(id) == "draft"
    page = post(client, act("step", id), {})
    assert button(page) == ["Replay 600 jobs"]
    assert "so far" not in page.text
    start(client, id)
    assert (state(id), BulkOperation.objects.get().confirmed) == ("queued", 600)


@pytest.mark.usefixtures("_slow")
@pytest.mark.parametrize("kind", ["replay", "cancel", "run_now", "reschedule", "prune"])
def test_only_what_can_be_taken_back_starts_uncounted(anna: Client, kind: str) -> None:
    many(2), queued()
    chosen = FAILED if kind in ("replay", "prune") else WAITING
    id = drafted(kind, chosen)
    page = get(anna, page_of(MODEL, id))
    if kind == "prune":
        assert button(page) == []
        start(anna, id, 403, typed="2")
        assert state(id) == "draft"
    else:
        (label,) = button(page)
        assert "jobs, not all counted yet" in str(label)
        start(anna, id, priority="9")
        assert state(id) == "queued"


@pytest.mark.usefixtures("_slow")
def test_a_draft_that_nobody_counts_says_so(anna: Client) -> None:
    many(2)
    id = drafted()
    assert "No living worker serves its queue" in get(anna, page_of(MODEL, id)).text
    QueuedJob.objects.all().delete()
    page = get(anna, page_of(MODEL, id))
    assert "The job that counted them is gone: count them here." in page.text
    assert page.all("button", formaction=act("step", id))
    assert BulkOperation.objects.get().state == "draft"


def test_another_choice_means_another_number_which_is_asked_for(anna: Client) -> None:
    many(5)
    first = archived(status="failed")
    operations.replay_many([first])
    id = drafted()
    page = get(anna, page_of(MODEL, id))
    assert button(page) == ["Replay 5 jobs"]
    assert "5 will run again, 1 is skipped: 1 replayed already." in page.text
    page = start(anna, id, skip_replayed="none")
    assert "With these choices it is 6 jobs. Check, and confirm again." in page.text
    assert (button(page), state(id)) == (["Replay 6 jobs"], "draft")
    assert "6 will run again." in page.text
    assert [box["value"] for box in page.all("input", name="shown")] == ["6"]
    start(anna, id, skip_replayed="none", shown="6")
    assert (state(id), BulkOperation.objects.get().confirmed) == ("queued", 6)


def test_a_form_that_never_showed_a_number_starts_nothing(anna: Client) -> None:
    many(2)
    id = drafted()
    page = post(anna, act("start", id), {"expires": "same", "skip_replayed": "any"})
    assert "With these choices it is 2 jobs." in page.text
    assert state(id) == "draft"


def test_facts_of_many_jobs_are_of_all_of_them(anna: Client) -> None:
    """Not of the first ten thousand that the database happened to find."""
    now = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_archivedjob (id, job_type, status, data, finished_at)"
            " SELECT gen_random_uuid(), %s, 'failed', '{}', "
            "%s - n * interval '1 second' FROM generate_series(0, 11999) AS n",
            [ADD, now],
        )
    page = get(anna, page_of(MODEL, drafted()))
    oldest, newest = now - timedelta(seconds=11_999), now
    assert f"From {display.exact(oldest)} to {display.exact(newest)}." in page.text
    assert "12,000 failed." in page.text
    assert "Type 12,000 to confirm." in page.text


def test_an_operation_that_stopped_at_its_number_says_so(anna: Client) -> None:
    many(3)
    id = started()
    BulkOperation.objects.update(confirmed=2)
    bulk_steps.step(id, max_rows=100)
    bulk_steps.step(id, max_rows=100)
    page = get(anna, page_of(MODEL, id))
    assert "more jobs match by now than were confirmed" in page.text
    assert "not confirmed: they joined later 1+" in page.text
    assert (state(id), BulkOperation.objects.get().changed) == ("stopped", 2)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.001, False), (0.9, False), (2, True)]
)
def test_a_rate_is_shown_once_there_is_time_enough(
    anna: Client, seconds: float, shown: bool
) -> None:
    many(4)
    id = started()
    bulk_steps.step(id, max_rows=2)
    began = timezone.now() - timedelta(hours=1)
    BulkOperation.objects.update(
        started_at=began, progress_at=began + timedelta(seconds=seconds), seen=448_000
    )
    text = get(anna, page_of(MODEL, id)).text
    assert ("224,000 jobs per second" in text) is shown
    assert ("jobs per second" in text) is shown


def test_counts_of_what_became_of_many_jobs_are_at_least_so_many(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "CAP", 3)
    many(2)
    id = started()
    bulk_steps.step(id, max_rows=9)
    for status in ("succeeded", "succeeded", "failed", "failed", "failed"):
        archived(status=status, bulk_operation_id=id)
    text = get(anna, page_of(MODEL, id)).text
    assert re.search(r"succeeded \d\+", text) or re.search(r"failed \d\+", text)
    assert "not started 2 " in text
