"""Rows and contexts of jobs, made without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django_jobqueue import Context
from django_jobqueue.domain.ids import new_id
from django_jobqueue.store.rows import Job

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def queued_job(**values: Any) -> Job:
    defaults: dict[str, Any] = {
        "id": new_id(),
        "job_type": "sample.add",
        "queue": "default",
        "priority": 0,
        "status": "queued",
        "data": {},
        "run_after": NOON,
        "expires_at": None,
        "created_at": NOON,
    }
    return Job(**{**defaults, **values})


def context(**values: Any) -> Context:
    """The context of a second attempt."""
    defaults: dict[str, Any] = {
        "id": new_id(),
        "job_type": "sample.add",
        "queue": "default",
        "attempt": 2,
        "max_attempts": 5,
        "crashes": 0,
        "data": {"a": 1},
        "run_after": NOON,
        "created_at": NOON,
        "worker": "host:1",
    }
    return Context(**{**defaults, **values})
