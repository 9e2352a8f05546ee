"""Bulk operations in the admin: drafted, confirmed, watched, steered; by whom."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.admin.actions import action_admin
from django_jobqueue.admin.actions.drafts import draft
from django_jobqueue.admin.bulk import bulk_forms
from django_jobqueue.admin.jobs.archived_jobs import ArchivedJobAdmin
from django_jobqueue.admin.lists import change_list, counts
from django_jobqueue.admin.lists.change_list import JobChangeList
from django_jobqueue.models import ArchivedJob, BulkOperation, JobType, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.bulk import results
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of, page_of, select, verb_of
from tests.admin.scene import ADD, FAIL, ONCE, archived, queued, worker
from tests.admin.units import (
    act,
    answer,
    errors_of,
    following,
    press,
    question,
    request_of,
)

pytestmark = pytest.mark.django_db

FAILED = Selection(Table.ARCHIVED, (Term("status", "failed"),))
WAITING = Selection(Table.QUEUED, (Term("type", ADD),))
RIGHTS = ("view_bulkoperation", "view_archivedjob", "view_queuedjob")
REPLAYER = (*RIGHTS, "start_bulkoperation", "replay_archivedjob")
MODEL = "bulkoperation"


def act_of(name: str, id: UUID) -> str:
    return page_of(MODEL, id).replace("/change/", f"/{name}/")


def drafted(
    kind: str = "replay", selection: Selection = FAILED, **options: Any
) -> UUID:
    return bulk.draft(kind, selection, by="carl", **options).id


def started(
    kind: str = "replay",
    selection: Selection = FAILED,
    *,
    here: bool = False,
    **options: Any,
) -> UUID:
    id = drafted(kind, selection, **options)
    assert bulk.start(id, by="carl", here=here)
    return id


def many(count: int, status: str = "failed", job_type: str = ADD) -> None:
    """So many archived jobs, a second each."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_archivedjob (id, job_type, status, data, finished_at)"
            " SELECT gen_random_uuid(), %s, %s, '{}', "
            "%s - n * interval '1 second' FROM generate_series(0, %s - 1) AS n",
            [job_type, status, timezone.now(), count],
        )


def page(client: Client, id: UUID) -> Any:
    return answer(client, page_of(MODEL, id)).context_data


def start(client: Client, id: UUID, **said: Any) -> Any:
    """The answer to the button of the draft's page, which shows a number of jobs."""
    number = page(client, id)["form"]["shown"].value()
    data = {"expires": "same", "skip_replayed": "any", "shown": number or "", **said}
    return answer(client, act_of("start", id), data)


def refused(client: Client, id: UUID, **said: Any) -> str:
    """Why the form of the draft does not start it."""
    text = errors_of(start(client, id, **said))
    assert state(id) == "draft"
    return text


def offered(context: Any) -> tuple[str, str, str, str]:
    """The number of jobs as the page of a draft says it, everywhere that it does."""
    form = context["form"]
    return (
        context["question"].text,
        context["button"].label,
        form["typed"].help_text,
        str(form["shown"].value()),
    )


def state(id: UUID) -> str:
    return BulkOperation.objects.get(pk=id).state


# Drafts.


def test_a_draft_says_what_it_would_do_and_does_nothing(anna: Client) -> None:
    old = archived(status="failed", expires_at=timezone.now())
    archived(ONCE, "failed")
    archived("shop.removed", "failed")
    archived()
    operations.replay_many([old])
    JobType.objects.filter(name=ADD).update(paused=True)
    id = drafted()
    shown = get(anna, page_of(MODEL, id))
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
        assert text in shown.text
    assert page_of("archivedjob", old) in shown.links
    assert shown.all("input", type="submit", value="Replay 0 jobs")
    none = refused(anna, id, skip_at_most_once="on")
    assert "With these choices no job would be changed." in none
    assert answer(anna, act_of("start", id)).status_code == 302
    assert (state(id), QueuedJob.objects.count()) == ("draft", 1)
    # One about no job has no button.
    shown = get(anna, page_of(MODEL, drafted("prune", FAILED.also(Term("type", FAIL)))))
    assert not shown.all("input", type="submit", **{"class": "default"})
    assert "Discard the draft" in shown.text
    assert "to confirm." not in shown.text


