"""Fixtures of tests of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_jobqueue import job
from django_jobqueue.domain import chunk_throttle
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long work is divided into chunks of ten rows, not of hundreds."""
    monkeypatch.setattr(chunk_throttle, "FIRST", 10)
    monkeypatch.setattr(chunk_throttle, "SMALLEST", 10)


@pytest.fixture
def declare(transactional_db: None) -> Iterator[Callable[..., Handler[..., Any]]]:
    """Declare a handler for this test, here and in the database."""
    names: list[str] = []

    def declare(function: Callable[..., Any], **options: Any) -> Handler[..., Any]:
        handler = job(**options)(function)
        names.append(handler.name)
        job_types.declare(DjangoDatabase(), [handler.declaration])
        return handler

    yield declare
    for name in names:
        registry.remove(name)
