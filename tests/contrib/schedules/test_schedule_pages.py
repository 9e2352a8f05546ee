"""Schedules: the list, the page, and what operators do with them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_jobqueue.contrib.schedules import operations
from django_jobqueue.contrib.schedules.admin import schedule_page
from django_jobqueue.contrib.schedules.admin.schedule_cells import moments_of
from django_jobqueue.contrib.schedules.admin.schedule_forms import typed_moments
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.domain.registry import BULK
from django_jobqueue.domain.schedule_rules import cron
from django_jobqueue.domain.schedules import Period
from django_jobqueue.models import QueuedJob
from django_jobqueue.text import timezones
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of, select
from tests.admin.scene import ADD, LEAK, MINUTE, SECRET, Scene
from tests.admin.units import (
    act,
    answer,
    buttons,
    context,
    errors_of,
    press,
    question,
    shown,
)

CODE, OVERRIDDEN, MADE, PAUSED, GONE = (
    *("nightly-report", "prices", "clean-up", "newsletter", "old"),
)
NEW = {"rule": "@daily", "new_data": '{"a": 5}', "missed": "once", "overlap": "allow"}


def edit_of(name: str) -> str:
    return reverse("admin:jobqueue_schedules_schedule_edit", args=[quote(name)])


def new_of(job_type: str) -> str:
    return f"{reverse('admin:jobqueue_schedules_schedule_new')}?job_type={job_type}"


def saved(name: str) -> Any:
    return Schedule.objects.get(pk=name)


def values(name: str) -> dict[str, Any]:
    return Schedule.objects.filter(pk=name).values().get()


def entries() -> list[str]:
    return [e.get_change_message() for e in LogEntry.objects.order_by("pk")]


def form_of(client: Client, address: str) -> dict[str, Any]:
    """The form at this address as a browser would send it unchanged."""
    found: dict[str, Any] = {}
    form = answer(client, address.partition("?")[0], **_query(address))
    for bound in form.context_data["form"]:
        value = bound.field.widget.format_value(bound.value())
        value = value[0] if isinstance(value, list) and value else value
        found[bound.name] = value or ""
    return found


def _query(address: str) -> dict[str, str]:
    name = address.partition("?job_type=")[2]
    return {"job_type": name} if name else {}


def refused(client: Client, address: str, **said: str) -> str:
    sent = {**form_of(client, address), **said}
    return errors_of(answer(client, address.partition("?")[0], sent, **_query(address)))


# The list and the page.


def test_the_list_shows_what_each_does_and_what_is_wrong(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, list_of("schedule"))
    for said in (
        "nightly-report active",
        "30 2 * * * Europe/Berlin",
        "every 5 minutes UTC overridden",
        "carl: moved",
        "no code declares it any more",
        "cannot read the minute",
        "no living worker claims its jobs",
    ):
        assert said in page.text
    assert page_of("queuedjob", scene.queued["ready"]) in page.links
    Firing.objects.filter(job_id=scene.queued["ready"]).delete()
    page = get(anna, list_of("schedule"))
    assert page_of("archivedjob", scene.archived["failed"]) in page.links
    assert "fired late" in page.text


def test_filters_narrow_the_list(anna: Client, scene: Scene) -> None:
    for query, names in [
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
    ]:
        assert shown(anna, "schedule", **query) == names, query


def test_the_page_shows_the_next_moments_and_the_history(
    anna: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
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
    # Parts of a long history; nonsense shows the newest.
    monkeypatch.setattr(schedule_page, "MOST_FIRINGS", 4)
    newest = get(anna, page_of("schedule", CODE))
    assert "12 missed" not in newest.text
    (older,) = (link for link in newest.links if link.startswith("?before="))
    page = get(anna, page_of("schedule", CODE) + older.partition("#")[0])
    assert "12 missed" in page.text
    assert "?#jq-firings" in page.links
    for before in ("yesterday", "2026-01-01", "9" * 30, "\x00"):
        shown = answer(anna, page_of("schedule", CODE), before=before)
        assert shown.context_data["page"].firings.is_newest, before


def test_data_are_masked_and_a_job_type_lists_its_schedules(
    anna: Client, viewer: Client, scene: Scene
) -> None:
    page = get(anna, page_of("schedule", OVERRIDDEN))
    assert SECRET not in page.html
    assert '"token"' in page.text
    assert '"a": number' in get(viewer, page_of("schedule", MADE)).text
    links = get(anna, page_of("jobtype", LEAK)).links
    assert page_of("schedule", OVERRIDDEN) in links
    assert page_of("schedule", CODE) not in links
    assert new_of(LEAK) in links
    assert new_of(LEAK) not in get(viewer, page_of("jobtype", LEAK)).links


def test_a_job_says_which_schedule_made_it_and_for_which_moment(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    about = {"schedule": CODE, "fires_at": "2026-03-29T01:00:00+00:00"}
    client = log_in("view_queuedjob", "view_archivedjob")
    for model, make in (("queuedjob", rows.queued), ("archivedjob", rows.archived)):
        address = page_of(model, make(metadata=about))
        page = get(anna, address)
        assert page_of("schedule", CODE) in page.links
        assert "2026-03-29 01:00:00 UTC" in page.text
        page = get(client, address)
        assert page_of("schedule", CODE) not in page.links
        assert CODE in page.text
    # A moment that is none is left out; metadata of a project's own are no schedule.
    for moment in ("soon", 7, None, "99999-01-01"):
        job = rows.queued(metadata={"schedule": CODE, "fires_at": moment})
        summary = str(context(anna, "queuedjob", job)["page"].summary)
        assert page_of("schedule", CODE) in summary, moment
    for about in ({"schedule": SECRET}, {"schedule": {"a": 1}}, {"fires_at": "now"}):
        job = rows.queued(metadata=about)
        assert SECRET not in str(context(client, "queuedjob", job)["page"].summary)


# Moments.


def test_moments_are_marked_where_the_clocks_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spring = datetime(2026, 3, 27, tzinfo=UTC)
    autumn = datetime(2026, 10, 30, 12, tzinfo=UTC)
    forward = "clocks go forward: +01:00 → +02:00"
    back = "clocks go back: -04:00 → -05:00"
    for zone, now, marks in (
        ("Europe/Berlin", spring, {2: forward}),
        ("America/New_York", autumn, {1: back}),
        ("UTC", spring, {}),
    ):
        monkeypatch.setattr(timezones, "now", lambda now=now: now)
        found = moments_of(cron("30 2 * * *", tz=zone), zone, Period())
        assert len(found.next) == 10
        assert {n: m.change for n, m in enumerate(found.next) if m.change} == marks
        for moment in found.next:
            assert "02:30:00" in moment.local or moment.change


def test_moments_end_where_the_schedule_does_and_begin_where_it_is_due() -> None:
    hourly = cron("0 * * * *", tz="UTC")
    ends = Period(ends_at=timezone.now() + timedelta(hours=3))
    found = moments_of(hourly, "UTC", ends)
    assert (len(found.next), found.is_end) == (3, True)
    due = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    found = moments_of(hourly, "UTC", Period(), due)
    assert re.sub("<[^>]*>", "", found.next[0].utc) == "Fri 2026-01-02 03:04:00"
    assert found.next[0].away.endswith("ago")


def test_a_rule_is_previewed_while_it_is_typed(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    code = saved(CODE)
    for typed, row, said in (
        ({"rule": "30 2 * * *", "time_zone": "Asia/Tokyo"}, None, "17:30:00"),
        ({"rule": "30 2 * *"}, None, "has 4 fields"),
        ({"rule": "every moon"}, None, "write for example"),
        ({"rule": "@daily", "time_zone": "Europe/Berlim"}, None, "Europe/Berlin"),
        ({"rule": "@daily", "starts": "2099-12-31T00:00"}, None, "2099-12-31"),
        ({"rule": "@daily", "ends": "2001-01-01T00:00"}, None, "is_end=True"),
        ({"rule": "@daily", "starts": "soon"}, None, "Enter a valid date/time."),
        ({"rule": "x" * 300}, None, "This is invalid"),
        ({}, code, "02:30:00 CE"),
        ({"rule": "45 1 * * *"}, code, "01:45:00 CE"),
        ({}, None, "next=()"),
    ):
        assert said in str(typed_moments(typed, row)), typed
    preview = reverse("admin:jobqueue_schedules_schedule_preview")
    assert "From now" in get(anna, preview, rule="every 5 minutes").text
    ended = get(anna, preview, rule="@daily", ends="2001-01-01T00:00").text
    assert "no longer fires" in ended
    # The page of a schedule is on its clock.
    Schedule.objects.filter(pk=CODE).update(time_zone_override="Asia/Tokyo")
    assert "02:30:00 JST" in get(anna, page_of("schedule", CODE)).text
    # Only who may make or change schedules previews.
    assert log_in("view_schedule").get(preview).status_code == 403
    get(log_in("view_schedule", "add_schedule", name="carl"), preview)


# Buttons.


def test_schedules_are_paused_with_a_reason_and_resumed(
    anna: Client, scene: Scene
) -> None:
    select(anna, "schedule", "pause", CODE, MADE)
    address = reverse("admin:jobqueue_schedules_schedule_pause")
    sent = {"keys": CODE, "confirmed": "1", "reason": ""}
    assert "required" in errors_of(answer(anna, address, sent))
    told = act(anna, "schedule", "pause", CODE, PAUSED, reason="disk full")
    assert told == "Paused: newsletter, nightly-report."
    row = saved(CODE)
    assert (row.paused, row.paused_by, row.paused_reason) == (True, "anna", "disk full")
    assert saved(PAUSED).paused_by == "anna"  # it was carl, without this reason
    assert entries() == ["Paused: disk full"] * 2
    asked = question(anna, "schedule", "resume", CODE)
    assert "nightly-report was paused by anna: disk full" in asked
    act(anna, "schedule", "resume", CODE)
    assert not saved(CODE).paused
    assert entries()[2:] == ["Resumed."]


def test_schedules_are_run_now_except_those_that_overlap(
    anna: Client, scene: Scene
) -> None:
    Schedule.objects.filter(pk=MADE).update(overlap="skip")
    told = act(anna, "schedule", "run", MADE)
    job = QueuedJob.objects.get(enqueued_by="anna")
    assert (job.data, job.priority) == ({"a": 1, "b": 2}, 3)
    assert page_of("queuedjob", job.pk) in told
    firing = Firing.objects.get(schedule=MADE)
    assert (firing.outcome, firing.by, firing.job_id) == ("manual", "anna", job.pk)
    assert entries() == ["Run now."]
    told = act(anna, "schedule", "run", MADE, CODE)
    why = "Not run: clean-up skips overlaps, and a job of it is not finished."
    assert why in told
    assert Firing.objects.filter(outcome="manual", by="anna").count() == 2


def test_only_what_no_code_declares_is_deleted(anna: Client, scene: Scene) -> None:
    rows.fired(MADE, MINUTE, None, outcome="skipped")
    assert "is declared by the code" in act(anna, "schedule", "remove", MADE, CODE)
    assert Schedule.objects.filter(pk__in=[MADE, CODE]).count() == 2
    assert entries() == []
    there = page_of("schedule", MADE)
    told = act(anna, "schedule", "remove", MADE, next=there)
    assert told == "Deleted: clean-up."
    assert anna.get(there).headers["Location"] == list_of("schedule")
    assert not Firing.objects.filter(schedule=MADE).exists()
    act(anna, "schedule", "remove", GONE)
    assert not Schedule.objects.filter(pk=GONE).exists()
    assert entries() == ["Deleted.", "Deleted."]


def test_buttons_are_those_that_apply(anna: Client, scene: Scene) -> None:
    for name, more in (
        (CODE, {"pause"}),
        (OVERRIDDEN, {"pause", "reset"}),
        (PAUSED, {"resume"}),
        (MADE, {"pause", "remove"}),
        (GONE, {"pause", "remove"}),
    ):
        assert buttons(anna, "schedule", name) == {"run", "edit", *more}, name


# Forms.


def test_what_the_code_says_is_overridden_field_by_field_and_cleared(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, edit_of(CODE))
    assert "Empty: the code's value (30 2 * * *)." in page.text
    said = {"rule": "every 10 minutes", "time_zone": "", "new_data": ""}
    assert press(anna, edit_of(CODE), **said) == "The schedule was saved."
    row = saved(CODE)
    assert (row.rule, row.rule_override) == ("cron 30 2 * * *", "every 600")
    assert (row.time_zone_override, row.data_override) == (None, None)
    assert entries() == ["Changed Rule: – → every 10 minutes."]
    said = {"rule": "", "time_zone": "Asia/Tokyo", "new_data": '{"a": 9}'}
    press(anna, edit_of(CODE), **said)
    row = saved(CODE)
    assert (row.rule_override, row.time_zone_override) == (None, "Asia/Tokyo")
    assert row.data_override == {"a": 9}
    assert entries()[1] == (
        "Changed Rule: every 10 minutes → –, Time zone: – → Asia/Tokyo and "
        "Edited the data: a."
    )
    # A save that changes nothing writes nothing.
    unchanged = form_of(anna, edit_of(OVERRIDDEN))
    assert unchanged["rule"] == "every 5 minutes"
    assert press(anna, edit_of(OVERRIDDEN), **unchanged) == "Nothing was changed."
    assert len(entries()) == 2
    act(anna, "schedule", "reset", OVERRIDDEN, MADE)
    assert saved(OVERRIDDEN).rule_override is None
    assert entries()[2:] == ["Reset to code."]


def test_what_cannot_be_is_refused_at_its_field(anna: Client, scene: Scene) -> None:
    before = [values(name) for name in (CODE, MADE)]
    for field, value, why in (
        ("rule", "30 2 * *", "has 4 fields"),
        ("rule", "every 0 minutes", "at least one"),
        ("time_zone", "Europe/Berlim", "Europe/Berlin"),
        ("new_data", "{", "This is not JSON"),
        ("new_data", "[1]", "The data of a job is an object"),
        ("new_data", '{"b": 1}', "'a'"),
    ):
        for name in (CODE, MADE):
            errors = refused(anna, edit_of(name), **{field: value})
            assert errors.startswith(f"{field}: "), errors
            assert why in errors
    assert [values(name) for name in (CODE, MADE)] == before
    assert entries() == []


def test_secrets_stay_locked_while_data_are_edited(anna: Client, scene: Scene) -> None:
    Schedule.objects.filter(pk=OVERRIDDEN).update(
        data_override={"token": SECRET}, data={"token": "older"}
    )
    page = get(anna, edit_of(OVERRIDDEN))
    assert SECRET not in page.html
    lock = page.html.partition("&quot;token&quot;: &quot;")[2].partition("&quot;")[0]
    text = json.dumps({"token": lock})
    said = {"rule": "every 6 minutes", "time_zone": "", "new_data": text}
    press(anna, edit_of(OVERRIDDEN), **said)
    row = saved(OVERRIDDEN)
    assert (row.rule_override, row.data_override) == ("every 360", {"token": SECRET})
    assert SECRET not in " ".join(entries())


def test_who_may_not_see_data_changes_the_rule_and_no_data(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in("view_schedule", "change_schedule")
    for name in (CODE, MADE):
        before = saved(name).data_in_force
        said = form_of(client, edit_of(name))
        assert "new_data" not in said
        said |= {"rule": "every 9 minutes", "new_data": '{"a": 66}'}
        press(client, edit_of(name), **said)
        row = saved(name)
        assert (row.rule_in_force, row.data_in_force) == ("every 540", before)
    assert get(client, edit_of(CODE)).all("textarea") == []


def test_a_schedule_is_made_edited_and_told(anna: Client, scene: Scene) -> None:
    page = get(anna, reverse("admin:jobqueue_schedules_schedule_new"))
    assert page.all("input", name="job_type")
    assert BULK not in page.html
    assert "There is no job type nosuch." in get(anna, new_of("nosuch")).text
    assert '"a": null' in get(anna, new_of(ADD)).text
    said = {
        **form_of(anna, new_of(ADD)),
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
    assert press(anna, new_of(ADD), **said) == "The schedule was made."
    row = saved("hourly-sum")
    made = (row.origin, row.rule, row.time_zone)
    assert made == ("admin", "every 3600", "Europe/Berlin")
    assert (row.data, row.options) == ({"a": 5}, {"queue": "mail", "priority": 9})
    assert (row.missed, row.missed_within) == ("all", timedelta(days=2))
    assert (row.overlap, row.jitter) == ("skip", timedelta(seconds=30))
    (entry,) = LogEntry.objects.all()
    assert (entry.action_flag, entry.object_id) == (ADDITION, "hourly-sum")
    said = {**form_of(anna, edit_of("hourly-sum")), "priority": "", "rule": "@daily"}
    press(anna, edit_of("hourly-sum"), **said)
    after = saved("hourly-sum")
    assert (after.rule, after.options) == ("cron 0 0 * * *", {"queue": "mail"})
    assert (after.data, after.jitter) == (row.data, row.jitter)
    assert entries()[1] == "Changed Rule: every 1 hour → @daily and Priority."


def test_one_that_cannot_be_is_not_made(anna: Client, scene: Scene) -> None:
    """A name is taken once, whoever declares it."""
    for more, why in (
        ({"name": CODE}, "There is a schedule 'nightly-report' already."),
        ({"name": "a b"}, "name"),
        ({"name": "late", "ends": "2001-01-01T00:00"}, "ends is in the past"),
    ):
        assert why in refused(anna, new_of(ADD), **NEW, **more)
    assert Schedule.objects.count() == len(scene.schedules)
    address = reverse("admin:jobqueue_schedules_schedule_new")
    gone = answer(anna, address, job_type="shop.removed")
    assert "form" not in gone.context_data


def test_options_that_the_form_does_not_have_stay_and_a_broken_rule_is_mended(
    anna: Client, scene: Scene
) -> None:
    operations.edit(MADE, options={"priority": 3, "tags": ["night"]})
    press(anna, edit_of(MADE), **{**form_of(anna, edit_of(MADE)), "priority": "4"})
    assert saved(MADE).options == {"priority": 4, "tags": ["night"]}
    assert saved(MADE).data == {"a": 1, "b": 2}
    said = form_of(anna, edit_of("broken"))
    assert said["rule"] == "cron 61 * * * *"
    press(anna, edit_of("broken"), **{**said, "rule": "@hourly"})
    assert saved("broken").rule == "cron 0 * * * *"
    # Without a script a button shows the next moments.
    for name in (CODE, MADE):
        before, said = values(name), form_of(anna, edit_of(name))
        said |= {"rule": "41 3 * * *", "preview": "1"}
        shown = answer(anna, edit_of(name), said).context_data
        assert "03:41:00" in str(shown["moments"])
        assert shown["form"]["rule"].value() == "41 3 * * *"
        assert values(name) == before
