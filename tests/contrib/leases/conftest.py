"""Leases of other processes, and what this one leaves open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from django_jobqueue.contrib.leases import lease_rows, process_leases
from django_jobqueue.contrib.leases.lease_rows import Answer, Claimant
from django_jobqueue.store.connection import OwnConnection
from tests.admin.conftest import anna, fresh_figures, log_in, scene
from tests.commands.conftest import any_width

__all__ = ["any_width", "anna", "fresh_figures", "log_in", "scene"]  # fixtures


def claimant(name: str = "import", **values: Any) -> Claimant:
    """A process elsewhere that wants a lease."""
    defaults = {"token": uuid4(), "ttl": 15.0, "holder": "web-9:99", "host": "web-9"}
    return Claimant(name=name, **{**defaults, **values})


class Stranger:
    """A process elsewhere, which renews nothing by itself."""

    def __init__(self, db: OwnConnection) -> None:
        self.db = db
        self.token: UUID | None = None

    def take(self, name: str = "import", ttl: float = 15.0) -> Answer:
        """Try to take a lease."""
        wanted = claimant(name, ttl=ttl)
        answer = lease_rows.take(self.db, wanted)
        if answer.fence:
            self.token = wanted.token
        return answer

    def release(self, name: str = "import") -> None:
        """Release it."""
        assert self.token is not None
        lease_rows.release(self.db, name, self.token)


@pytest.fixture
def stranger(other: OwnConnection) -> Stranger:
    """Somebody else who wants leases."""
    return Stranger(other)


def renews() -> bool:
    """Whether there is a renewer in this process."""
    return process_leases._renewer is not None  # private: nobody else has to know


@pytest.fixture(autouse=True)
def _nothing_is_left_open() -> Iterator[None]:
    """After each test there is neither a thread nor a connection for leases."""
    yield
    assert not renews()
    for thread in threading.enumerate():
        if thread.name in ("lease renewer", "listener"):
            thread.join(10)
            assert not thread.is_alive()
