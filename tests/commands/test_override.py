"""``jobqueue override``."""

from __future__ import annotations

import getpass
from datetime import timedelta
from typing import Any

import pytest

from django_jobqueue.domain.job_options import OVERRIDES
from django_jobqueue.models import JobType
from django_jobqueue.text.durations import DURATIONS
from tests.commands.conftest import jobqueue, not_refused

pytestmark = pytest.mark.django_db
ADD, KEEP = "tests.sample.add", "tests.sample.keep"
MINUTES = timedelta(minutes=5)


def overrides(name: str = ADD) -> dict[str, Any]:
    """What the row says of a job type, instead of the code."""
    row = JobType.objects.get(pk=name)
    said = {option: getattr(row, f"{option}_override") for option in OVERRIDES}
    return {option: value for option, value in said.items() if value is not None}


def test_an_override_is_written_and_told() -> None:
    for flag, text, value, said in (
        ("--priority", "-5", -5, "code → -5"),
        ("--priority", "-1", -1, "code → -1"),
        ("--max-attempts", "9", 9, "code → 9"),
        ("--max-attempts", "unlimited", -1, "code → unlimited"),
        ("--max-attempts", "-1", -1, "code → unlimited"),
        ("--timeout", "5m", MINUTES, "code → 5 m"),
        ("--timeout", "unlimited", timedelta(0), "code → unlimited"),
        ("--concurrency", "0", 0, "code → 0"),
        ("--concurrency", "unlimited", -1, "code → unlimited"),
        ("--keep-succeeded", "30d", timedelta(days=30), "code → 30 d"),
        ("--keep-unsuccessful", "1h30m", timedelta(hours=1.5), "code → 1 h 30 m"),
    ):
        option = flag.removeprefix("--").replace("-", "_")
        out = jobqueue(f"override {ADD} {flag} {text}").out
        assert out == f"{ADD}: {option.replace('_', ' ')} {said}.\n"
        assert overrides() == {option: value}
        again = jobqueue(f"override {ADD} {flag} {text}").out
        assert again == f"{ADD}: nothing changed.\n"
        jobqueue(f"override {ADD} {flag} code")
        assert overrides() == {}


def test_several_of_several_types_are_changed_at_once(operated: list[Any]) -> None:
    jobqueue(f"override --timeout 5m {ADD} {KEEP} --concurrency 2")
    assert overrides() == overrides(KEEP) == {"timeout": MINUTES, "concurrency": 2}
    assert {one["by"] for one in operated} == {f"command line ({getpass.getuser()})"}
    out = jobqueue(f"override {ADD} {KEEP} --clear").out
    assert out == (
        f"{ADD}: timeout 5 m → code, concurrency 2 → code.\n"
        f"{KEEP}: timeout 5 m → code, concurrency 2 → code.\n"
    )
    assert overrides() == overrides(KEEP) == {}


def test_programs_are_told_before_and_after() -> None:
    jobqueue(f"override {ADD} --timeout 5m")
    said = jobqueue(
        f"override {ADD} --timeout unlimited --max-attempts unlimited --format json",
    )
    assert said.json == {
        ADD: {
            "timeout": {"before": 300.0, "after": 0.0},
            "max_attempts": {"before": None, "after": -1},
        }
    }


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    reasons = {
        f"{ADD}": "Name the options to override: --priority, --max-attempts, --time",
        f"{ADD} --clear --timeout 1": "--clear clears all overrides; give",
        f"{ADD} {KEEP} x --timeout 1": "There is no job type 'x'.",
        "tests.sample.ad --clear": "There is no job type 'tests.sample.ad'. Did",
        f"{ADD} --priority 101": "priority must be a whole number from -100 to",
        f"{ADD} --priority high": "--priority: must be a whole number, code, not ",
        f"{ADD} --priority unlimited": "--priority: must be a whole number, code,",
        f"{ADD} --concurrency -2": "concurrency must be a whole number from 0 to",
        f"{ADD} --max-attempts 0": "max_attempts must be a whole number from 1 to",
        f"{ADD} --max-attempts x": "--max-attempts: must be a whole number, code",
        f"{ADD} --timeout soon": "--timeout: 'soon' is not a duration. Write 30s",
        f"{ADD} --timeout none": f"Write {DURATIONS}; or code or unlimited.",
        f"{ADD} --keep-succeeded none": f"Write {DURATIONS}; or code.",
        f"{ADD} --concurrency none": "a whole number, code or unlimited, not 'none'.",
        f"{ADD} --keep-succeeded unlimited": "--keep-succeeded: 'unlimited' is no",
    }
    assert not_refused("override", reasons) == {}
    assert overrides() == overrides(KEEP) == {}
