"""Holds back what shares the rate of jobs that asked for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import psycopg

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import in_a_line
from django_jobqueue.store.queue.holds import Hold, hold
from django_jobqueue.workers.completing.deferred_outcomes import Item

logger = logging.getLogger("django_jobqueue.worker")


def hold_rates(connection: OwnConnection, items: Sequence[Item]) -> None:
    """Hold back what these outcomes ask for, before they are retried. Raises
    StoreUnavailable."""
    asked = [
        Hold(a.job.job_type, a.job.limit_key, finished.outcome.hold.total_seconds())
        for a, finished in items
        if finished.outcome.hold is not None
    ]
    if not asked:
        return
    try:
        keys = hold(connection, asked)
    except psycopg.Error as error:  # the outcome itself counts more
        logger.warning("Nothing could be held back: %s", in_a_line(error))
        return
    for job_type in {one.job_type for one in asked if not one.is_held(keys)}:
        logger.warning("Retry(hold=True) holds nothing back: %s has no rate", job_type)
