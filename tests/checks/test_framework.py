"""TASKS where nothing would read it."""

from __future__ import annotations

import sys
from typing import Any

import django
import pytest

from django_jobqueue.checks import check_framework

TASKS = {"default": {"BACKEND": "django_jobqueue.backends.JobQueueBackend"}}


@pytest.mark.parametrize(
    ("version", "tasks", "ids"),
    [
        ((5, 2), TASKS, ["jobqueue.E024"]),
        ((5, 2), {}, []),
        ((6, 0), TASKS, []),
    ],
)
def test_e024_a_django_without_tasks_says_that_the_backport_is_missing(
    version: tuple[int, int],
    tasks: dict[str, Any],
    ids: list[str],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.TASKS = tasks
    with monkeypatch.context() as patch:
        patch.setattr(django, "VERSION", (*version, 0, "final", 0))
        patch.setitem(sys.modules, "django_tasks", None)
        found = [message.id for message in check_framework(None)]

    assert found == ids


def test_with_the_backport_nothing_is_missing(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("django_tasks")
    settings.TASKS = TASKS
    with monkeypatch.context() as patch:
        patch.setattr(django, "VERSION", (5, 2, 0, "final", 0))
        assert check_framework(None) == []
