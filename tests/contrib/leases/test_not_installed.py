"""Whatever needs leases says so where they are not installed."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from django_jobqueue.contrib.leases import lease, try_lease

APP = "django_jobqueue.contrib.leases"


@pytest.fixture(autouse=True)
def _not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    is_installed = apps.is_installed
    without = lambda name: name != APP and is_installed(name)  # noqa: E731
    monkeypatch.setattr(apps, "is_installed", without)


def test_a_call_that_takes_a_lease_names_the_app() -> None:
    for take in (lease, try_lease):
        with pytest.raises(ImproperlyConfigured, match=f"Leases need '{APP}' in"):
            take("import")


def test_a_host_that_would_stand_by_does_not_start() -> None:
    with pytest.raises(CommandError, match=f"--standby needs '{APP}' in INSTALLED"):
        call_command("runworkers", "--standby", "main", "--check", skip_checks=True)
