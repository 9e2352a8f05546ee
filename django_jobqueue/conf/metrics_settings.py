"""The settings of metrics."""

from __future__ import annotations

from typing import Any, ClassVar

from django_jobqueue.conf.setting_types import (
    Count,
    Flag,
    Names,
    Networks,
    Port,
    QueueLabels,
    Seconds,
    Setting,
    Text,
    Tokens,
)


class MetricsSettings:
    """A part of ``Conf``, whose settings are in one dict."""

    settings: ClassVar[dict[str, Setting[Any]]] = {}

    metrics_port = Port(
        None,
        "Port where runworkers serves metrics and answers probes; 0 is any free one, "
        "None is none.",
        optional=True,
    )
    metrics_host = Text[str](
        "127.0.0.1", "Address of that port. Use 0.0.0.0 in a container.", maximum=255
    )
    metrics_max_age = Seconds[float](
        5.0,
        "How old metrics of the cluster may be before they are read again.",
        minimum=0,
    )
    metrics_tokens = Tokens(
        [], "Tokens that may read the metrics of the cluster from your site."
    )
    metrics_allow = Networks(
        (), "Networks whose clients may read the metrics of the cluster from your site."
    )
    metrics_series = Count[int](
        1_000,
        "How many label sets of one metric are exposed, the largest; the others are "
        "summed under (other).",
        minimum=1,
    )
    metrics_queues = QueueLabels(
        {},
        "Labels of queues in metrics, by patterns of their names: "
        '{"tenant-*": "tenant"}. The first pattern that matches counts.',
    )
    metrics_enqueued = Flag[bool](
        False,
        "Whether each process counts the jobs that it enqueues, in the registry of "
        "prometheus_client.",
    )
    metrics_exclude = Names[list[str]](
        [], "Metrics that are not exposed; * stands for anything."
    )
