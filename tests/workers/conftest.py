"""Fixtures of tests of workers."""

from __future__ import annotations

import pytest

from django_jobqueue.domain import throttle


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long work is divided into chunks of ten rows, not of hundreds."""
    monkeypatch.setattr(throttle, "FIRST", 10)
    monkeypatch.setattr(throttle, "SMALLEST", 10)
