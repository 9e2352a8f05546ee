"""Fixtures of the admin's tests: users, and rows of every state."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from django_jobqueue.admin.failures import failure_matrix
from django_jobqueue.stats import overview, usual_job_types
from tests.admin.pages import MODELS
from tests.admin.scene import Scene, build

VIEWS = tuple(f"view_{model}" for model in MODELS)

LogIn = Callable[..., Client]


@pytest.fixture(autouse=True)
def fresh_figures() -> None:
    """The overview keeps nothing of an earlier test."""
    overview.forget()
    usual_job_types.forget()
    failure_matrix.forget()


@pytest.fixture
def anna(db: None) -> Client:
    """A superuser's browser, which sends tokens against forgery as forms do."""
    user = get_user_model().objects.create_superuser("anna", "", "x")
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def log_in(db: None) -> LogIn:
    """Log in as staff with these permissions: ``log_in("view_queuedjob")``."""

    def log_in(*codenames: str, name: str = "bert") -> Client:
        user = get_user_model().objects.create_user(name, is_staff=True)
        found = Permission.objects.filter(
            content_type__app_label__startswith="jobqueue",
            codename__in=[name.rpartition(".")[2] for name in codenames],
        )
        assert len(found) == len(set(codenames))
        user.user_permissions.set(found)
        client = Client()
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def viewer(log_in: LogIn) -> Client:
    """One who may see every page and change nothing."""
    return log_in(*VIEWS)


@pytest.fixture
def scene(db: None) -> Scene:
    return build()
