"""The forms: overrides of a job type, and what is decided about a failure group."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.test import Client

from django_jobqueue import operations
from django_jobqueue.models import JobType
from django_jobqueue.store.connection import OwnConnection
from tests.admin.pages import confirm, get, page_of, post, select
from tests.admin.scene import ADD, FAIL, ONCE, Scene
from tests.store.meanwhile import Hearing

EMPTY = {
    "priority_override": "",
    "max_attempts_override": "",
    "timeout_override": "",
    "concurrency_override": "",
    "keep_succeeded_override": "",
    "keep_unsuccessful_override": "",
    "_continue": "Save",
}


def test_overrides_are_saved_and_shown_beside_the_code(
    anna: Client, scene: Scene
) -> None:
    said = {
        **EMPTY,
        "priority_override": "-7",
        "max_attempts_override": "-1",
        "timeout_override": "90",
        "concurrency_override": "0",
        "keep_succeeded_override": "2 00:00:00",
    }
    page = post(anna, page_of("jobtype", FAIL), said)
    row = JobType.objects.get(pk=FAIL)
    assert (row.priority_override, row.max_attempts_override) == (-7, -1)
    assert (row.concurrency_override, row.keep_unsuccessful_override) == (0, None)
    assert row.timeout_override == timedelta(seconds=90)
    assert row.keep_succeeded_override == timedelta(days=2)
    for text in (
        "Priority -7 override anna,",
        "Max attempts unlimited override anna,",
        "Timeout 1 m 30 s override anna,",
        "Concurrency 0 (paused) override anna,",
        "Keep succeeded jobs for 2 d override anna,",
        "Keep other jobs for failed 90 d, expired 30 d, cancelled 30 d setting",
    ):
        assert text in page.text
    (entry,) = LogEntry.objects.all()
    assert (entry.object_id, entry.user.get_username()) == (FAIL, "anna")
    assert entry.get_change_message() == (
        "Changed Priority: – → -7, Max attempts: – → unlimited, "
        "Timeout: – → 1 m 30 s, Concurrency: – → 0 (paused) and "
        "Keep succeeded jobs for: – → 2 d."
    )


def test_workers_are_told_of_an_override_at_once(
    transactional_db: None, scene: Scene, other: OwnConnection
) -> None:
    user = get_user_model().objects.create_superuser("anna", "", "x")
    client = Client()
    client.force_login(user)
    ear = Hearing(other)
    post(client, page_of("jobtype", FAIL), {**EMPTY, "priority_override": "3"})
    assert ear.heard() == ["t:"]


def test_an_empty_override_is_the_code_again(anna: Client, scene: Scene) -> None:
    JobType.objects.filter(pk=FAIL).update(max_attempts_override=9)
    assert "Max attempts 9 override 3" in get(anna, page_of("jobtype", FAIL)).text
    page = post(anna, page_of("jobtype", FAIL), EMPTY)
    assert JobType.objects.get(pk=FAIL).max_attempts_override is None
    assert "Max attempts 3 code 3" in page.text


def test_a_form_that_changes_nothing_is_no_history(anna: Client, scene: Scene) -> None:
    post(anna, page_of("jobtype", FAIL), EMPTY)
    assert LogEntry.objects.count() == 0


def test_a_form_leaves_what_others_overrode_since_it_was_opened(
    anna: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the row and the saving of the form."""
    override = operations.override

    def slowly(name: str, **said: Any) -> Any:
        JobType.objects.filter(pk=FAIL).update(concurrency_override=4)
        return override(name, **said)

    monkeypatch.setattr(operations, "override", slowly)
    post(anna, page_of("jobtype", FAIL), {**EMPTY, "priority_override": "3"})
    row = JobType.objects.get(pk=FAIL)
    assert (row.priority_override, row.concurrency_override) == (3, 4)


def test_an_override_that_says_what_the_code_says_is_pointed_out(
    anna: Client, scene: Scene
) -> None:
    drift = "The override has the value of the code."
    JobType.objects.filter(pk=FAIL).update(max_attempts_override=4)
    assert drift not in get(anna, page_of("jobtype", FAIL)).text
    JobType.objects.filter(pk=FAIL).update(max_attempts_override=3)
    assert drift in get(anna, page_of("jobtype", FAIL)).text


