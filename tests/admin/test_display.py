"""Times on the screen: how long ago, and by the clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import time_machine
from django.test import Client

from django_jobqueue.admin.parts import display
from django_jobqueue.models import FailureGroup
from tests.admin import scene as rows
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, Scene
from tests.admin.units import act
from tests.stats.rows import ago, rollup

NOW = datetime(2026, 3, 9, 14, 31, 7, tzinfo=UTC)


def read(at: datetime | None, *, clock_first: bool = False) -> str:
    return Page(str(display.moment(at, clock_first=clock_first))).text


def test_the_clock_stands_beside_it_and_first_where_a_day_lies_between() -> None:
    with time_machine.travel(NOW, tick=False):
        for away, text in (
            (timedelta(0), "0 s ago 14:31:07"),
            (timedelta(minutes=-12), "12 m ago 14:19:07"),
            (timedelta(hours=-20), "20 h 00 m ago 18:31:07"),
            (timedelta(hours=2), "in 2 h 00 m 16:31:07"),
            (timedelta(hours=-36), "2026-03-08 02:31:07 1 d 12 h ago"),
            (timedelta(days=3), "2026-03-12 14:31:07 in 3 d 0 h"),
        ):
            assert read(NOW + away) == text
        assert read(NOW, clock_first=True) == "2026-03-09 14:31:07 0 s ago"


def test_the_clock_is_that_of_the_time_zone_and_the_exact_time_names_it(
    settings: Any,
) -> None:
    settings.TIME_ZONE = "Asia/Kolkata"
    with time_machine.travel(NOW, tick=False):
        (time,) = Page(str(display.moment(NOW))).all("time")
        assert read(NOW) == "0 s ago 20:01:07"
    assert time["title"] == "2026-03-09 20:01:07 IST"
    assert time["datetime"] == "2026-03-09T14:31:07+00:00"


def test_in_a_list_of_a_range_of_time_the_clock_comes_first(
    anna: Client, db: None
) -> None:
    at = datetime.now(UTC) - timedelta(minutes=1)
    rows.archived(finished_at=at)
    rows.queued(run_after=at)
    clock, day = f"{at:%H:%M:%S}", f"{at:%Y-%m-%d}"
    for model, parameter in (
        ("archivedjob", "finished_at"),
        ("queuedjob", "run_after"),
    ):
        plain = get(anna, list_of(model)).text
        assert f"ago {clock}" in plain
        assert f"{day} {clock}" not in plain
        since = {f"{parameter}__range__gte_0": "2020-01-01"}
        narrowed = get(anna, list_of(model), **since)
        assert re.search(rf"{day} {clock} 1 m [\d s]*ago", narrowed.text), model


# Red is for what is wrong now, not for what was.


def is_settled(html: str) -> bool:
    return "jq-settled" in html


def test_failures_that_somebody_decided_about_are_past(
    anna: Client, scene: Scene
) -> None:
    for state, expected in (("open", False), ("resolved", True), ("ignored", True)):
        FailureGroup.objects.update(state=state, resolved_at=ago(minutes=-1))
        html = get(anna, page_of("failuregroup", scene.group)).html
        assert is_settled(html) is expected, state
    # So are failed attempts of a job that succeeded.
    for name, expected in (("succeeded", True), ("failed", False)):
        html = get(anna, page_of("archivedjob", scene.archived[name])).html
        assert is_settled(html) is expected, name


def test_a_failed_job_that_was_replayed_is_past(anna: Client, db: None) -> None:
    failed, other = (rows.archived(FAIL, "failed") for _ in range(2))
    assert not is_settled(get(anna, list_of("archivedjob")).html)
    act(anna, "archivedjob", "replay", failed)
    html = get(anna, list_of("archivedjob")).html
    pills = re.findall(r'<span class="jq-pill (jq-failed[^"]*)"', html)
    assert sorted(pills) == ["jq-failed", "jq-failed jq-settled"]


def test_what_failed_in_a_day_is_a_number_and_of_many_a_warning(
    anna: Client, db: None
) -> None:
    rollup(ago(hours=5), ADD, succeeded=97, failed=3)
    for html in (
        get(anna, list_of("jobtype"), q=ADD).html,
        get(anna, list_of("queue")).html,
    ):
        assert "3.0 % failed" in html
        assert not re.search(r"jq-(warned|failed)[^>]*>3.0 %", html)
    rollup(ago(hours=4), FAIL, succeeded=50, failed=50)
    html = get(anna, list_of("jobtype"), q=FAIL).html
    assert '<span class="jq-warned">50.0 % failed</span>' in html


def test_a_firing_that_was_missed_is_no_alarm(anna: Client, scene: Scene) -> None:
    name = rows.schedule("weekly")
    rows.fired(name, timedelta(days=2), None, outcome="missed")
    assert "jq-failed" not in get(anna, page_of("schedule", name)).html


def test_that_nobody_has_a_handler_is_an_alarm_where_jobs_are_ready(
    anna: Client, db: None
) -> None:
    rows.queued(FAIL)
    html = get(anna, list_of("jobtype"), q="tests.sample.").html
    nobody = "no handler in any live worker"
    assert html.count(f'jq-failed">{nobody}') == 1
    assert html.count(f'jq-warned">{nobody}') > 1
