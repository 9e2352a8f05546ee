"""TASKS where nothing would read it."""

from __future__ import annotations

import sys
from typing import Any

import django
import pytest

from django_jobqueue.checks import check_framework

TASKS = {"default": {"BACKEND": "django_jobqueue.backends.JobQueueBackend"}}


def test_e024_a_django_without_tasks_says_that_the_backport_is_missing(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions: list[tuple[tuple[int, int], dict[str, Any], list[str]]] = [
        ((5, 2), TASKS, ["jobqueue.E024"]),
        ((5, 2), {}, []),
        ((6, 0), TASKS, []),
    ]
    for version, tasks, ids in versions:
        settings.TASKS = tasks
        with monkeypatch.context() as patch:
            patch.setattr(django, "VERSION", (*version, 0, "final", 0))
            patch.setitem(sys.modules, "django_tasks", None)
            assert [message.id for message in check_framework(None)] == ids
    pytest.importorskip("django_tasks", reason="needs django-tasks")
    settings.TASKS = TASKS
    monkeypatch.setattr(django, "VERSION", (5, 2, 0, "final", 0))
    assert check_framework(None) == []
