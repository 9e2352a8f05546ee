"""The catalogue follows the conventions of Prometheus."""

from __future__ import annotations

import re

import pytest

from django_jobqueue.metrics.catalogue import (
    CLUSTER,
    HOST,
    METRICS,
    PRODUCER,
    Kind,
    Metric,
)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
def test_a_metric_is_named_as_prometheus_advises(metric: Metric) -> None:
    base = metric.name.removesuffix("_total")
    assert re.fullmatch(r"jobqueue(_[a-z]+)+", metric.name)
    assert (base != metric.name) == (metric.kind is Kind.COUNTER)
    assert base.endswith(f"_{metric.unit}") or not metric.unit
    assert metric.unit or not base.endswith(("_seconds", "_bytes"))
    assert not {*metric.label_names} & {"le", "quantile", "job", "instance"}
    assert metric.help.endswith(".")
    assert bool(metric.bounds) == bool(metric.places)
    assert bool(metric.bounds) == (metric.kind is Kind.HISTOGRAM)


def test_the_prefix_says_whether_a_metric_is_of_a_host_or_of_the_cluster() -> None:
    assert {*METRICS} == {*CLUSTER} | {*HOST} | {*PRODUCER}
    assert {name for name in METRICS if name.startswith("jobqueue_worker_")} == {*HOST}


def test_only_queues_types_names_tables_and_versions_have_any_value() -> None:
    open_labels = {
        label.name
        for metric in METRICS.values()
        for label in metric.labels
        if not label.values
    }
    assert open_labels == {
        *("queue", "job_type", "name", "table", "version", "postgresql", "endpoint")
    }
