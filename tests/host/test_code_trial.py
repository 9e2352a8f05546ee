"""Whether the code starts, tried by a command that ends."""

from __future__ import annotations

import pytest

from django_jobqueue.host.code_trial import CodeTrial, Program
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes


def problem(script: str) -> str:
    trial = CodeTrial(Program(("/bin/sh", "-c", script)))
    try:
        eventually(lambda: trial.problem() is not None)
        return trial.problem() or ""
    finally:
        trial.close()


def test_the_last_line_of_what_does_not_start_is_told() -> None:
    assert problem("exit 0") == ""
    assert problem("exit 3") == "The code does not start: exit code 3"
    told = "echo Traceback; echo >&2 'ImportError: no shop'; exit 1"
    assert problem(told) == "The code does not start: ImportError: no shop"
    secret = "echo >&2 'ValueError: postgres://shop:hunter2secret@db/shop'; exit 1"
    assert "hunter2secret" not in problem(secret)


def test_one_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_jobqueue.host.code_trial.TRIAL_ENDS", 0.05)
    trial = CodeTrial(Program(("/bin/sh", "-c", "sleep 60")))
    assert trial.problem() is None
    eventually(lambda: trial.problem() == "The code does not start within 0.05 s.")
    trial.close()
