"""Tracing and Sentry in real worker processes, where the environment asks for them.

``SAMPLE_SPANS`` and ``SAMPLE_EVENTS`` are files that get a line of JSON for each, late
with ``SAMPLE_BATCHED``.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django_jobqueue import signals
from tests.sample.jobs import append, note


def lines(path: str | Path) -> list[Any]:
    text = Path(path).read_text() if Path(path).exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def install() -> None:
    """Called when Django is ready: in the supervisor, before it forks."""
    if "SAMPLE_SPANS" in os.environ:
        from django_jobqueue.contrib.telemetry.otel import JobQueueInstrumentor

        JobQueueInstrumentor().instrument()
        signals.process_started.connect(set_up_tracing)
    if "SAMPLE_THREAD" in os.environ:
        name = os.environ["SAMPLE_THREAD"]
        threading.Thread(target=time.sleep, args=[600], name=name, daemon=True).start()
    if "SAMPLE_STARTS" in os.environ:
        signals.process_started.connect(note_start)
    if "SAMPLE_EVENTS" in os.environ:
        start_sentry(os.environ["SAMPLE_EVENTS"])


def note_start(process: str, **kwargs: Any) -> None:
    note(os.environ["SAMPLE_STARTS"], "started", process, threading.active_count())


def set_up_tracing(process: str, **kwargs: Any) -> None:
    """In a forked process, where the exporter's thread may start."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SimpleSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    class FileExporter(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            for span in spans:
                text = json.dumps(json.loads(span.to_json()))
                append(os.environ["SAMPLE_SPANS"], text)
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    if "SAMPLE_BATCHED" in os.environ:
        # An hour: nothing arrives unless the end of the process sends it.
        provider.add_span_processor(
            BatchSpanProcessor(FileExporter(), schedule_delay_millis=3_600_000)
        )
    else:
        provider.add_span_processor(SimpleSpanProcessor(FileExporter()))
    trace.set_tracer_provider(provider)


def start_sentry(path: str) -> None:
    """With a transport that writes to a file; before the fork, as most projects do."""
    import sentry_sdk
    from sentry_sdk.transport import Transport

    from django_jobqueue.contrib.telemetry.sentry import JobQueueIntegration

    class FileTransport(Transport):
        def capture_envelope(self, envelope: Any) -> None:
            for item in envelope.items:
                if item.type == "event":
                    append(path, json.dumps(item.payload.json))

    sentry_sdk.init(
        dsn="http://key@localhost/1",
        transport=FileTransport,
        integrations=[JobQueueIntegration()],
        traces_sample_rate=1.0,
    )
