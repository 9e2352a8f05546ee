"""When a worker process is to be replaced."""

from __future__ import annotations

import pytest

from django_jobqueue.conf import conf
from django_jobqueue.workers import process_limits
from django_jobqueue.workers.process_limits import ProcessLimits

MB = 1 << 20


class Process:
    """What a process knows of itself: its age, and the memory that it has."""

    def __init__(self) -> None:
        self.age = 0.0
        self.memory = 80 * MB


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    """One whose age and memory the test sets."""
    made = Process()
    monkeypatch.setattr(process_limits.time, "monotonic", lambda: 1_000 + made.age)
    monkeypatch.setattr(process_limits.identity, "rss", lambda pid: made.memory)
    return made


def limits(**settings: float) -> ProcessLimits:
    """Those of these settings."""
    with conf.override(settings):
        made = ProcessLimits.of_settings()
    assert made is not None
    return made


def test_jobs_and_age_are_reached_within_a_tenth_of_what_is_set(
    process: Process,
) -> None:
    assert ProcessLimits.of_settings() is None  # nothing is set
    for _ in range(20):
        jobs, age = limits(MAX_JOBS=100), limits(MAX_AGE=100.0)
        assert jobs.exceeded(finished=89) == ""
        assert jobs.exceeded(finished=110) == "MAX_JOBS"
        process.age = 89
        assert age.exceeded(finished=10**9) == ""
        process.age = 111
        assert age.exceeded(finished=0) == "MAX_AGE"
        process.age = 0
    # Siblings do not reach a limit together.
    assert len({limits(MAX_JOBS=10_000).jobs for _ in range(10)}) > 1


def test_memory_is_looked_at_once_a_second(process: Process) -> None:
    memory = limits(MAX_MEMORY=500 * MB)
    assert memory.exceeded(finished=0) == ""
    process.memory = 600 * MB
    assert memory.exceeded(finished=0) == ""
    process.age = 1.5
    assert memory.exceeded(finished=0) == "MAX_MEMORY"


def test_a_process_that_begins_above_the_limit_may_grow_and_says_so(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    memory = limits(MAX_MEMORY=50 * MB)
    assert "begins with 80 MB; it is replaced when it has 100 MB" in caplog.text
    assert memory.exceeded(finished=0) == ""
    process.age, process.memory = 2, 101 * MB
    assert memory.exceeded(finished=0) == "MAX_MEMORY"
