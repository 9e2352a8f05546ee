"""The metrics of the cluster, which all who ask share for METRICS_MAX_AGE.

They are one row in the database. Whoever finds it old takes the figures again, unless
somebody else does; everybody else is given what is there, with its age. So twenty
scrapes a second cost what one every five seconds does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

from django.db import Error as DjangoError
from psycopg import Error as DriverError

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.metrics import cluster_samples
from django_jobqueue.metrics.catalogue import cluster
from django_jobqueue.metrics.metric import Distribution, Kind, Sample
from django_jobqueue.store import figures_row
from django_jobqueue.store.connection import Database, DjangoDatabase, OwnConnection
from django_jobqueue.store.figures_row import Figures
from django_jobqueue.store.time_budget import lower_limit

logger = logging.getLogger("django_jobqueue.metrics")

NAME: Final = "metrics"  # of the row
UP: Final = "jobqueue_database_up"
ERRORS: Final = (StoreUnavailable, DjangoError, DriverError)


def read(db: DjangoDatabase | OwnConnection) -> list[Sample]:
    """The samples of every metric of the cluster; if the database does not answer, only
    that it does not."""
    try:
        figures = _figures(db)
    except ERRORS as error:
        if not isinstance(error, StoreUnavailable):  # those are logged once for all
            logger.warning("The metrics of the cluster cannot be read: %s", error)
        return [Sample(UP, 0)]
    age = Sample("jobqueue_figures_age_seconds", round(figures.age, 3))
    return [*_samples(figures.values), age, Sample(UP, 1)]


def _figures(db: DjangoDatabase | OwnConnection) -> Figures:
    held = figures_row.read(db, NAME)
    if held is not None and held.age <= conf.metrics_max_age:
        return held

    def take(opened: Database) -> Figures | None:
        lower_limit(opened, round(conf.statement_timeout * 1_000))
        return figures_row.take(
            opened,
            NAME,
            conf.metrics_max_age,
            lambda: _encoded(opened),
            waits=held is None,
        )

    try:
        return figures_row.in_transaction(db, take) or held or Figures(0.0, [])
    except ERRORS as error:
        if held is None:
            raise
        logger.warning(
            "The metrics of the cluster are %.0f s old and cannot be read again: %s",
            held.age,
            error,
        )
        return held


def _encoded(db: Database) -> list[Any]:
    return [[name, value, labels] for name, value, labels in cluster_samples.take(db)]


def _samples(values: Any) -> Iterator[Sample]:
    """The samples that this release knows: another one may have taken them."""
    for name, value, labels in values:
        metric = cluster().get(name)
        if metric is None or len(metric.labels) != len(labels):
            continue
        if metric.kind is Kind.HISTOGRAM:
            value = Distribution(*value)
            if len(value.counts) != len(metric.bounds) + 1:
                continue
        yield Sample(name, value, tuple(labels))
