"""A metric, its name, kind, unit, labels and help; and its values, as whoever counts
hands them to the exposition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from django_jobqueue.domain import histogram, series
from django_jobqueue.store.connection import Database


class Distribution(NamedTuple):
    """The value of a histogram: how many were in each bucket, and the sum of all.

    ``counts`` has one number for each of the metric's ``bounds``, and one for what is
    above the last, none added up. Those of durations are the histograms of
    ``domain.histogram`` as they are, and ``total`` is in seconds.
    """

    counts: Sequence[int]
    total: float


Value = float | Distribution


class Sample(NamedTuple):
    """The value of one label set of a metric of the catalogue."""

    metric: str  # its name in the catalogue
    value: Value
    labels: tuple[str, ...] = ()  # in the order of the metric's labels


def added(first: Value, second: Value) -> Value:
    """Two values of the same metric, added up."""
    if isinstance(first, Distribution) and isinstance(second, Distribution):
        counts = histogram.added((first.counts, second.counts))
        return Distribution(counts, first.total + second.total)
    assert not isinstance(first, Distribution)
    assert not isinstance(second, Distribution)
    return first + second


def size_of(value: Value) -> float:
    """How much a value counts when the largest are chosen."""
    return sum(value.counts) if isinstance(value, Distribution) else value


class Kind(StrEnum):
    """The kinds of Prometheus."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Merge(StrEnum):
    """How the values of label sets that are folded into one become one value."""

    SUM = "sum"
    MAX = "max"


class Label(NamedTuple):
    """A label and its values; without values it can have any, such as each queue, and
    ``METRICS_SERIES`` limits their number."""

    name: str
    values: tuple[str, ...] = ()
    known: Callable[[], Iterable[str]] = lambda: ()  # those that begin with zero

    @property
    def starts(self) -> tuple[str, ...]:
        """The values whose counts begin with zero."""
        return self.values or tuple(self.known())


class Metric(NamedTuple):
    """A line of the catalogue."""

    name: str  # with the unit, and with _total if it is a counter
    kind: Kind
    help: str
    labels: tuple[Label, ...] = ()
    unit: str = ""  # seconds or bytes: base units alone
    merge: Merge = Merge.SUM
    places: tuple[int, ...] = ()  # indexes of the bounds that are exposed
    bounds: tuple[float, ...] = ()  # of a histogram, as it is counted
    otel: str = ""  # its name in OpenTelemetry's conventions

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of its labels, in the order of a sample's values."""
        return tuple(label.name for label in self.labels)


def _metric(kind: Kind, name: str, help: str, *labels: Label, **more: Any) -> Metric:
    return Metric(name, kind, help, labels, **more)


gauge, counter = partial(_metric, Kind.GAUGE), partial(_metric, Kind.COUNTER)


class RoomMetrics(NamedTuple):
    """The metrics of a feature."""

    cluster: Sequence[Metric]
    samples: Callable[[Database], Iterable[Sample]]  # of these, taken from the database
    host: Sequence[Metric]
    counted: Callable[[], series.Series]  # by one process
