"""Writes samples as the text that Prometheus reads.

Each process that answers scrapes makes one ``Exposition`` and keeps it::

    exposition = Exposition()                       # MetricsExtraMissing without extra
    answer = exposition.render(samples, accept)     # the header Accept, or ""
    answer.body, answer.content_type

``samples`` are ``Sample(name, value, labels)`` of metrics of the catalogue. They may be
in any order, and have a label set more than once, as when several processes counted:
the values are added up (of some gauges the greatest counts, as the catalogue says).
The settings METRICS_EXCLUDE, METRICS_QUEUES and METRICS_SERIES apply here.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import MetricsExtraMissing
from django_jobqueue.metrics.catalogue import metrics
from django_jobqueue.metrics.label_sets import (
    LabelLimit,
    Values,
    merged,
    with_queues_folded,
)
from django_jobqueue.metrics.metric import Distribution, Kind, Metric, Sample, Value

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

DIGITS: Final = 4  # of a bound: 0.002512, where 10 ** 0.4 / 1,000 has more


class Answer(NamedTuple):
    """The answer to a scrape."""

    body: bytes
    content_type: str
    encoding: str = ""  # gzip, if it was asked for


class Exposition:
    """The metrics of one process: it remembers which label sets it has shown."""

    def __init__(self) -> None:
        """Raises MetricsExtraMissing without ``prometheus_client``."""
        require_extra()
        self._limit = LabelLimit()

    def render(
        self, samples: Iterable[Sample], accept: str = "", accept_encoding: str = ""
    ) -> Answer:
        """The samples in the format, and with the compression, that the headers
        ``Accept`` and ``Accept-Encoding`` ask for.

        Raises KeyError for a metric that the catalogue lacks, ValueError for another
        number of labels than it has.
        """
        from prometheus_client.exposition import choose_encoder, gzip_accepted

        encoder, content_type = choose_encoder(accept)
        body = encoder(_Families([*self.families(samples)]))
        if gzip_accepted(accept_encoding):
            return Answer(gzip.compress(body, 1), content_type, "gzip")
        return Answer(body, content_type)

    def families(self, samples: Iterable[Sample]) -> Iterator[Family]:
        """The samples as families of ``prometheus_client``, in the catalogue's order,
        for a registry of your own."""
        by_metric: dict[str, list[tuple[tuple[str, ...], Value]]] = defaultdict(list)
        for name, value, labels in samples:
            if len(labels) != len(metrics()[name].labels):
                raise ValueError(f"{name} has no labels {labels}")
            by_metric[name].append((labels, value))
        excluded, queues, most = (
            conf.metrics_exclude,
            conf.metrics_queues,
            conf.metrics_series,
        )
        for name, metric in metrics().items():
            if name in by_metric and not _matches(name, excluded):
                values = merged(metric, by_metric[name])
                values = with_queues_folded(metric, values, queues)
                yield _family(metric, self._limit.limited(metric, values, most))


class _Families:
    """A stand-in for a registry, for encoders."""

    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def collect(self) -> list[Any]:
        """All of them."""
        return self._families


def require_extra() -> None:
    """Raises MetricsExtraMissing without ``prometheus_client``."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise MetricsExtraMissing from error


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _family(metric: Metric, values: Values) -> Any:
    from prometheus_client import metrics_core

    family_class = {
        Kind.GAUGE: metrics_core.GaugeMetricFamily,
        Kind.COUNTER: metrics_core.CounterMetricFamily,
        Kind.HISTOGRAM: metrics_core.HistogramMetricFamily,
    }[metric.kind]
    family: Any = family_class(
        metric.name, metric.help, labels=metric.label_names, unit=metric.unit
    )
    for labels, value in sorted(values.items()):
        if isinstance(value, Distribution):
            family.add_metric(labels, list(_buckets(metric, value)), value.total)
        else:
            family.add_metric(labels, value)
    return family


def _buckets(metric: Metric, value: Distribution) -> Iterator[tuple[str, int]]:
    """The exposed bounds, each with how many values are not above it: sums of the
    buckets that are counted."""
    below = list(accumulate(value.counts))
    if len(below) != len(metric.bounds) + 1:
        raise ValueError(f"{metric.name} has {len(metric.bounds) + 1} buckets")
    for place in metric.places:
        yield bound_text(metric.bounds[place]), below[place]
    yield "+Inf", below[-1]


def bound_text(bound: float) -> str:
    """The upper bound of a bucket, as it is exposed."""
    from prometheus_client.utils import floatToGoString

    return str(floatToGoString(float(f"{bound:.{DIGITS}g}")))  # type: ignore[no-untyped-call]
