"""Job types that are new to a worker: who is asked about them, and how often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from django_jobqueue.models import JobType, Worker
from django_jobqueue.registry import Declaration, registry
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.policies import Policies
from django_jobqueue.workers.policy_reader import PolicyReader
from tests.conftest import HandDriven
from tests.sample import jobs


class Finder:
    """Vouches for one job type, and remembers of which it was asked."""

    def __init__(self, known: str) -> None:
        self.known = known
        self.asked: list[str] = []

    def __call__(self, name: str, handler: str) -> Declaration | None:
        self.asked.append(name)
        if name != self.known:
            return None
        return replace(registry.get(jobs.add.name), name=name)


@pytest.fixture
def finder(monkeypatch: pytest.MonkeyPatch) -> Finder:
    """Knows the type ``late.known`` only."""
    finder = Finder("late.known")
    monkeypatch.setattr(registry, "finders", [finder])
    return finder


def test_a_stranger_is_asked_about_once_whatever_comes_of_it(
    worker: HandDriven, own: OwnConnection, finder: Finder
) -> None:
    policies = Policies(registry)
    reader = PolicyReader(worker.worker.id, own, policies, registry)
    for name in ("late.known", "late.unknown"):
        JobType.objects.create(name=name, handler="tests.sample.jobs.add")

    for _ in range(3):
        reader.read()

    asked = [name for name in finder.asked if name.startswith("late.")]
    assert asked == ["late.known", "late.unknown"]
    assert "late.known" in policies.names
    assert "late.unknown" not in policies.names
    told = Worker.objects.get().job_types
    assert "late.known" in told
    assert "late.unknown" not in told
