"""Without the room its job types are an error of the checks, and their jobs wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.test import override_settings

from django_jobqueue.checks.project_settings import check_settings
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.models import QueuedJob
from django_jobqueue.testing import perform
from tests.checks.messages import only
from tests.contrib.remote.conftest import TYPE, EndpointServer
from tests.support.hand_driven import HandDriven

ROOM = "django_jobqueue.contrib.remote"


def test_jobs_wait_until_there_is_what_sends_them(
    declare: Callable[..., Handler[..., Any]],
    shipping: EndpointServer,
    worker: HandDriven,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ship = declare()
    there = [config for config in apps.get_app_configs() if config.name != ROOM]
    with monkeypatch.context() as absent:
        absent.setattr(apps, "get_app_configs", lambda: there)
        absent.setattr(apps, "is_installed", lambda name: name != ROOM)
        ship.enqueue()
        worker.work()
        assert QueuedJob.objects.get().attempts == 0
        assert f"add '{ROOM}' to INSTALLED_APPS" in str(perform(ship).error)
    worker.work()
    assert not QueuedJob.objects.exists()
    assert len(shipping.received) == 1


def test_e014_a_job_type_that_nobody_does(
    declare: Callable[..., Handler[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(endpoint=None)
    with override_settings(JOBQUEUE={}):
        assert [*check_settings(None)] == []
        monkeypatch.setattr(apps, "is_installed", lambda name: name != ROOM)
        said = f"Nobody does the jobs of remote_job({TYPE!r})"
        hint = f"Add '{ROOM}' to INSTALLED_APPS."
        only([*check_settings(None)], "E014", said, hint)
