"""Figures are read anew for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.stats import overview


@pytest.fixture(autouse=True)
def fresh_figures() -> Iterator[None]:
    """Nothing is kept from one test to the next."""
    overview.forget()
    yield
    overview.forget()


@pytest.fixture
def no_schedules(db: None) -> None:
    """Those of the shop are elsewhere."""
    Schedule.objects.all().delete()
