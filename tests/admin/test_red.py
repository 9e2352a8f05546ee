"""Red is for what is wrong now, not for what was."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from django_jobqueue.models import FailureGroup
from tests.admin import scene as rows
from tests.admin.pages import confirm, get, list_of, page_of
from tests.admin.scene import ADD, Scene
from tests.stats.rows import ago, rollup


def is_settled(html: str) -> bool:
    """Whether what would be red is gray."""
    return "jq-settled" in html


@pytest.mark.parametrize(
    ("state", "expected"), [("open", False), ("resolved", True), ("ignored", True)]
)
def test_failures_that_somebody_decided_about_are_past(
    anna: Client, scene: Scene, state: str, expected: bool
) -> None:
    FailureGroup.objects.update(state=state, resolved_at=ago(minutes=-1))
    html = get(anna, page_of("failuregroup", scene.group)).html
    assert is_settled(html) is expected


def test_a_failed_job_that_was_replayed_is_past(anna: Client, db: None) -> None:
    failed, other = (rows.archived(rows.FAIL, "failed") for _ in range(2))
    assert not is_settled(get(anna, list_of("archivedjob")).html)
    confirm(anna, "archivedjob", "replay", failed)
    html = get(anna, list_of("archivedjob")).html
    pills = re.findall(r'<span class="jq-pill (jq-failed[^"]*)"', html)
    assert sorted(pills) == ["jq-failed", "jq-failed jq-settled"]


def test_failed_attempts_of_a_job_that_succeeded_are_past(
    anna: Client, scene: Scene
) -> None:
    for name, expected in (("succeeded", True), ("failed", False)):
        html = get(anna, page_of("archivedjob", scene.archived[name])).html
        assert is_settled(html) is expected


def test_what_failed_in_a_day_is_a_number_like_others(anna: Client, db: None) -> None:
    rollup(ago(hours=5), ADD, succeeded=97, failed=3)
    for model in ("jobtype", "queue"):
        html = get(anna, list_of(model)).html
        assert "3.0 % failed" in html
        assert not re.search(r"jq-(warned|failed)[^>]*>3.0 %", html)


def test_many_of_them_are_a_warning_and_not_an_alarm(anna: Client, db: None) -> None:
    rollup(ago(hours=5), ADD, succeeded=50, failed=50)
    html = get(anna, list_of("jobtype")).html
    assert '<span class="jq-warned">50.0 % failed</span>' in html


def test_a_firing_that_was_missed_is_no_alarm(anna: Client, scene: Scene) -> None:
    name = rows.schedule("weekly")
    rows.fired(name, timedelta(days=2), None, outcome="missed")
    assert "jq-failed" not in get(anna, page_of("schedule", name)).html


def test_that_nobody_has_a_handler_is_an_alarm_where_jobs_are_ready(
    anna: Client, db: None
) -> None:
    rows.queued(rows.FAIL)
    html = get(anna, list_of("jobtype"), q="tests.sample.").html
    nobody = "no handler in any live worker"
    assert html.count(f'jq-failed">{nobody}') == 1
    assert html.count(f'jq-warned">{nobody}') > 1