def test_a_draft_is_started_once_or_discarded(
    anna: Client, operated: list[dict[str, Any]]
) -> None:
    many(3)
    id = drafted()
    (box,) = get(anna, page_of(MODEL, id)).all("input", name="shown")
    said = {"reason": "fixed in 7", "expires": "never", "skip_replayed": "any"}
    said |= {"queue": "default", "priority": "5", "shown": box["value"]}
    press(anna, act_of("start", id), **said)
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
    assert "Nothing ran twice." in press(anna, act_of("start", id), **said)
    assert (QueuedJob.objects.count(), LogEntry.objects.count()) == (1, 1)

    id = drafted()
    assert "Discarded." in press(anna, act_of("stop", id))
    assert state(id) == "stopped"
    assert "Nothing ran twice." in press(anna, act_of("start", id))


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_forms, "TYPED_ABOVE", 2)


@pytest.mark.usefixtures("_few")
def test_the_number_that_the_page_asks_for_is_the_one_it_takes(anna: Client) -> None:
    """Whatever was chosen and typed before: title, button and help say one number."""
    many(4)
    many(2_009, job_type=ONCE)
    id = drafted()
    assert "Type 4 to confirm." in get(anna, page_of(MODEL, id)).text
    context = page(anna, id)
    for leave_out, number in (("", "2,013"), ("on", "4"), ("", "2,013")):
        for typed in ("", "yes", "7"):  # as shown before, and once more
            said = {"shown": context["form"]["shown"].value(), "typed": typed}
            said |= {"skip_at_most_once": leave_out} if leave_out else {}
            answered = start(anna, id, **said)
            assert state(id) == "draft"
            context = answered.context_data
            assert offered(context) == (
                f"Replay {number} jobs?",
                f"Replay {number} jobs",
                f"Type {number} to confirm.",
                number.replace(",", ""),
            )
        assert "Type the number of jobs" in errors_of(answered)
    start(anna, id, shown="2013", typed="2,013")
    assert state(id) == "queued"
    # No number is asked for once there are few.
    ArchivedJob.objects.filter(job_type_id=ADD)[2].delete()
    ArchivedJob.objects.filter(job_type_id=ADD)[2].delete()
    id = drafted(skip_at_most_once=False)
    assert page(anna, id)["form"]["typed"].help_text == "Type 2,011 to confirm."
    asked = start(anna, id, skip_at_most_once="on").context_data
    assert offered(asked) == ("Replay 2 jobs?", "Replay 2 jobs", "", "2")
    start(anna, id, skip_at_most_once="on", shown="2")
    assert state(id) == "queued"


def test_another_choice_means_another_number_which_is_asked_for(anna: Client) -> None:
    many(5)
    operations.replay_many([archived(status="failed")])
    id = drafted()
    (_title, label, *_), facts = offered(page(anna, id)), page(anna, id)["question"]
    assert label == "Replay 5 jobs"
    skips = "5 will run again, 1 is skipped: 1 replayed already."
    assert skips in facts.facts
    again = "With these choices there are 6 jobs. Check, and confirm again."
    asked = start(anna, id, skip_replayed="none")
    assert again in errors_of(asked)
    assert offered(asked.context_data)[1:] == ("Replay 6 jobs", "", "6")
    assert "6 will run again." in asked.context_data["question"].facts
    # A form that never showed a number.
    assert again in refused(anna, id, skip_replayed="none", shown="")
    start(anna, id, skip_replayed="none", shown="6")
    assert (state(id), BulkOperation.objects.get().confirmed) == ("queued", 6)


@pytest.mark.usefixtures("_few")
def test_most_of_the_table_needs_a_right_of_its_own(log_in: LogIn) -> None:
    many(1_001)  # of fewer, most are not too many
    id = drafted("replay", Selection(Table.ARCHIVED))
    client = log_in(*REPLAYER)
    shown = get(client, page_of(MODEL, id))
    assert "which you may not start" in shown.text
    assert "to confirm." not in shown.text
    assert not shown.all("input", name="reason")
    assert not shown.all("input", type="submit", value="Replay 1,001 jobs")
    assert client.post(act_of("start", id), {"typed": "1001"}).status_code == 403
    assert state(id) == "draft"
    boss = log_in(*REPLAYER, "unbounded_bulkoperation", name="boss")
    start(boss, id, typed="1001")
    assert state(id) == "queued"


