"""The form of a job type's overrides, and how they are cleared."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue import operations
from django_jobqueue.admin.types.overrides import OverridesForm
from django_jobqueue.models import JobType
from tests.admin.pages import get, page_of, post
from tests.admin.scene import ADD, FAIL, ONCE
from tests.admin.units import act, context, press, problems, question

pytestmark = pytest.mark.django_db

NAMES = (
    *("priority", "max_attempts", "timeout", "concurrency"),
    *("keep_succeeded", "keep_unsuccessful"),
)
EMPTY = {**{f"{name}_override": "" for name in NAMES}, "_continue": "Save"}
DRIFT = "The override repeats the code's value."


def save(client: Client, name: str = FAIL, **said: str) -> str:
    return press(client, page_of("jobtype", name), **{**EMPTY, **said})


def test_overrides_are_saved_and_shown_beside_the_code(anna: Client) -> None:
    said = {
        "priority_override": "-7",
        "max_attempts_override": "-1",
        "timeout_override": "90",
        "concurrency_override": "0",
        "keep_succeeded_override": "2 00:00:00",
    }
    page = post(anna, page_of("jobtype", FAIL), {**EMPTY, **said})
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


def test_an_empty_override_is_the_code_again(anna: Client) -> None:
    row = JobType.objects.filter(pk=FAIL)
    row.update(max_attempts_override=9)
    page = get(anna, page_of("jobtype", FAIL))
    assert "Max attempts 9 override 3" in page.text
    assert DRIFT not in page.text
    row.update(max_attempts_override=3)  # which is what the code says
    assert DRIFT in get(anna, page_of("jobtype", FAIL)).text
    save(anna)
    assert row.get().max_attempts_override is None
    assert "Max attempts 3 code 3" in get(anna, page_of("jobtype", FAIL)).text
    assert LogEntry.objects.count() == 1
    save(anna)  # changes nothing
    assert LogEntry.objects.count() == 1
    save(anna, ONCE, max_attempts_override="9")
    text = "has one attempt, whatever you enter here"
    assert text in str(context(anna, "jobtype", ONCE)["policy"])


def test_a_form_leaves_what_others_overrode_since_it_was_opened(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the row and the saving of the form; nor does it write what
    somebody adds to the form."""
    before = JobType.objects.filter(pk=FAIL).values().get()
    override = operations.override

    def slowly(name: str, **said: Any) -> Any:
        JobType.objects.filter(pk=FAIL).update(concurrency_override=4)
        return override(name, **said)

    monkeypatch.setattr(operations, "override", slowly)
    said = {"priority_override": "3", "queue": "x", "paused": "on", "name": "y"}
    press(anna, page_of("jobtype", FAIL), **{**EMPTY, **said})
    after = JobType.objects.filter(pk=FAIL).values().get()
    assert after == {**before, "priority_override": 3, "concurrency_override": 4}


def test_overrides_are_cleared_alone_and_of_several_job_types(anna: Client) -> None:
    row = JobType.objects.filter(pk=FAIL)
    row.update(max_attempts_override=9, concurrency_override=2)
    page = get(anna, page_of("jobtype", FAIL))
    links = [link for link in page.links if "override=" in link]
    assert len(links) == 2
    page = get(anna, next(link for link in links if "override=concurrency" in link))
    boxes = page.all("input", type="checkbox", name="override")
    assert {box["value"]: "checked" in box for box in boxes} == {
        "max_attempts": False,
        "concurrency": True,
    }
    assert row.get().concurrency_override == 2
    # Only those that there are.
    wrong = problems(anna, "jobtype", "clear", FAIL, override=["timeout"])
    assert "Select a valid choice" in wrong
    told = act(anna, "jobtype", "clear", FAIL, override=["concurrency"])
    assert told == "1 override was cleared."
    values = row.values_list("max_attempts_override", "concurrency_override")
    assert values.get() == (9, None)
    (entry,) = LogEntry.objects.all()
    assert entry.get_change_message() == "Changed Concurrency: 2 → –."

    LogEntry.objects.all().delete()
    JobType.objects.filter(pk__in=[ADD, FAIL]).update(priority_override=9)
    several = (ADD, FAIL, ONCE)
    assert "Clear overrides of these 3" in question(anna, "jobtype", "clear", *several)
    told = act(anna, "jobtype", "clear", *several, override=["priority"])
    assert told == "2 overrides were cleared."
    assert not JobType.objects.filter(priority_override__isnull=False).exists()
    assert {entry.object_id for entry in LogEntry.objects.all()} == {ADD, FAIL}


def test_an_override_that_cannot_be_is_refused(anna: Client) -> None:
    for name, value, text in (
        ("priority", "101", "From -100 to 100."),
        ("priority", "x", "Enter a whole number."),
        ("max_attempts", "0", "From 1 to 2147483647, or -1 for unlimited."),
        ("max_attempts", "9" * 12, "From 1 to 2147483647, or -1"),
        ("concurrency", "-2", "From 0 to 2147483647, or -1 for unlimited."),
        ("concurrency", "1.5", "Enter a whole number."),
        ("timeout", "-5", "From zero to 36500 days."),
        ("timeout", "soon", "Enter a valid duration."),
        ("keep_succeeded", "-1", "From zero to 36500 days."),
        ("keep_unsuccessful", "9" * 30, "The number of days must be"),
    ):
        said = {**EMPTY, f"{name}_override": value}
        form = OverridesForm(said, instance=JobType.objects.get(pk=FAIL))
        assert text in str(form.errors.as_data()[f"{name}_override"]), name
    page = post(anna, page_of("jobtype", FAIL), {**EMPTY, "priority_override": "x"})
    assert "Enter a whole number." in page.text
    assert LogEntry.objects.count() == 0
