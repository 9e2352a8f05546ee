"""``jobqueue health`` and ``status --check``: exit codes and the first line."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from django.core.management import CommandError, execute_from_command_line
from django.db import OperationalError, connection
from django.test import override_settings

from tests.commands.conftest import jobqueue, refusal
from tests.stats.rows import ago, queued, rollup, worker

pytestmark = pytest.mark.django_db


def health(line: str = "health") -> tuple[int, str]:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        jobqueue(line, stdout=out)
    return int(ended.value.code or 0), out.getvalue()


def test_a_healthy_queue_is_one_line_and_exit_code_0() -> None:
    worker()
    assert health() == (
        0,
        "JOBQUEUE OK - 1 worker, 0 ready jobs | workers=1;;1: oldest=0s;;300 ready=0\n",
    )


def test_a_queue_that_is_not_says_why_with_exit_code_2() -> None:
    worker()
    queued(queue="mail", run_after=ago(minutes=7, seconds=1))
    code, text = health("health --max-ready 50")
    assert code == 2
    line, _, figures = text.partition(" | ")
    assert line == "JOBQUEUE CRITICAL - mail: oldest ready job 7 m"
    assert "ready_mail=1;;50" in figures.split()

    code, text = health("health --format json")
    found = json.loads(text)
    assert (code, found["status"]) == (2, "critical")
    message = {"code": "old_job", "message": "mail: oldest ready job 7 m"}
    assert found["problems"] == [{**message, "queue": "mail", "job_type": None}]
    workers = {"name": "workers", "of": None, "value": 1, "unit": "", "limit": 1}
    assert found["figures"][0] == workers


def test_the_thresholds_are_those_of_the_flags() -> None:
    worker()
    queued(2, queue="mail", run_after=ago(minutes=7))
    rollup(ago(minutes=5), queue="mail", succeeded=90, failed=10)
    codes = {
        "--max-failed 100": 2,
        "--max-failed 100 --max-age 10m": 0,
        "--max-failed 100 --max-age 10m --max-ready 1": 2,
        "--max-failed 100 --max-age 10m --min-workers 2": 2,
        "--max-failed 100 --queues 'slow, night'": 0,
        "--max-age 10m --max-failed 10%": 0,
        "--max-age 10m --max-failed 9": 2,
        "--max-age 10m --max-failed 9 --window 1m": 0,
    }
    for command in ("health", "status --check"):
        assert {each: health(f"{command} {each}")[0] for each in codes} == codes
    with override_settings(JOBQUEUE={"ALERT_WAIT": 600, "ALERT_FAILED": 10}):
        assert health()[0] == 0  # as the overview's warnings


def test_names_cannot_break_the_line() -> None:
    worker()
    queued(queue="it's = a|b\nc", run_after=ago(hours=1))
    code, text = health()
    assert code == 2
    assert text.count("\n") == text.count("|") == 1
    assert "'oldest_it_s _ a_b" in text


def test_of_many_problems_the_first_line_has_three() -> None:
    worker()
    for number in range(5):
        queued(queue=f"tenant-{number}", run_after=ago(hours=1 + number))
    lines = health()[1].splitlines()
    assert "; and 2 more | " in lines[0]
    assert [line.partition(":")[0] for line in lines[1:]] == ["tenant-1", "tenant-0"]


def test_status_shows_its_tables_below_the_line() -> None:
    code, text = health("status --check")
    assert code == 2
    assert text.startswith("JOBQUEUE CRITICAL - no worker claims jobs | ")
    assert "Job queue in database 'default'" in text
    code, text = health("status --check --format json")
    assert json.loads(text)["health"]["status"] == "critical"


def test_a_database_that_does_not_answer_is_exit_code_3(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*arguments: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("django_jobqueue.store.reading.stats.workers", broken)
    for command in ("health", "status --check"):
        code, text = health(command)
        assert code == 3
        assert text.startswith(
            "JOBQUEUE UNKNOWN - The database 'default' cannot be used: "
        )
        code, text = health(f"{command} --format json")
        assert (code, json.loads(text)["status"]) == (3, "unknown")


@pytest.mark.django_db(transaction=True)
def test_a_missing_migration_is_exit_code_3() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobqueue_worker RENAME TO elsewhere")
    try:
        code, text = health()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO jobqueue_worker")
    assert code == 3
    assert "run manage.py migrate" in text


def test_a_wrong_value_is_exit_code_3() -> None:
    for flags, text in {
        "--max-age soon": "--max-age: 'soon' is not a duration.",
        "--max-failed 101%": "--max-failed: write a share from 0% to 100%",
        "--max-failed few": "--max-failed: write a share from 0% to 100%",
        "--min-workers -1": "--min-workers: must be at least 0, not -1.",
        "--max-crashes -1": "--max-crashes: must be at least 0, not -1.",
        "--window x": "--window: 'x' is not a duration.",
    }.items():
        with pytest.raises(CommandError, match=text) as refused:
            jobqueue(f"health {flags}")
        assert refused.value.returncode == 3


def test_a_wrong_command_line_is_exit_code_3(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And not 2, which means that the queue is not healthy."""
    for line, text in {
        "health --max-old 5m": "no option '--max-old'",
        "health --max-ready 10001": "must be at most 10,000",
        "status --check --max-ready some": "whole number of at least 1",
    }.items():
        with pytest.raises(SystemExit) as ended:
            execute_from_command_line([sys.argv[0], "jobqueue", *line.split()])
        assert ended.value.code == 3
        assert text in capsys.readouterr().err
    assert "--check and --watch exclude each other" in refusal("status --check --watch")
