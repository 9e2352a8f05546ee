"""Job types of an endpoint, which is there only in some tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django_jobqueue import remote_job
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler import Handler

slow: Handler[..., Any]


def declare() -> Handler[..., Any]:
    """Declare them."""
    global slow
    slow = remote_job("invoices.slow", endpoint="shipping", timeout=600)
    return remote_job(
        "invoices.ship",
        endpoint="shipping",
        max_attempts=1_000,  # it may be away for long on a busy machine
        backoff=0.1,
        timeout=4,
        concurrency=None,
    )


def declared() -> Iterator[Handler[..., Any]]:
    """Declare them; they are gone afterwards."""
    yield declare()
    registry.remove("invoices.ship")
    registry.remove("invoices.slow")