def test_some_have_to_be_given_something(anna: Client) -> None:
    many(90)
    id = drafted("prune")  # always the number
    warning = "Their failures are deleted with them. Deleted jobs cannot be restored."
    assert warning in page(anna, id)["question"].warnings
    assert "Type the number" in refused(anna, id)
    start(anna, id, typed="90")
    assert state(id) == "queued"
    id = drafted()
    both = {"per_minute": "5", "spread": "30"}
    assert "Give a rate or a span, not both." in refused(anna, id, **both)
    start(anna, id, spread="30")
    assert BulkOperation.objects.get(pk=id).per_minute == 3
    queued()
    id = drafted("reschedule", WAITING)
    assert "Choose a time, a priority or a queue." in refused(anna, id)
    start(anna, id, priority="0")
    assert bulk.get(id).options.priority == 0
    assert state(id) == "queued"


def test_values_of_data_are_shown_to_those_who_may_see_data(log_in: LogIn) -> None:
    archived(status="failed", data={"order": 8812})
    chosen = FAILED.also(Term("data", 8812, path=("order",)))
    ids = [drafted("replay", chosen), started("replay", chosen)]
    blind = log_in(*REPLAYER)
    seeing = log_in(*REPLAYER, "view_job_data", name="carla")
    for address in (list_of(MODEL), *(page_of(MODEL, id) for id in ids)):
        text = get(blind, address).text
        assert "data.order: ••••" in text
        assert "8812" not in text
        assert "data.order: 8812" in get(seeing, address).text


# Drafts that are still being counted.


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "AT_ONCE", 0.0)


def button(page: Page) -> list[str | None]:
    found = page.all("input", type="submit")
    return [box["value"] for box in found if str(box.get("class")).startswith("def")]


@pytest.mark.usefixtures("_slow")
def test_a_draft_waits_until_its_jobs_are_counted(log_in: LogIn) -> None:
    many(6)
    id = drafted()
    assert bulk.get(id).total is None
    bulk.WORK.do_chunk(id, max_rows=5)
    client = log_in(*REPLAYER)
    shown = get(client, page_of(MODEL, id))
    assert "5 jobs so far, among 5 examined" in shown.text
    assert "The figures below are of these. 5 failed." in shown.text
    assert shown.all("div", **{"data-jq-region": "draft"})[0]["data-jq-soon"] is None
    assert button(shown) == []
    assert shown.all("input", name="reason") == []
    with pytest.raises(PermissionDenied):
        start(client, id)
    press(client, act_of("step", id))
    shown = get(client, page_of(MODEL, id))
    assert button(shown) == ["Replay 6 jobs"]
    assert "so far" not in shown.text
    start(client, id)
    assert (state(id), BulkOperation.objects.get().confirmed) == ("queued", 6)


@pytest.mark.usefixtures("_slow")
def test_only_what_can_be_taken_back_starts_uncounted(anna: Client) -> None:
    many(2)
    id = drafted()
    assert "jobs, not all counted yet" in page(anna, id)["button"].label
    start(anna, id)
    assert state(id) == "queued"
    id = drafted("prune")
    assert button(get(anna, page_of(MODEL, id))) == []
    with pytest.raises(PermissionDenied):
        start(anna, id, typed="2")
    # One that nobody counts says so.
    (warning,) = page(anna, id)["question"].warnings[-1:]
    assert "No living worker serves its queue" in warning
    QueuedJob.objects.all().delete()
    shown = get(anna, page_of(MODEL, id))
    assert "The job that counted them is gone: count them here." in shown.text
    assert shown.all("button", formaction=act_of("step", id))
    assert state(id) == "draft"


# Operations that were started.


def test_progress_is_shown(anna: Client) -> None:
    worker(job_types=[ADD, "jobqueue.bulk"])
    many(8)
    archived(ONCE, "failed")
    id = started(reason="fixed")
    while bulk.WORK.do_chunk(id, max_rows=2) and BulkOperation.objects.get().seen < 6:
        pass
    shown = get(anna, page_of(MODEL, id))
    assert shown.all("div", **{"data-jq-region": "progress"})
    assert shown.all("progress", value="66")
    for text in ("6 of 9 (66 %)", "running", "status: failed", "carl", "fixed"):
        assert text in shown.text
    addresses = {b.get("formaction") for b in shown.all("button")}
    assert {act_of("pause", id), act_of("stop", id)} <= addresses
    assert act_of("step", id) not in addresses
    # A rate is shown once there is time enough.
    began, row = timezone.now() - timedelta(hours=1), BulkOperation.objects.all()
    for seconds, rate in ((0.001, None), (0.9, None), (2, "224,000 jobs per second")):
        until = began + timedelta(seconds=seconds)
        row.update(started_at=began, progress_at=until, seen=448_000)
        facts = {str(name): text for name, text in page(anna, id)["progress"].facts}
        assert facts.get("Rate") == rate
    row.update(seen=6)
    with CaptureQueriesContext(connection) as one:
        assert "6 of 9 (66 %)" in get(anna, list_of(MODEL)).text
    for _ in range(5):
        started()
    with CaptureQueriesContext(connection) as several:
        assert get(anna, list_of(MODEL)).text.count("status: failed") == 6
    assert len(several) == len(one) <= 9


