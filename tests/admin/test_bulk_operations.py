"""Bulk operations in the admin: drafted, confirmed, watched, steered; by whom."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client, RequestFactory
from django.utils import timezone

from django_jobqueue import triage
from django_jobqueue.admin.verbs.drafts import draft
from django_jobqueue.models import ArchivedJob, BulkOperation, JobType, QueuedJob
from django_jobqueue.selection import Selection, Table, Term
from django_jobqueue.store import outlook
from django_jobqueue.triage import bulk, bulk_steps
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
    kind: str = "replay", selection: Selection = FAILED, **options: Any
) -> UUID:
    """One that carl started."""
    id = drafted(kind, selection, **options)
    assert bulk.start(id, by="carl")
    return id


def many(count: int, status: str = "failed") -> None:
    """So many archived jobs."""
    ArchivedJob.objects.bulk_create(
        ArchivedJob(id=uuid4(), job_type_id=ADD, status=status) for _ in range(count)
    )


def start(client: Client, id: UUID, status: int = 200, **said: Any) -> Page:
    """Press the button of the draft's page."""
    data = {"expiry": "same", "skip_replayed": "any", **said}
    return post(client, act("start", id), data, status)


def state(id: UUID) -> str:
    return BulkOperation.objects.get(pk=id).state


def test_a_draft_says_what_it_would_do(anna: Client) -> None:
    old = archived(status="failed", expires_at=timezone.now())
    archived(ONCE, "failed")
    archived("shop.removed", "failed")
    archived()
    triage.replay_many([old])
    JobType.objects.filter(name=ADD).update(paused=True)
    page = get(anna, page_of(MODEL, drafted()))
    for text in (
        "Replay 3 jobs?",
        "Which: status: failed.",
        "what ends later is not included",
        "Status: failed 3.",
        "1 was replayed before.",
        "1 belongs to an at-most-once type",
        "1 is past its expiry.",
        "1 is left out, because its job type is gone.",
        f"Paused, so that the new jobs will wait: {ADD}.",
    ):
        assert text in page.text
    assert page_of("archivedjob", old) in page.links
    assert page.all("input", type="submit", value="Replay 3 jobs")


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
    start(anna, id, reason="fixed in 7", expiry="none", queue="default", priority="5")
    row = BulkOperation.objects.get()
    assert (row.state, row.reason) == ("queued", "fixed in 7")
    options = bulk.get(id).options
    assert (options.expiry, options.queue, options.priority) == ("none", "default", 5)
    assert options.skip_at_most_once is False  # an unchecked box
    (entry,) = LogEntry.objects.all()
    assert entry.object_id == str(id)
    assert entry.get_change_message() == (
        "Started: replay, 3 jobs. Which: status: failed. fixed in 7"
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
    BulkOperation.objects.filter(pk=id).update(total=1_001)
    assert "Type 1001 to confirm." in get(anna, page_of(MODEL, id)).text
    for typed in ("", "1000", "yes"):
        page = start(anna, id, typed=typed)
        assert "Type the number of jobs" in page.text
        assert state(id) == "draft"
    start(anna, id, typed="1,001")
    assert state(id) == "queued"


def test_deleting_always_needs_the_number(anna: Client) -> None:
    many(2)
    id = drafted("prune")
    assert "What is pruned is deleted, with its failures, and does not come back." in (
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
    while bulk_steps.step(id, look=2) and BulkOperation.objects.get().seen < 6:
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
    bulk_steps.step(id, look=100)
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
    bulk_steps.step(id, look=3)
    for name, after in (("pause", "paused"), ("resume", "queued"), ("stop", "stopped")):
        post(anna, act(name, id), {})
        assert state(id) == after
        page = post(anna, act(name, id), {})
        assert "it is in another state by now" in page.text
    page = post(anna, act("undo", id), {})
    assert "Cancel" in page.text or "cancel" in page.text
    undone = BulkOperation.objects.exclude(pk=id).get()
    assert (undone.kind, undone.state, undone.total) == ("cancel", "queued", 3)
    said = [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]
    assert said == [
        "Paused.",
        "Resumed.",
        "Stopped. What it did stays.",
        "Undone: the created jobs that have not started are cancelled.",
    ]


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
    triage.cancel([str(BulkOperation.objects.get().job_id)])
    page = get(anna, page_of(MODEL, id))
    assert "The job that worked it off is gone." in page.text
    assert page.all("button", formaction=act("resume", id))
    post(anna, act("resume", id), {})
    assert QueuedJob.objects.filter(job_type_id="jobqueue.bulk").count() == 1


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
    assert "At most 1000 can be selected at once." in page.text
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
    assert "at most 1000 at once" in get(client, list_of("archivedjob")).text
    assert "at most 1000 at once" not in get(anna, list_of("archivedjob")).text


def test_a_few_jobs_are_pruned_from_the_list(anna: Client) -> None:
    gone, kept = archived(status="failed"), archived()
    page = select(anna, "archivedjob", "prune", gone)
    assert "Prune 1 job?" in page.text
    assert "does not come back" in page.text
    done = confirm(anna, "archivedjob", "prune", gone)
    assert "1 job was pruned." in done.text
    assert [job.pk for job in ArchivedJob.objects.all()] == [kept]
    assert LogEntry.objects.get().get_change_message() == "Pruned."


def test_all_that_match_are_pruned_by_a_bulk_operation(anna: Client) -> None:
    many(101)
    page = choose_all(anna, "archivedjob", "prune", status="failed")
    assert "Type 101 to confirm." in page.text
    assert BulkOperation.objects.get().kind == "prune"


def test_pruning_has_a_right_of_its_own(log_in: LogIn) -> None:
    job = archived()
    client = log_in("view_archivedjob", "replay_archivedjob")
    assert "Prune" not in get(client, list_of("archivedjob")).text
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


def test_more_jobs_than_can_be_counted_are_about_so_many(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(1_500)
    monkeypatch.setattr(outlook, "in_time", lambda *args: None)
    monkeypatch.setattr(outlook, "rows_of", lambda *args: 9_000_000)
    id = drafted()
    assert BulkOperation.objects.get().total is None
    page = get(anna, page_of(MODEL, id))
    assert "Replay about " in page.text
    assert "It takes too long to look what is among them." in page.text
    (shown,) = [box["value"] for box in page.all("input", name="shown")]
    start(anna, id, shown=shown, typed=shown)
    assert state(id) == "queued"