def test_an_override_is_cleared_alone(anna: Client, scene: Scene) -> None:
    JobType.objects.filter(pk=FAIL).update(
        max_attempts_override=9, concurrency_override=2
    )
    page = get(anna, page_of("jobtype", FAIL))
    links = [link for link in page.links if "override=" in link]
    assert len(links) == 2
    page = get(anna, next(link for link in links if "override=concurrency" in link))
    boxes = page.all("input", type="checkbox", name="override")
    assert {box["value"]: "checked" in box for box in boxes} == {
        "max_attempts": False,
        "concurrency": True,
    }
    assert JobType.objects.get(pk=FAIL).concurrency_override == 2

    page = confirm(anna, "jobtype", "clear", FAIL, override=["concurrency"])
    assert "1 override was cleared." in page.text
    row = JobType.objects.get(pk=FAIL)
    assert (row.max_attempts_override, row.concurrency_override) == (9, None)
    (entry,) = LogEntry.objects.all()
    assert entry.get_change_message() == "Changed Concurrency: 2 → –."


def test_overrides_of_several_job_types_are_cleared_from_the_list(
    anna: Client, scene: Scene
) -> None:
    JobType.objects.filter(pk__in=[ADD, FAIL]).update(priority_override=9)
    page = select(anna, "jobtype", "clear", ADD, FAIL, ONCE)
    assert "Clear overrides of these 3" in page.text
    page = confirm(anna, "jobtype", "clear", ADD, FAIL, ONCE, override=["priority"])
    assert "2 overrides were cleared." in page.text
    assert not JobType.objects.filter(priority_override__isnull=False).exists()
    assert {entry.object_id for entry in LogEntry.objects.all()} == {ADD, FAIL}


def test_only_overrides_that_there_are_can_be_cleared(
    anna: Client, scene: Scene
) -> None:
    JobType.objects.filter(pk=FAIL).update(priority_override=9)
    page = confirm(anna, "jobtype", "clear", FAIL, override=["timeout"])
    assert "Select a valid choice" in page.text
    assert JobType.objects.get(pk=FAIL).priority_override == 9


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("priority_override", "101", "From -100 to 100."),
        ("priority_override", "-101", "From -100 to 100."),
        ("priority_override", "x", "Enter a whole number."),
        ("max_attempts_override", "0", "From 1 to 2147483647, or -1 for unlimited."),
        ("max_attempts_override", "-2", "From 1 to 2147483647, or -1 for unlimited."),
        ("max_attempts_override", "9" * 12, "From 1 to 2147483647, or -1"),
        ("concurrency_override", "-2", "From 0 to 2147483647, or -1 for unlimited."),
        ("concurrency_override", "1.5", "Enter a whole number."),
        ("timeout_override", "-5", "From zero to 36500 days."),
        ("timeout_override", "soon", "Enter a valid duration."),
        ("keep_succeeded_override", "-1", "From zero to 36500 days."),
        ("keep_unsuccessful_override", "-1", "From zero to 36500 days."),
        ("keep_unsuccessful_override", "9" * 30, "The number of days must be"),
    ],
)
def test_an_override_that_cannot_be_is_refused(
    anna: Client, scene: Scene, name: str, value: str, text: str
) -> None:
    page = post(anna, page_of("jobtype", FAIL), {**EMPTY, name: value})
    assert text in page.text
    assert getattr(JobType.objects.get(pk=FAIL), name) is None
    assert LogEntry.objects.count() == 0


def test_a_form_writes_nothing_but_overrides(anna: Client, scene: Scene) -> None:
    """Neither what a deployment said meanwhile, nor what somebody adds to the form."""
    before = JobType.objects.filter(pk=FAIL).values().get()
    said = {
        **EMPTY,
        "priority_override": "3",
        "queue": "x",
        "paused": "on",
        "name": "y",
    }
    post(anna, page_of("jobtype", FAIL), said)
    after = JobType.objects.filter(pk=FAIL).values().get()
    assert after == {**before, "priority_override": 3}


def test_an_at_most_once_type_has_one_attempt_whatever_is_written(
    anna: Client, scene: Scene
) -> None:
    page = post(anna, page_of("jobtype", ONCE), {**EMPTY, "max_attempts_override": "9"})
    assert "has one attempt, whatever is written here" in page.text