def test_the_outcome_is_shown_with_its_jobs(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(4)
    archived(ONCE, "failed")
    id = started()
    bulk.WORK.do_chunk(id, max_rows=100)
    made = list(QueuedJob.objects.filter(bulk_operation_id=id))
    archived(status="succeeded", bulk_operation_id=id)
    archived(status="failed", bulk_operation_id=id)
    QueuedJob.objects.filter(pk=made[0].pk).update(status="running", attempts=1)
    shown = get(anna, page_of(MODEL, id))
    for text in (
        *("done", "of an at-most-once type 1", "succeeded 1", "failed 1"),
        *("running 1", "not started 3"),
    ):
        assert text in shown.text
    (address,) = (link for link in shown.links if "status%3Asucceeded" in link)
    assert address == f"{list_of('archivedjob')}?q=operation%3A{id}+status%3Asucceeded"
    rows = following(anna, "archivedjob", address.partition("?")[2]).result_list
    assert len(rows) == 1

    monkeypatch.setattr(results, "CAP", 4)
    for status in ("succeeded", "failed", "failed"):
        archived(status=status, bulk_operation_id=id)
    counts = {one.label: one.count for one in page(anna, id)["progress"].became}
    assert counts["not started"] == "3"
    assert any(counts.get(over, "").endswith("+") for over in ("succeeded", "failed"))


def test_pause_resume_stop_and_what_they_need(anna: Client) -> None:
    many(4)
    id = started()
    bulk.WORK.do_chunk(id, max_rows=3)
    for name, after in (("pause", "paused"), ("resume", "queued"), ("stop", "stopped")):
        press(anna, act_of(name, id))
        assert state(id) == after
        assert "its state has changed" in press(anna, act_of(name, id))
    said = [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]
    assert said == ["Paused.", "Resumed.", "Stopped. Its changes stay."]
    assert anna.post(act_of("pause", uuid4())).status_code == 404


def test_each_thing_has_its_right(log_in: LogIn) -> None:
    """Whoever may only look is in test_roles, and a second right alone in none."""
    many(2)
    draft, running = drafted(), started()
    starts, replays = "start_bulkoperation", "replay_archivedjob"
    wrong = {}
    for number, (rights, name, code) in enumerate(
        [
            ((), "start", 403),
            ((), "step", 403),
            ((starts,), "start", 403),
            ((replays,), "start", 403),
            ((starts,), "resume", 403),
            ((starts, replays), "undo", 403),
            ((starts,), "pause", 302),
            ((starts, replays), "resume", 302),
            ((starts, replays), "step", 302),
            ((starts, "cancel_queuedjob"), "undo", 302),
            ((starts,), "stop", 302),
        ]
    ):
        client = log_in(*RIGHTS, *rights, name=f"user {number}")
        id = draft if name == "start" else running
        status = client.post(act_of(name, id)).status_code
        if status != code:
            wrong[name, rights] = status
    assert wrong == {}
    assert buttons(log_in(*RIGHTS), started()) == []


UNDO = "Cancel the created jobs that have not started"


def buttons(client: Client, id: UUID) -> list[str]:
    return [str(button.label) for button in page(client, id)["post_buttons"]]


def test_an_undo_asks_and_says_how_many(anna: Client) -> None:
    archived(ONCE, "failed")
    nothing = started()
    bulk.WORK.do_chunk(nothing, max_rows=9)
    assert UNDO not in str(buttons(anna, nothing))  # nothing was made
    many(4)
    id = started()
    bulk.WORK.do_chunk(id, max_rows=3)
    bulk.stop(id)
    assert f"{UNDO} (3)…" in get(anna, page_of(MODEL, id)).text
    press(anna, act_of("undo", id))
    undo = BulkOperation.objects.latest("created_at")
    assert page(anna, undo.pk)["question"].text == "Cancel 3 jobs?"
    assert (undo.kind, undo.state, undo.total) == ("cancel", "draft", 3)
    made = QueuedJob.objects.filter(bulk_operation_id=id)
    assert made.count() == 3
    start(anna, undo.pk)
    bulk.WORK.do_chunk(undo.pk, max_rows=100)
    assert made.count() == 0
    said = [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]
    which = f"made by bulk operation: {id} · attempts: 0"
    assert said == [f"Started: cancel, 3 jobs. Filter: {which}."]
    assert UNDO not in str(buttons(anna, id))  # there is nothing more to undo


def test_without_its_job_an_operation_is_run_here_or_resumed(anna: Client) -> None:
    many(7)
    id = started()
    shown = get(anna, page_of(MODEL, id))
    assert "No living worker serves its queue, default." in shown.text
    assert shown.all("button", formaction=act_of("step", id))
    assert "7 jobs were changed." in press(anna, act_of("step", id))
    assert state(id) == "done"
    assert QueuedJob.objects.filter(bulk_operation_id=id).count() == 7

    many(2)
    id = started()
    operations.cancel([str(BulkOperation.objects.get(pk=id).job_id)])
    shown = get(anna, page_of(MODEL, id))
    assert "The job that did the work is gone." in shown.text
    assert shown.all("button", formaction=act_of("resume", id))
    press(anna, act_of("resume", id))
    job = BulkOperation.objects.get(pk=id).job_id
    assert QueuedJob.objects.filter(pk=job).exists()
    bulk.WORK.fail(id, "ValueError: <b>no luck</b>")
    shown = get(anna, page_of(MODEL, id))
    assert "ValueError: <b>no luck</b>" in shown.text
    assert shown.all("button", formaction=act_of("resume", id))


def test_an_operation_that_a_command_runs_shows_when_it_last_progressed(
    anna: Client,
) -> None:
    id = started(here=True)
    for quiet, said in (
        (None, "A command runs this operation and has made no progress yet."),
        (timedelta(seconds=3), "A command runs this operation."),
        (timedelta(hours=2), "there has been no progress for 2 h"),
    ):
        moment = quiet and timezone.now() - quiet
        BulkOperation.objects.update(state="running", progress_at=moment)
        warning = page(anna, id)["progress"].warning
        assert said in warning
        assert "is gone. Resume" not in warning
        assert "Resume" in buttons(anna, id)


def test_an_operation_that_stopped_at_its_number_says_so(anna: Client) -> None:
    many(3)
    id = started()
    BulkOperation.objects.update(confirmed=2)
    bulk.WORK.do_chunk(id, max_rows=100)
    bulk.WORK.do_chunk(id, max_rows=100)
    shown = get(anna, page_of(MODEL, id))
    assert "more jobs match now than you confirmed" in shown.text
    assert "not confirmed: they joined later 1+" in shown.text
    assert (state(id), BulkOperation.objects.get().changed) == ("stopped", 2)


# From the lists of jobs.


def test_a_page_of_the_admin_drafts_by_its_selection(
    anna: Client, log_in: LogIn
) -> None:
    group = uuid4()
    archived(status="failed", fingerprint=group)
    many(2)
    selection = Selection(Table.ARCHIVED, (Term("group", group),))
    response = draft(request_of(anna, data={}), "replay", selection)
    row = BulkOperation.objects.get()
    assert (row.total, row.created_by, row.state) == (1, "anna", "draft")
    assert response["Location"] == page_of(MODEL, row.pk)
    # A filter that was not understood drafts nothing,
    request = request_of(anna, data={})
    response = draft(request, "replay", FAILED.none(), back="/there/")
    assert response["Location"] == "/there/"
    (message,) = get_messages(request)
    assert "a filter is invalid" in str(message)
    # and neither do a link and whoever has one of two rights.
    for request in (
        request_of(anna),
        request_of(log_in("start_bulkoperation", name="one"), data={}),
        request_of(log_in("replay_archivedjob", name="two"), data={}),
    ):
        with pytest.raises(PermissionDenied):
            draft(request, "replay", FAILED)
    assert BulkOperation.objects.count() == 1


def choose_all(client: Client, model: str, verb: str, **filters: Any) -> Any:
    """Choose a verb for all that match these filters: what is answered."""
    some = ArchivedJob if model == "archivedjob" else QueuedJob
    first = some.objects.values_list("pk", flat=True)[0]
    chosen = {"select_across": "1", "_selected_action": [str(first)]}
    data = {"action": verb, "index": 0, **chosen}
    return answer(client, list_of(model), data, **filters)


@pytest.fixture
def _three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action_admin, "FEW", 2)
    monkeypatch.setattr(action_admin.ActionAdmin, "most_selected", 5)


