"""The catalogue follows the conventions of Prometheus."""

from __future__ import annotations

import re

from django_jobqueue.metrics.catalogue import PRODUCER, cluster, host, metrics
from django_jobqueue.metrics.metric import Kind


def test_a_metric_is_named_as_prometheus_advises() -> None:
    for name, metric in metrics().items():
        base = name.removesuffix("_total")
        follows = (
            re.fullmatch(r"jobqueue(_[a-z]+)+", name),
            (base != name) == (metric.kind is Kind.COUNTER),
            base.endswith(f"_{metric.unit}") or not metric.unit,
            metric.unit or not base.endswith(("_seconds", "_bytes")),
            not {*metric.label_names} & {"le", "quantile", "job", "instance"},
            metric.help.endswith("."),
            bool(metric.bounds) == bool(metric.places),
            bool(metric.bounds) == (metric.kind is Kind.HISTOGRAM),
        )
        assert all(follows), (name, follows)


def test_prefixes_tell_hosts_from_the_cluster_and_few_labels_are_open() -> None:
    assert {*metrics()} == {*cluster()} | {*host()} | {*PRODUCER}
    assert {name for name in metrics() if name.startswith("jobqueue_worker_")} == {
        *host()
    }
    open_labels = {
        label.name
        for metric in metrics().values()
        for label in metric.labels
        if not label.values
    }
    assert open_labels == {
        *("queue", "job_type", "name", "table", "version", "postgresql", "endpoint")
    }
