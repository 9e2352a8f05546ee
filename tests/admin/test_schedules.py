"""Schedules: the list, the page, and what operators do with them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_jobqueue.admin.schedules.moments import moments_of
from django_jobqueue.admin.schedules.schedule_page import MOST_FIRINGS
from django_jobqueue.domain.due_firings import Period
from django_jobqueue.domain.registry import BULK
from django_jobqueue.domain.schedule_rules import cron
from django_jobqueue.models import Firing, JobType, QueuedJob, Schedule
from django_jobqueue.operations import schedules as operations
from django_jobqueue.text import timezones
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, confirm, get, list_of, page_of, post, select
from tests.admin.scene import ADD, LEAK, MINUTE, SECRET, Scene

CODE, OVERRIDDEN, MADE, PAUSED, GONE = (
    *("nightly-report", "prices", "clean-up", "newsletter", "old"),
)


def edit_of(name: str) -> str:
    """The address of the form of a schedule."""
    return reverse("admin:jobqueue_schedule_edit", args=[quote(name)])


def preview(client: Client, **typed: str) -> str:
    """What is shown of a rule that is typed."""
    return get(client, reverse("admin:jobqueue_schedule_preview"), **typed).text


def new_of(job_type: str) -> str:
    """The address of the form for a new schedule."""
    return f"{reverse('admin:jobqueue_schedule_new')}?job_type={job_type}"


def saved(name: str) -> Any:
    """The row of a schedule."""
    return Schedule.objects.get(pk=name)


def entries() -> list[str]:
    """The history, oldest first."""
    return [e.get_change_message() for e in LogEntry.objects.order_by("pk")]


def filled(page: Page) -> dict[str, Any]:
    """What the form of this page has at first, but its texts of several lines."""
    inputs = [one for one in page.all("input") if one.get("type") in ("text", "number")]
    return {str(one["name"]): one.get("value") or "" for one in inputs}


# The list.


def test_the_list_shows_what_each_does_and_what_is_wrong(
    anna: Client, scene: Scene
) -> None:
    text = get(anna, list_of("schedule")).text
    for said in (
        "nightly-report active",
        "30 2 * * * Europe/Berlin",
        "every 5 minutes UTC overridden",
        "carl: moved",
        "no code declares it any more",
        "cannot read the minute",
        "no living worker claims its jobs",
    ):
        assert said in text


def test_the_last_firing_leads_to_its_job_with_the_status_of_now(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, list_of("schedule"))
    assert page_of("queuedjob", scene.queued["ready"]) in page.links
    Firing.objects.filter(job_id=scene.queued["ready"]).delete()
    page = get(anna, list_of("schedule"))
    assert page_of("archivedjob", scene.archived["failed"]) in page.links
    assert "fired late" in page.text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"state": "paused"}, [PAUSED]),
        ({"state": "gone"}, [GONE]),
        ({"state": "broken"}, ["broken"]),
        ({"state": "ended"}, ["advent"]),
        ({"state": "active"}, [MADE, CODE, OVERRIDDEN]),
        ({"state": "overdue"}, []),
        ({"state": "failed"}, [CODE]),
        ({"state": "unserved"}, [OVERRIDDEN]),
        ({"origin": "admin"}, ["advent", "broken", MADE]),
        ({"job_type": LEAK}, [OVERRIDDEN]),
        ({"state": "xyzzy"}, []),
    ],
)
def test_filters_narrow_the_list(
    anna: Client, scene: Scene, query: dict[str, str], names: list[str]
) -> None:
    assert get(anna, list_of("schedule"), **query).rows == names


# The page.


def test_the_page_shows_the_next_moments_and_the_history(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, page_of("schedule", CODE))
    assert page.text.count("02:30:00 CE") == 11  # one in the head, ten in the table
    for said in ("fired late", "run by hand", "carl", "skipped", "12 missed", "pruned"):
        assert said in page.text
    for link in (
        page_of("queuedjob", scene.queued["ready"]),
        page_of("archivedjob", scene.archived["failed"]),
        page_of("jobtype", ADD),
    ):
        assert link in page.links


def test_the_history_is_paged(anna: Client, scene: Scene) -> None:
    for number in range(MOST_FIRINGS):
        rows.fired(MADE, (number + 1) * MINUTE, None, outcome="skipped")
    rows.fired(MADE, timedelta(days=2), None, outcome="missed", number=7)
    newest = get(anna, page_of("schedule", MADE))
    assert "7 missed" not in newest.text
    (older,) = (link for link in newest.links if link.startswith("?before="))
    page = get(anna, page_of("schedule", MADE) + older.partition("#")[0])
    assert "7 missed" in page.text
    assert "?#jq-firings" in page.links


@pytest.mark.parametrize("before", ["yesterday", "2026-01-01", "9" * 30, "\x00"])
def test_nonsense_shows_the_newest_firings(
    anna: Client, scene: Scene, before: str
) -> None:
    assert "run by hand" in get(anna, page_of("schedule", CODE), before=before).text


def test_data_are_masked_and_hidden_from_who_may_not_see_them(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    page = get(anna, page_of("schedule", OVERRIDDEN))
    assert SECRET not in page.html
    assert '"token"' in page.text
    page = get(log_in("view_schedule"), page_of("schedule", MADE))
    assert '"a": number' in page.text


def test_a_job_type_lists_its_schedules_and_offers_a_new_one(
    anna: Client, viewer: Client, scene: Scene
) -> None:
    page = get(anna, page_of("jobtype", LEAK))
    assert page_of("schedule", OVERRIDDEN) in page.links
    assert page_of("schedule", CODE) not in page.links
    assert new_of(LEAK) in page.links
    assert new_of(LEAK) not in get(viewer, page_of("jobtype", LEAK)).links


@pytest.mark.parametrize("model", ["queuedjob", "archivedjob"])
def test_a_job_says_which_schedule_made_it_and_for_which_moment(
    anna: Client, log_in: LogIn, scene: Scene, model: str
) -> None:
    about = {"schedule": CODE, "fires_at": "2026-03-29T01:00:00+00:00"}
    make = rows.queued if model == "queuedjob" else rows.archived
    id = make(metadata=about)
    page = get(anna, page_of(model, id))
    assert page_of("schedule", CODE) in page.links
    assert "2026-03-29 01:00:00 UTC" in page.text
    page = get(log_in(f"view_{model}"), page_of(model, id))
    assert page_of("schedule", CODE) not in page.links
    assert CODE in page.text


@pytest.mark.parametrize(
    "about", [{"schedule": SECRET}, {"schedule": {"a": 1}}, {"fires_at": "now"}]
)
def test_metadata_of_a_projects_own_are_no_schedule(
    log_in: LogIn, scene: Scene, about: dict[str, Any]
) -> None:
    page = get(
        log_in("view_queuedjob"), page_of("queuedjob", rows.queued(metadata=about))
    )
    assert SECRET not in page.html


def test_a_moment_that_is_no_moment_is_left_out(anna: Client, scene: Scene) -> None:
    for moment in ("soon", 7, None, "99999-01-01"):
        id = rows.queued(metadata={"schedule": CODE, "fires_at": moment})
        assert page_of("schedule", CODE) in get(anna, page_of("queuedjob", id)).links


# Moments.


@pytest.mark.parametrize(
    ("zone", "now", "marks"),
    [
        (
            "Europe/Berlin",
            datetime(2026, 3, 27, tzinfo=UTC),
            {2: "clocks go forward: +01:00 → +02:00"},
        ),
        (
            "America/New_York",
            datetime(2026, 10, 30, 12, tzinfo=UTC),
            {1: "clocks go back: -04:00 → -05:00"},
        ),
        ("UTC", datetime(2026, 3, 27, tzinfo=UTC), {}),
    ],
)
def test_moments_are_marked_where_the_clocks_change(
    monkeypatch: pytest.MonkeyPatch, zone: str, now: datetime, marks: dict[int, str]
) -> None:
    monkeypatch.setattr(timezones, "now", lambda: now)
    rule = cron("30 2 * * *", tz=zone)
    found = moments_of(rule, zone, Period())
    assert len(found.next) == 10
    assert {n: m.change for n, m in enumerate(found.next) if m.change} == marks
    for moment in found.next:
        assert "02:30:00" in moment.local or moment.change


def test_moments_end_where_the_schedule_does(scene: Scene) -> None:
    now = timezone.now()
    period = Period(ends_at=now + timedelta(hours=3))
    found = moments_of(cron("0 * * * *", tz="UTC"), "UTC", period)
    assert (len(found.next), found.is_end) == (3, True)


def test_an_overdue_moment_is_the_first(anna: Client, scene: Scene) -> None:
    due = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    found = moments_of(cron("0 * * * *", tz="UTC"), "UTC", Period(), due)
    assert re.sub("<[^>]*>", "", found.next[0].utc) == "Fri 2026-01-02 03:04:00"
    assert found.next[0].away.endswith("ago")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"rule": "30 2 * * *", "time_zone": "Asia/Tokyo"}, "17:30:00"),
        ({"rule": "every 5 minutes"}, "From now"),
        ({"rule": "30 2 * *"}, "has 4 fields"),
        ({"rule": "every moon"}, "write for example"),
        ({"rule": "@daily", "time_zone": "Europe/Berlim"}, "Europe/Berlin"),
        ({"rule": "@daily", "starts": "2099-12-31T00:00"}, "2099-12-31"),
        ({"rule": "@daily", "ends": "2001-01-01T00:00"}, "does not fire any more"),
        ({"rule": "@daily", "starts": "soon"}, "Enter a valid date/time."),
        ({"rule": "x" * 300}, "not understood"),
        ({"schedule": CODE}, "02:30:00 CE"),
        ({"schedule": CODE, "rule": "45 1 * * *"}, "01:45:00 CE"),
        ({}, "Next moments"),
    ],
)
def test_a_rule_is_previewed_while_it_is_typed(
    anna: Client, scene: Scene, typed: dict[str, str], said: str
) -> None:
    assert said in preview(anna, **typed)


def test_only_who_may_make_or_change_schedules_previews(log_in: LogIn) -> None:
    address = reverse("admin:jobqueue_schedule_preview")
    get(log_in("view_schedule"), address, code=403)
    get(log_in("view_schedule", "add_schedule", name="carl"), address)


# Buttons.


def test_schedules_are_paused_with_a_reason_and_resumed(
    anna: Client, scene: Scene
) -> None:
    select(anna, "schedule", "pause", CODE, MADE)
    page = confirm(anna, "schedule", "pause", CODE, PAUSED, reason="disk full")
    assert "Paused: newsletter, nightly-report." in page.text
    row = saved(CODE)
    assert (row.paused, row.paused_by, row.paused_reason) == (True, "anna", "disk full")
    assert saved(PAUSED).paused_by == "anna"  # it was carl, without this reason
    assert entries() == ["Paused: disk full"] * 2
    page = select(anna, "schedule", "resume", CODE)
    assert "nightly-report was paused by anna: disk full" in page.text
    confirm(anna, "schedule", "resume", CODE)
    assert not saved(CODE).paused
    assert entries()[2:] == ["Resumed."]


def test_a_pause_needs_a_reason(anna: Client, scene: Scene) -> None:
    confirm(anna, "schedule", "pause", CODE, reason="")
    assert not saved(CODE).paused


def test_a_schedule_is_run_now(anna: Client, scene: Scene) -> None:
    page = confirm(anna, "schedule", "run", MADE)
    job = QueuedJob.objects.get(enqueued_by="anna")
    assert (job.data, job.priority) == ({"a": 1, "b": 2}, 3)
    assert page_of("queuedjob", job.pk) in page.links
    firing = Firing.objects.get(schedule=MADE)
    assert (firing.outcome, firing.by, firing.job_id) == ("manual", "anna", job.pk)
    assert entries() == ["Run now."]


def test_one_that_skips_overlaps_is_left_out_and_the_others_run(
    anna: Client, scene: Scene
) -> None:
    Schedule.objects.filter(pk=MADE).update(overlap="skip")
    confirm(anna, "schedule", "run", MADE)
    page = confirm(anna, "schedule", "run", MADE, CODE)
    assert (
        "Not run: clean-up skips overlaps, and a job of it is not finished."
        in page.text
    )
    assert Firing.objects.filter(outcome="manual", by="anna").count() == 2


def test_overrides_are_cleared(anna: Client, scene: Scene) -> None:
    page = get(anna, page_of("schedule", OVERRIDDEN))
    assert "As the code says" in page.text
    assert "As the code says" not in get(anna, page_of("schedule", CODE)).text
    confirm(anna, "schedule", "reset", OVERRIDDEN, CODE)
    assert saved(OVERRIDDEN).rule_override is None
    assert entries() == ["As the code says again."]


def test_only_what_no_code_declares_is_deleted(anna: Client, scene: Scene) -> None:
    rows.fired(MADE, MINUTE, None, outcome="skipped")
    page = confirm(anna, "schedule", "remove", MADE, CODE)
    assert "is declared by the code" in page.text
    assert Schedule.objects.filter(pk__in=[MADE, CODE]).count() == 2
    assert entries() == []
    there = page_of("schedule", MADE)
    page = confirm(anna, "schedule", "remove", MADE, next=there)
    assert "Deleted: clean-up." in page.text
    assert len(page.rows) == 6  # the list, as the page is gone
    assert not Firing.objects.filter(schedule=MADE).exists()
    confirm(anna, "schedule", "remove", GONE)
    assert not Schedule.objects.filter(pk=GONE).exists()
    assert entries() == ["Deleted.", "Deleted."]


def test_buttons_are_those_that_apply(anna: Client, scene: Scene) -> None:
    def offered(name: str) -> set[str]:
        links = get(anna, page_of("schedule", name)).links
        parts = [link.partition("?")[0].rstrip("/").split("/")[-1] for link in links]
        return {*parts} & {"run", "pause", "resume", "edit", "reset", "remove"}

    assert offered(CODE) == {"run", "pause", "edit"}
    assert offered(OVERRIDDEN) == {"run", "pause", "edit", "reset"}
    assert offered(PAUSED) == {"run", "resume", "edit"}
    assert offered(MADE) == {"run", "pause", "edit", "remove"}
    assert offered(GONE) == {"run", "pause", "edit", "remove"}


# Forms.


def test_what_the_code_says_is_overridden_field_by_field(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, edit_of(CODE))
    assert "Empty: as the code says (30 2 * * *)." in page.text
    said = {"rule": "every 10 minutes", "time_zone": "", "new_data": ""}
    page = post(anna, edit_of(CODE), said)
    assert "The schedule was saved." in page.text
    row = saved(CODE)
    assert (row.rule, row.rule_override) == ("cron 30 2 * * *", "every 600")
    assert (row.time_zone_override, row.data_override) == (None, None)
    assert entries() == ["Changed Rule: – → every 10 minutes."]
    said = {"rule": "", "time_zone": "Asia/Tokyo", "new_data": '{"a": 9}'}
    post(anna, edit_of(CODE), said)
    row = saved(CODE)
    assert (row.rule_override, row.time_zone_override) == (None, "Asia/Tokyo")
    assert row.data_override == {"a": 9}
    assert entries()[1] == (
        "Changed Rule: every 10 minutes → –, Time zone: – → Asia/Tokyo and "
        "Edited the data: a."
    )


def test_a_save_that_changes_nothing_writes_nothing(anna: Client, scene: Scene) -> None:
    said = {"rule": "every 5 minutes", "time_zone": "", "new_data": ""}
    page = post(anna, edit_of(OVERRIDDEN), said)
    assert "Nothing was changed." in page.text
    assert entries() == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"rule": "30 2 * *"}, "has 4 fields"),
        ({"rule": "every 0 minutes"}, "at least one"),
        ({"time_zone": "Europe/Berlim"}, "Europe/Berlin"),
        ({"new_data": "{"}, "This is not JSON"),
        ({"new_data": "[1]"}, "The data of a job are an object"),
        ({"new_data": '{"b": 1}'}, "'a'"),
    ],
)
@pytest.mark.parametrize("name", [CODE, MADE])
def test_what_cannot_be_is_refused_at_its_field(
    anna: Client, scene: Scene, name: str, said: dict[str, str], why: str
) -> None:
    before = Schedule.objects.filter(pk=name).values().get()
    page = post(anna, edit_of(name), {**form_of(anna, name), **said})
    assert why in page.text
    assert Schedule.objects.filter(pk=name).values().get() == before
    assert entries() == []


def form_of(client: Client, name: str) -> dict[str, Any]:
    """The form of a schedule as a browser would send it unchanged."""
    found = filled(get(client, edit_of(name)))
    if name == MADE:
        found |= {"missed": "once", "overlap": "allow", "queue": ""}
        found["new_data"] = '{\n  "a": 1,\n  "b": 2\n}'
    return found


def test_secrets_stay_locked_while_data_are_edited(anna: Client, scene: Scene) -> None:
    Schedule.objects.filter(pk=OVERRIDDEN).update(
        data_override={"token": SECRET}, data={"token": "older"}
    )
    page = get(anna, edit_of(OVERRIDDEN))
    assert SECRET not in page.html
    lock = page.html.partition("&quot;token&quot;: &quot;")[2].partition("&quot;")[0]
    text = json.dumps({"token": lock})
    said = {"rule": "every 6 minutes", "time_zone": "", "new_data": text}
    post(anna, edit_of(OVERRIDDEN), said)
    row = saved(OVERRIDDEN)
    assert (row.rule_override, row.data_override) == ("every 360", {"token": SECRET})
    assert SECRET not in " ".join(entries())


def test_who_may_not_see_data_changes_the_rule_and_no_data(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in("view_schedule", "change_schedule")
    for name in (CODE, MADE):
        before = saved(name).data_in_force
        page = get(client, edit_of(name))
        assert page.all("textarea") == []
        said = {**filled(page), "missed": "once", "overlap": "allow", "queue": ""}
        said |= {"rule": "every 9 minutes", "new_data": '{"a": 66}'}
        post(client, edit_of(name), said)
        assert (saved(name).rule_in_force, saved(name).data_in_force) == (
            "every 540",
            before,
        )


def test_a_schedule_is_made_edited_and_told(anna: Client, scene: Scene) -> None:
    page = get(anna, reverse("admin:jobqueue_schedule_new"))
    assert page.all("input", name="job_type")
    assert BULK not in page.html
    page = get(anna, new_of("nosuch"))
    assert "There is no job type nosuch." in page.text
    page = get(anna, new_of(ADD))
    assert '"a": null' in page.text
    said = {
        **filled(page),
        "name": "hourly-sum",
        "rule": "every 1 hour",
        "time_zone": "Europe/Berlin",
        "new_data": '{"a": 5}',
        "queue": "mail",
        "priority": "9",
        "missed": "all",
        "missed_within": "2 00:00:00",
        "overlap": "skip",
        "jitter": "30",
    }
    page = post(anna, new_of(ADD), said)
    assert "The schedule was made." in page.text
    row = saved("hourly-sum")
    assert (row.origin, row.rule, row.time_zone) == (
        "admin",
        "every 3600",
        "Europe/Berlin",
    )
    assert (row.data, row.options) == ({"a": 5}, {"queue": "mail", "priority": 9})
    assert (row.missed, row.missed_within) == ("all", timedelta(days=2))
    assert (row.overlap, row.jitter) == ("skip", timedelta(seconds=30))
    (entry,) = LogEntry.objects.all()
    assert (entry.action_flag, entry.object_id) == (ADDITION, "hourly-sum")
    page = get(anna, edit_of("hourly-sum"))
    said = {**said, **filled(page), "priority": "", "rule": "@daily"}
    post(anna, edit_of("hourly-sum"), said)
    after = saved("hourly-sum")
    assert (after.rule, after.options) == ("cron 0 0 * * *", {"queue": "mail"})
    assert (after.data, after.jitter) == (row.data, row.jitter)
    assert entries()[1] == "Changed Rule: every 1 hour → @daily and Priority."


def test_a_name_is_taken_once_whoever_declares_it(anna: Client, scene: Scene) -> None:
    said = {
        **filled(get(anna, new_of(ADD))),
        "name": CODE,
        "rule": "@daily",
        "new_data": '{"a": 5}',
        "missed": "once",
        "overlap": "allow",
        "queue": "",
    }
    page = post(anna, new_of(ADD), said)
    assert "There is a schedule 'nightly-report' already." in page.text
    page = post(anna, new_of(ADD), {**said, "name": "a b"})
    assert page.all("ul", **{"class": "errorlist"}) or "errornote" in page.html
    assert Schedule.objects.count() == len(scene.schedules)


def test_one_that_would_never_fire_is_not_made(anna: Client, scene: Scene) -> None:
    said = {
        **filled(get(anna, new_of(ADD))),
        "name": "late",
        "rule": "@daily",
        "new_data": '{"a": 5}',
        "missed": "once",
        "overlap": "allow",
        "queue": "",
        "ends": "2001-01-01T00:00",
    }
    page = post(anna, new_of(ADD), said)
    assert "ends is in the past" in page.text
    assert not Schedule.objects.filter(pk="late").exists()


def test_options_that_the_form_does_not_have_stay(anna: Client, scene: Scene) -> None:
    operations.edit(MADE, options={"priority": 3, "tags": ["night"]})
    said = {**form_of(anna, MADE), "priority": "4"}
    post(anna, edit_of(MADE), said)
    assert saved(MADE).options == {"priority": 4, "tags": ["night"]}
    assert saved(MADE).data == {"a": 1, "b": 2}


@pytest.mark.parametrize("name", [CODE, MADE])
def test_without_a_script_a_button_shows_the_next_moments(
    anna: Client, scene: Scene, name: str
) -> None:
    before = Schedule.objects.filter(pk=name).values().get()
    said = {**form_of(anna, name), "rule": "41 3 * * *", "preview": "1"}
    page = post(anna, edit_of(name), said)
    assert "03:41:00" in page.text
    assert page.all("input", name="rule")[0]["value"] == "41 3 * * *"
    assert Schedule.objects.filter(pk=name).values().get() == before


def test_a_schedule_whose_rule_cannot_be_read_is_mended(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, edit_of("broken"))
    assert page.all("input", name="rule")[0]["value"] == "cron 61 * * * *"
    said = {**form_of(anna, MADE), **filled(page), "rule": "@hourly"}
    post(anna, edit_of("broken"), said)
    assert saved("broken").rule == "cron 0 * * * *"


def test_a_job_type_that_is_gone_has_no_form_for_a_schedule(anna: Client) -> None:
    page = get(anna, new_of("shop.removed"))
    assert page.all("input", name="rule") == []
    assert JobType.objects.exists()


def test_moments_are_on_the_clock_of_the_schedule(anna: Client, scene: Scene) -> None:
    tokyo = {"time_zone_override": "Asia/Tokyo"}
    Schedule.objects.filter(pk=CODE).update(**tokyo)
    text = get(anna, page_of("schedule", CODE)).text
    assert "02:30:00 JST" in text
    now = timezone.now().astimezone(ZoneInfo("Asia/Tokyo"))
    assert f"{now:%Y-%m-}" in text