@pytest.mark.usefixtures("_three")
def test_all_that_match_the_filter_become_a_draft(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(2)
    few = choose_all(anna, "archivedjob", "replay", status="failed")
    assert few.context_data["question"].text == "Replay 2 jobs?"
    many(1)
    many(3, "cancelled")
    # Nothing is selected by a filter that is not understood.
    choose_all(anna, "archivedjob", "replay", finished_at__range__gte_0="soon")
    assert (BulkOperation.objects.count(), QueuedJob.objects.count()) == (0, 0)
    choose_all(anna, "archivedjob", "replay", status="failed")
    choose_all(anna, "archivedjob", "prune", status="failed")
    queued(), queued(), queued()
    for verb in ("cancel", "run_now", "reschedule"):
        choose_all(anna, "queuedjob", verb, q=f"type:{ADD}")
    made = BulkOperation.objects.order_by("created_at")
    assert [(row.kind, row.state, row.total) for row in made] == [
        (kind, "draft", 3)
        for kind in ("replay", "prune", "cancel", "run_now", "reschedule")
    ]
    selections = [bulk.get(row.pk).selection for row in made]
    assert selections == [FAILED, FAILED, WAITING, WAITING, WAITING]
    assert QueuedJob.objects.count() == 3
    assert page(anna, made[1].pk)["form"]["typed"].help_text == "Type 3 to confirm."
    # They are more than those that were searched, also where the list shows no more
    # than are done at once.
    monkeypatch.setattr(JobChangeList, "window", 1)
    choose_all(anna, "archivedjob", "replay", queue="default")
    assert BulkOperation.objects.latest("created_at").total == 6


@pytest.mark.usefixtures("_three")
def test_all_that_match_need_the_right_to_start_bulk_operations(
    anna: Client, log_in: LogIn
) -> None:
    many(6)
    client = log_in(*RIGHTS, "replay_archivedjob")
    first = ArchivedJob.objects.values_list("pk", flat=True)[0]
    text = select(client, "archivedjob", "replay", first, select_across="1").text
    assert "At most 5 can be selected at once." in text
    assert BulkOperation.objects.count() == 0
    assert "at most 5 at once" in text
    assert "at most 5 at once" not in get(anna, list_of("archivedjob")).text


def test_the_offer_to_select_all_names_only_a_number_of_all(
    anna: Client, log_in: LogIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offer(client: Client, address: str = list_of("archivedjob"), **q: str) -> str:
        text = get(client, address, **q).text
        return "".join(re.findall(r"(Select all .*?) Clear selection", text))

    monkeypatch.setattr(ArchivedJobAdmin, "list_per_page", 5)
    many(12)
    client = log_in(*RIGHTS, "replay_archivedjob")
    assert offer(anna, status="failed") == "Select all 12"
    assert offer(client, queue="default") == "Select all 12"
    monkeypatch.setattr(JobChangeList, "window", 11)
    assert offer(anna, status="failed") == "Select all 12"
    assert offer(anna, queue="default") == "Select all that match"
    # What was not counted is not offered to those who do a few.
    assert offer(client, queue="default") == ""
    links = get(anna, list_of("archivedjob"), queue="default").links
    (since,) = {link for link in links if "since=" in link}
    assert offer(anna, list_of("archivedjob") + since) == "Select all that match"
    monkeypatch.setattr(change_list, "count", partial(counts.count, cap=6))
    assert offer(anna, status="failed") == "Select all that match"


def test_a_few_jobs_are_pruned_from_the_list(anna: Client, log_in: LogIn) -> None:
    gone, kept = archived(status="failed"), archived()
    asked = question(anna, "archivedjob", "prune", gone)
    assert "Delete 1 job?" in asked
    assert "cannot be restored" in asked
    client = log_in("view_archivedjob", "replay_archivedjob")
    assert "Delete selected" not in get(client, list_of("archivedjob")).text
    data = {"keys": str(gone), "confirmed": "1"}
    assert client.post(verb_of("archivedjob", "prune"), data).status_code == 403
    assert act(anna, "archivedjob", "prune", gone) == "1 job was deleted."
    assert [job.pk for job in ArchivedJob.objects.all()] == [kept]
    assert LogEntry.objects.get().get_change_message() == "Deleted."
