"""An observer of OpenTelemetry whose spans are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from django_jobqueue import observers
from django_jobqueue.contrib.telemetry.otel import TracingObserver


@dataclass
class Traced:
    """The spans of this process, and a tracer for those of a project."""

    exporter: InMemorySpanExporter
    tracer: Tracer
    provider: TracerProvider

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.spans if span.name == name]
        return span


@pytest.fixture
def no_observers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of other tests, and of this one after it, are gone."""
    monkeypatch.setattr(observers, "registered", ())


@pytest.fixture
def traced(no_observers: None) -> Iterator[Traced]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    observers.observe(TracingObserver(provider))
    yield Traced(exporter, provider.get_tracer("project"), provider)
    provider.shutdown()
