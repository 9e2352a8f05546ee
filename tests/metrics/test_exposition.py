"""The text for Prometheus, from samples of the catalogue's metrics."""

from __future__ import annotations

import gzip
import logging
from typing import Any

import pytest
from django.test import override_settings
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from django_jobqueue.domain.histogram import BOUNDS, BUCKETS, bucket_of
from django_jobqueue.metrics.catalogue import metrics
from django_jobqueue.metrics.exposition import Exposition
from django_jobqueue.metrics.metric import Distribution, Kind, Metric, Sample

JOBS = "jobqueue_jobs"
OTHERS = ("(other)", "(other)")
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def shown(
    samples: list[Sample], exposition: Exposition | None = None
) -> dict[tuple[str, tuple[str, ...]], float]:
    """Values by name and values of labels, as Prometheus reads them: first those of
    the catalogue, in its order."""
    order = [*dict.fromkeys(n for m in metrics().values() for n in m.label_names), "le"]
    text = (exposition or Exposition()).render(samples).body.decode()
    return {
        (
            sample.name,
            tuple(sample.labels[name] for name in order if name in sample.labels),
        ): sample.value
        for family in parse_text(text)
        for sample in family.samples
    }


def some(metric: Metric) -> Sample:
    labels = tuple(label.values[0] if label.values else "x" for label in metric.labels)
    if metric.kind is Kind.HISTOGRAM:
        counts = [1] * (len(metric.bounds) + 1)
        return Sample(metric.name, Distribution(counts, 5.0), labels)
    return Sample(metric.name, 1.0, labels)


def test_every_metric_can_be_read_back() -> None:
    readers: tuple[tuple[str, str, Any], ...] = (
        ("", "text/plain", parse_text),
        (OPENMETRICS, "application/openmetrics-text", parse_openmetrics),
    )
    for accept, content_type, parse in readers:
        answer = Exposition().render(map(some, metrics().values()), accept)
        families = list(parse(answer.body.decode()))
        assert [(family.documentation, family.type) for family in families] == [
            (metric.help, metric.kind) for metric in metrics().values()
        ]
        assert answer.content_type.startswith(content_type)
        packed = Exposition().render(
            map(some, metrics().values()), accept, "deflate, gzip"
        )
        assert (answer.encoding, packed.encoding) == ("", "gzip")
        assert gzip.decompress(packed.body) == answer.body


def test_buckets_are_added_up_to_two_for_each_power_of_ten() -> None:
    counts = [0] * BUCKETS
    for seconds in (0.0005, 0.002, 0.005, 0.02, 3.0, 1e6):
        counts[bucket_of(seconds)] += 1
    name = "jobqueue_attempt_duration_seconds"
    values = shown([Sample(name, Distribution(counts, 7.5), ("shop.mail",))])

    def below(bound: str) -> float:
        return values[f"{name}_bucket", ("shop.mail", bound)]

    bounds = (
        "0.001",
        "0.002512",
        "0.01",
        "0.02512",
        "2.512",
        "10.0",
        "100000.0",
        "+Inf",
    )
    assert [below(le) for le in bounds] == [1, 2, 3, 4, 4, 5, 5, 6]
    assert values[f"{name}_sum", ("shop.mail",)] == 7.5
    assert sum(key[0] == f"{name}_bucket" for key in values) == 18
    assert max(BOUNDS) == 100_000


def test_the_same_label_set_of_several_processes_is_added_up() -> None:
    counter = "jobqueue_worker_claimed_jobs_total"
    gauge, place = "jobqueue_oldest_ready_seconds", ("mail", "shop.mail")
    counts = [Sample(counter, 3), Sample(counter, 4)]
    values = shown([*counts, Sample(gauge, 9.0, place), Sample(gauge, 5.0, place)])
    assert values[counter, ()] == 7
    assert values[gauge, place] == 9  # the oldest of both
    for sample in (
        Sample("jobqueue_no_such", 1.0),
        Sample(JOBS, 1.0, ("mail",)),
        Sample("jobqueue_job_attempts", Distribution([1, 2], 3.0), ("a",)),
    ):
        with pytest.raises((KeyError, ValueError), match="jobqueue"):
            Exposition().render([sample])


@override_settings(JOBQUEUE={"METRICS_QUEUES": {"tenant-*": "tenant", "*-7": "seven"}})
def test_queues_are_folded_by_the_first_pattern_that_matches() -> None:
    jobs = {"tenant-7": 1, "tenant-8": 2, "mail-7": 4, "mail": 8}
    values = shown(
        [Sample(JOBS, n, (queue, "a", "ready")) for queue, n in jobs.items()]
    )
    assert values == {
        (JOBS, ("tenant", "a", "ready")): 3,
        (JOBS, ("seven", "a", "ready")): 4,
        (JOBS, ("mail", "a", "ready")): 8,
    }


@override_settings(JOBQUEUE={"METRICS_EXCLUDE": ["jobqueue_worker_*", JOBS]})
def test_excluded_metrics_are_left_out() -> None:
    values = shown(list(map(some, metrics().values())))
    names = {name for name, _labels in values}
    assert "jobqueue_workers" in names
    assert JOBS not in names
    assert not [name for name in names if name.startswith("jobqueue_worker_")]


@override_settings(JOBQUEUE={"METRICS_SERIES": 4})  # two queues, two states each
def test_the_smallest_label_sets_are_added_up_and_shown_ones_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    exposition = Exposition()

    def jobs(**ready: int) -> dict[tuple[str, tuple[str, ...]], float]:
        samples = [
            Sample(JOBS, number, (queue, "t", state))
            for queue, count in ready.items()
            for state, number in (("ready", count), ("running", 1))
        ]
        return shown(samples, exposition)

    with caplog.at_level(logging.WARNING, "django_jobqueue.metrics"):
        first = jobs(a=9, b=5, c=2, d=1)
        second = jobs(a=0, b=1, c=50, d=60)
    states = ("ready", "running")
    places = [
        (JOBS, (q, t, s)) for q, t in (("a", "t"), ("b", "t"), OTHERS) for s in states
    ]
    assert first == dict(zip(places, (9, 1, 5, 1, 3, 2), strict=True))
    assert first.keys() == second.keys()
    assert second[JOBS, (*OTHERS, "ready")] == 110
    assert [record.args[:2] for record in caplog.records] == [(JOBS, 4)]  # type: ignore[index]
