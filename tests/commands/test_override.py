"""``jobqueue override``."""

from __future__ import annotations

import getpass
from datetime import timedelta
from typing import Any

import pytest
from django.core.management.base import CommandError

from django_jobqueue.domain.job_options import OVERRIDES
from django_jobqueue.management.jobqueue.time_formats import DURATIONS
from django_jobqueue.models import JobType
from tests.commands.conftest import jobqueue

pytestmark = pytest.mark.django_db
ADD, KEEP = "tests.sample.add", "tests.sample.keep"
MINUTES = timedelta(minutes=5)


def overrides(name: str = ADD) -> dict[str, Any]:
    """What the row says of a job type, instead of the code."""
    row = JobType.objects.get(pk=name)
    said = {option: getattr(row, f"{option}_override") for option in OVERRIDES}
    return {option: value for option, value in said.items() if value is not None}


def refusal(*arguments: str) -> str:
    """What the command says when it refuses; nothing may have been overridden."""
    with pytest.raises(CommandError) as refused:
        jobqueue("override", *arguments)
    assert overrides() == overrides(KEEP) == {}
    return str(refused.value)


@pytest.mark.parametrize(
    ("flag", "text", "value", "said"),
    [
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
    ],
)
def test_an_override_is_written_and_told(
    flag: str, text: str, value: Any, said: str
) -> None:
    option = flag.removeprefix("--").replace("-", "_")
    out = jobqueue("override", ADD, flag, text).out
    assert out == f"{ADD}: {option.replace('_', ' ')} {said}.\n"
    assert overrides() == {option: value}
    again = jobqueue("override", ADD, flag, text).out
    assert again == f"{ADD}: nothing changed.\n"
    jobqueue("override", ADD, flag, "code")
    assert overrides() == {}


def test_several_of_several_types_are_changed_at_once(operated: list[Any]) -> None:
    jobqueue("override", "--timeout", "5m", ADD, KEEP, "--concurrency", "2")
    assert overrides() == overrides(KEEP) == {"timeout": MINUTES, "concurrency": 2}
    assert {one["by"] for one in operated} == {f"command line ({getpass.getuser()})"}
    out = jobqueue("override", ADD, KEEP, "--clear").out
    assert out == (
        f"{ADD}: timeout 5 m → code, concurrency 2 → code.\n"
        f"{KEEP}: timeout 5 m → code, concurrency 2 → code.\n"
    )
    assert overrides() == overrides(KEEP) == {}


def test_programs_are_told_before_and_after() -> None:
    jobqueue("override", ADD, "--timeout", "5m")
    said = jobqueue(
        *("override", ADD, "--timeout", "unlimited", "--max-attempts", "unlimited"),
        *("--format", "json"),
    )
    assert said.json == {
        ADD: {
            "timeout": {"before": 300.0, "after": 0.0},
            "max_attempts": {"before": None, "after": -1},
        }
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([ADD], "Name the options to override: --priority, --max-attempts, --timeout,"),
        (
            [ADD, "--clear", "--timeout", "1"],
            "--clear clears all overrides; give",
        ),
        ([ADD, KEEP, "x", "--timeout", "1"], "There is no job type 'x'."),
        (["tests.sample.ad", "--clear"], "There is no job type 'tests.sample.ad'. Did"),
        ([ADD, "--priority", "101"], "priority must be a whole number from -100 to"),
        ([ADD, "--priority", "high"], "--priority: must be a whole number, code, not "),
        ([ADD, "--priority", "unlimited"], "--priority: must be a whole number, code,"),
        ([ADD, "--concurrency", "-2"], "concurrency must be a whole number from 0 to"),
        ([ADD, "--max-attempts", "0"], "max_attempts must be a whole number from 1 to"),
        (
            [ADD, "--max-attempts", "x"],
            "--max-attempts: must be a whole number, code",
        ),
        ([ADD, "--timeout", "soon"], "--timeout: 'soon' is no duration. Write 30s"),
        (
            [ADD, "--timeout", "none"],
            f"--timeout: 'none' is no duration. Write {DURATIONS}; or code or "
            "unlimited.",
        ),
        (
            [ADD, "--keep-succeeded", "none"],
            f"--keep-succeeded: 'none' is no duration. Write {DURATIONS}; or code.",
        ),
        (
            [ADD, "--concurrency", "none"],
            "--concurrency: must be a whole number, code or unlimited, not 'none'.",
        ),
        ([ADD, "--keep-succeeded", "unlimited"], "--keep-succeeded: 'unlimited' is no"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    arguments: list[str], message: str
) -> None:
    assert refusal(*arguments).startswith(message)
